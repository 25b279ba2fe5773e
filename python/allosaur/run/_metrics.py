"""What thresholds may be about: values of rows of the run's document, their shares, rates and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from allosaur.cli import _format

Document = Mapping[str, Any]
Labels = Mapping[str, str]
Row = Mapping[str, Any]
Value = Callable[[Any], "float | None"]
Rows = Callable[[Document, Labels], Iterable[tuple[str, Any]]]
"""The rows of a document that have the labels, each with whose it is."""

EACH = "*"
"""The value of a label that means each of them by itself."""
ANY = ("*",)
"""The labels of a metric of which only the server knows which it has."""
LATENCY, PERCENTILE, MISSED = "latency", "percentile", "missed"
"""What metrics of several kinds need."""
TELLS_NOT = "a server of TRex's does not tell it"
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True)
class Unit:
    """How the values of a metric are written."""

    name: str
    """As the JSON document has it."""
    example: str
    suffixes: Mapping[str, float]
    """What may follow the number, with what it is multiplied by; an empty one allows none."""
    shown: Callable[[float], str]


def _rate(unit: str, *also: str) -> Unit:
    suffixes = {f"{letter}{word}": value for letter, value in PREFIXES.items() for word in (unit, *also)}
    return Unit(unit, f"10k{unit}", suffixes, lambda value: _format.rate(value, unit))


_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
SHARE = Unit("%", "0.01%", {"%": 1.0}, lambda value: f"{value:.4g} %")
TIME = Unit("us", "100us", _MICROSECONDS, _format.microseconds)
COUNT = Unit("", "10", PREFIXES, lambda value: f"{value:,.10g}")
PPS, BPS, FPS = _rate("pps"), _rate("bps"), _rate("fps", "cps")


@dataclass(frozen=True)
class Reading:
    """A value of a metric; `None` when nothing was measured."""

    value: float | None
    where: str = ""
    """Whose it is, when a metric has several: `stream voip, port 0`."""


def whole(document: Document, _: Labels) -> Iterable[tuple[str, Row]]:
    """Return the document itself as the only row."""
    return [("", document)]


@dataclass(frozen=True)
class Metric:
    """What a threshold may be about."""

    name: str
    unit: Unit
    meaning: str
    value: str | Value
    """What is read of a row: the value behind a key, or behind several as in `clients.begun_flows`."""
    rows: Rows = whole
    labels: Sequence[str] = ()
    """What its values can be told apart by."""
    needs: str = ""
    """What it is measured with, by a word of the table that it is in."""
    decides: str = ""
    """The check of every run in whose place a threshold of this metric decides."""
    of: str | Value | None = None
    """What the value is a share of, in percent."""
    times: float = 1
    """What the value is multiplied by."""
    per_second: bool = False
    is_summed: bool = False
    """Whether rows are added up; else, and where a label asks for each, there is a value of each."""
    gains: bool = False
    """It is no rate, and all the same more of it is better."""

    @property
    def more_is_better(self) -> bool:
        """Whether a higher value is the better one."""
        return self.gains or self.unit in (PPS, BPS, FPS)

    def read(self, document: Document, labels: Labels) -> list[Reading]:
        """Read it of the document of a run."""
        rows = list(self.rows(document, labels))
        if not self.is_summed or EACH in labels.values():
            return [Reading(self._read(document, [row]), where) for where, row in rows]
        where = ", ".join(f"{name} {value}" for name, value in labels.items())
        return [Reading(self._read(document, [row for _, row in rows]), where)]

    def _read(self, document: Document, rows: Sequence[Row]) -> float | None:
        part = _sum(self.value, rows)
        if part is None or (self.of is None and not self.per_second):
            return None if part is None else self.times * part
        of = document["duration_s"] if self.per_second else _sum(self.of or "", rows)
        return (self.times if self.per_second else 100) * part / of if of else None


def _sum(value: str | Value, rows: Sequence[Row]) -> float | None:
    """Return the sum over the rows that know; `None` when none does."""
    known = [
        one for row in rows if (one := at(row, value) if isinstance(value, str) else value(row)) is not None
    ]
    return sum(known) if known else None


def at(row: Row, path: str) -> float | None:
    """Return the value behind keys, each inside the one before; `None` where nobody knows."""
    found: Any = row
    for key in path.split("."):
        found = None if found is None else found.get(key)
    return None if found is None else float(found)


def with_count(things: str, share: Metric) -> tuple[Metric, Metric]:
    """Return the metric of a share, and that of its part, counted in these things."""
    name, meaning = f"{share.name}.{things}", "the same, counted"
    return share, replace(share, name=name, unit=COUNT, meaning=meaning, of=None)


def times(
    name: str,
    meanings: Mapping[str, str],
    rows: Rows,
    labels: Sequence[str] = (),
    needs: str = LATENCY,
    percentiles_need: str = "",
) -> tuple[Metric, ...]:
    """Return the metrics of times, of rows with times in microseconds by name: `p99_9_us` of p99.9."""
    return tuple(
        Metric(
            f"{name}.{time}",
            TIME,
            meaning,
            f"{time.replace('.', '_')}_us",
            rows,
            labels,
            percentiles_need or needs if time.startswith("p") else needs,
        )
        for time, meaning in meanings.items()
    )


def latency(one: str, several: str, rows: Rows, labels: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics of the latency of packets, which are called so."""
    shares = {f"p{share}": f"time that {share} % of {several} kept to" for share in ("90", "99", "99.9")}
    meanings = {
        "min": f"shortest time of {one}",
        "average": "average time",
        "p50": f"time that half of {several} kept to",
        **shares,
        "max": f"longest time of {one}",
        "jitter": "jitter",
    }
    return times("latency", meanings, rows, labels, LATENCY, PERCENTILE)


def of_registry(name: str) -> Metric:
    """Return the metric of a family of the server's registry: the sum of the series that have the labels."""

    def rows(document: Document, labels: Labels) -> Iterable[tuple[str, float]]:
        chosen = [
            one
            for one in document["metrics"].get(name, ())
            if all(asked in (EACH, one.named_labels.get(label)) for label, asked in labels.items())
        ]
        if EACH in labels.values():
            return [
                (", ".join(f"{a} {b}" for a, b in one.named_labels.items()), one.number) for one in chosen
            ]
        return [("", sum(one.number for one in chosen))] if chosen else []

    return Metric(name, COUNT, f"{name} of the server", float, rows, ANY)
