"""What metrics of all kinds are made of: values of rows of the run's document, their shares, times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from allosaur.run._thresholds import COUNT, EACH, SHARE, TIME, Document, Labels, Metric, Reading

Row = Mapping[str, Any]
Value = Callable[[Row], float | None]
Rows = Callable[[Document, Labels], Iterable[tuple[str, Row]]]
"""The rows of a document that have the labels, each with whose it is."""

LATENCY, PERCENTILE, MISSED = "latency", "percentile", "missed"
"""What metrics of several kinds need."""
TELLS_NOT = "a server of TRex's does not tell it"


@dataclass(frozen=True)
class Values:
    """Reads a value of rows, or the share of one value of another in percent."""

    rows: Rows
    part: Value
    whole: Value | None = None
    per_second: bool = False
    is_summed: bool = False
    """Whether rows are added up; else, and where a label asks for each, there is a value of each."""

    def __call__(self, document: Document, labels: Labels) -> list[Reading]:
        """Read it."""
        rows = list(self.rows(document, labels))
        if not self.is_summed or EACH in labels.values():
            return [Reading(self._value(document, [row]), where) for where, row in rows]
        where = ", ".join(f"{name} {value}" for name, value in labels.items())
        return [Reading(self._value(document, [row for _, row in rows]), where)]

    def _value(self, document: Document, rows: Sequence[Row]) -> float | None:
        part = _sum(self.part, rows)
        if part is not None and self.per_second:
            return part / document["duration_s"] if document["duration_s"] else None
        if part is None or self.whole is None:
            return part
        whole = _sum(self.whole, rows)
        return 100 * part / whole if whole else None


def _sum(value: Value, rows: Sequence[Row]) -> float | None:
    """Return the sum over the rows that know; `None` when none does."""
    known = [one for row in rows if (one := value(row)) is not None]
    return sum(known) if known else None


def at(*keys: str, times: float = 1) -> Value:
    """Return what reads the value behind these keys, each inside the one before; `None` where one is so."""

    def value(row: Row) -> float | None:
        found: Any = row
        for key in keys:
            found = None if found is None else found[key]
        return None if found is None else times * float(found)

    return value


def whole(document: Document, _: Labels) -> Iterable[tuple[str, Row]]:
    """Return the document itself as the only row."""
    return [("", document)]


def share_and_count(
    name: str,
    things: str,
    meaning: str,
    values: Values,
    labels: Sequence[str] = (),
    needs: str = "",
    decides: str = "",
    gains: bool = False,
) -> tuple[Metric, Metric]:
    """Return the metric of a share, and that of its part, counted in these things."""
    more = (labels, needs, decides, gains)
    count = replace(values, whole=None)
    return (
        Metric(name, SHARE, meaning, values, *more),
        Metric(f"{name}.{things}", COUNT, "the same, counted", count, *more),
    )


def latency(one: str, several: str, rows: Rows, labels: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics of the latency of packets, which are called so."""
    meanings = {
        "min": f"shortest time of {one}",
        "average": "average time",
        "p50": f"time that half of {several} kept to",
        "p90": f"time that 90 % of {several} kept to",
        "p99": f"time that 99 % of {several} kept to",
        "p99.9": f"time that 99.9 % of {several} kept to",
        "max": f"longest time of {one}",
        "jitter": "jitter",
    }
    return times("latency", meanings, rows, labels, LATENCY, PERCENTILE)


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
            Values(rows, _time(f"{time.replace('.', '_')}_us")),
            labels,
            percentiles_need or needs if time.startswith("p") else needs,
        )
        for time, meaning in meanings.items()
    )


def _time(key: str) -> Value:
    return lambda row: row.get(key)
