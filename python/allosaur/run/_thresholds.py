"""Thresholds of a run: what `--fail-if 'latency.p99>100us'` says, and whether it came to that.

A threshold names a metric of the run's JSON document. Where it names one that a check of every run is about
(loss, load that was missed), it decides in the place of that check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

from allosaur.cli import _format
from allosaur.cli._errors import bad_input
from allosaur.cli._parser import nearest
from allosaur.run._metrics import ANY, EACH, Document, Labels, Metric, Reading, of_registry

LOAD = "load"
"""The label that says of which of several loads a threshold is."""
REGISTRY = "allosaur_"
"""How the names of the server's registry begin."""
_SYNTAX = re.compile(
    r"(?P<metric>[A-Za-z_][\w.]*)\s*(?:\{(?P<labels>[^}]*)\})?\s*(?P<operator>>=|<=|==|!=|>|<)\s*"
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-zµ%]*)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>[^,\"]+?))\s*(?:,|$)")
_CROSSED = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}
_LISTED_MAX = 12
_NEAR = 0.5
"""How near a name must be that is proposed: people write a part of one, `p99` for `latency.p99`."""


@dataclass(frozen=True)
class Threshold:
    """A limit of a metric. Crossed, it fails the run."""

    text: str
    metric: Metric
    labels: Labels
    operator: str
    limit: float
    """In the unit of the metric."""

    def crossed_by(self, value: float) -> bool:
        """Whether a value is on the wrong side."""
        return bool(_CROSSED[self.operator](value, self.limit))


@dataclass(frozen=True)
class Checked:
    """A threshold, and the value that is nearest to crossing it, or beyond."""

    threshold: Threshold
    reading: Reading

    @property
    def ok(self) -> bool:
        """Whether it held. Nobody knows that of a value that was not measured: it did not."""
        value = self.reading.value
        return value is not None and not self.threshold.crossed_by(value)

    @property
    def value_text(self) -> str:
        """The value as people read it."""
        value, limit, unit = self.reading.value, self.threshold.limit, self.threshold.metric.unit
        if value is None:
            return "not measured"
        shown = unit.shown(value)
        if value != limit and shown == unit.shown(limit):
            # So near to the limit that the usual digits do not tell the two apart.
            return f"{_format.beside(value, limit)} {unit.name}".rstrip()
        return shown

    @property
    def limit_text(self) -> str:
        """The limit as people read it."""
        return f"{self.threshold.operator} {self.threshold.metric.unit.shown(self.threshold.limit)}"

    def __str__(self) -> str:
        where = f" ({self.reading.where})" if self.reading.where else ""
        found = f"{self.threshold.metric.name} is {self.value_text}{where}"
        if self.ok:
            return found
        if self.reading.value is None:
            return f"threshold {self.threshold.text}: {self.threshold.metric.name} was not measured"
        return f"threshold {self.threshold.text} was crossed: {found}, and may not be {self.limit_text}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        value = self.reading.value
        return {
            "threshold": self.threshold.text,
            "metric": self.threshold.metric.name,
            "labels": dict(self.threshold.labels),
            "operator": self.threshold.operator,
            "limit": self.threshold.limit,
            "value": None if value is None else round(value, 9),
            "unit": self.threshold.metric.unit.name,
            "where": self.reading.where or None,
            "ok": self.ok,
        }


class Thresholds(tuple[Threshold, ...]):
    """All thresholds of a run."""

    def decide(self, check: str, names: Mapping[str, Iterable[str]] | None = None) -> bool:
        """Whether one of them decides in the place of a check, of what has these labels.

        A threshold with a label decides on what has it only; one for each of them (`*`) on all that have one.
        """
        known = {name: set(values) for name, values in (names or {}).items()}
        return any(
            threshold.metric.decides == check
            and all(
                name in known and (value == EACH or value in known[name])
                for name, value in threshold.labels.items()
            )
            for threshold in self
        )

    def check(self, document: Document | None) -> list[Checked]:
        """Compare each with the document of a run; `None` is one that was cut short, and proves nothing."""
        return [_checked(threshold, document) for threshold in self]


NONE = Thresholds()


def table(checked: Sequence[Checked]) -> str:
    """Return the table of thresholds for people."""
    has_where = any(one.reading.where for one in checked)
    header = ["fail if", "value", *(["where"] if has_where else []), ""]
    rows = [
        [
            one.threshold.text,
            one.value_text,
            *([one.reading.where] if has_where else []),
            "holds" if one.ok else "CROSSED",
        ]
        for one in checked
    ]
    return _format.table(header, rows)


@dataclass(frozen=True)
class Known:
    """What thresholds of a load may be about: its metrics, and how others are found by their names."""

    metrics: Sequence[Metric]
    other: Callable[[str], Metric | None] = lambda name: None

    def metric(self, name: str) -> Metric | None:
        """Return the metric of this name."""
        return next((one for one in self.metrics if one.name == name), None) or self.other(name)


def read(words: Sequence[str], metrics: Sequence[Metric]) -> Thresholds:
    """Read the words of `--fail-if`; `@FILE` stands for the lines of a file. Raises :class:`CommandError`."""
    return read_of(words, {"": Known(metrics)}, has_registry=False)[""]


def read_of(
    words: Sequence[str], loads: Mapping[str, Known], has_registry: bool = True
) -> dict[str, Thresholds]:
    """Read thresholds of the loads of a run, by name: of several, the label `load` says which is meant.

    Those by a name of the server's registry are of none, and stand under an empty name.
    """
    found: dict[str, list[Threshold]] = {name: [] for name in loads}
    for text, source in _texts(words):
        written = _written(text, source)
        if has_registry and written.metric.startswith(REGISTRY):
            found.setdefault("", []).append(written.threshold(of_registry(written.metric)))
            continue
        name = _meant(written, loads)
        found[name].append(written.threshold(_known(written, loads[name])))
    return {name: Thresholds(several) for name, several in found.items()}


def _texts(words: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return each threshold's text, and where it is from for a message."""
    for word in words:
        if not word.startswith("@"):
            yield word, "--fail-if"
            continue
        path = Path(word[1:])
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "is no text"
            raise bad_input(f"--fail-if {word}: cannot be read: {why}") from error
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if text:
                yield text, f"{path}:{number}"


@dataclass(frozen=True)
class _Written:
    """A threshold as it is written, with where that is."""

    text: str
    source: str
    metric: str
    labels: str
    operator: str
    number: str
    unit: str

    def threshold(self, metric: Metric) -> Threshold:
        """Return it as one of this metric. Raises :class:`CommandError`."""
        labels = _labels(self.labels, self.source)
        labels.pop(LOAD, None)
        if metric.labels is not ANY:
            refuse_other_labels(labels, self.source, metric.name, metric.labels)
        limit = _limit(self.number, self.unit, metric, self.source)
        return Threshold(self.text.strip(), metric, labels, self.operator, limit)


def _written(text: str, source: str) -> _Written:
    found = _SYNTAX.fullmatch(text.strip())
    if found is None:
        raise bad_input(
            f"{source}: '{text}' is not a threshold; write METRIC>VALUE or METRIC<VALUE in quotes, such as "
            f"'loss>0.01%' or 'latency.p99>100us' (PROFILE stands before --fail-if)"
        )
    where = f"{source} '{text}'"
    parts = (found[name] or "" for name in ("metric", "labels", "operator", "number", "unit"))
    return _Written(text, where, *parts)


def _known(written: _Written, load: Known) -> Metric:
    metric = load.metric(written.metric)
    if metric is None:
        known = [one.name for one in load.metrics]
        meant = nearest(written.metric, known, _NEAR)
        raise bad_input(
            f"{written.source}: there is no metric '{written.metric}' of this profile's kind{meant} "
            f"There are {', '.join(known)}"
        )
    return metric


def _meant(written: _Written, loads: Mapping[str, Known]) -> str:
    """Return the load that a threshold is of. Raises :class:`CommandError` when that is not clear."""
    named = _labels(written.labels, written.source).get(LOAD)
    if named is not None:
        if named in loads:
            return named
        meant = nearest(named, loads, _NEAR)
        raise bad_input(f"{written.source}: no load is called '{named}'{meant} There are {', '.join(loads)}")
    usable = list(loads)
    if len(loads) > 1:
        usable = [name for name, load in loads.items() if load.metric(written.metric)] or usable
    if len(usable) == 1:
        return usable[0]
    raise bad_input(
        f"{written.source}: say of which load, such as {written.metric}{{load={usable[0]}}}; there are "
        f"{', '.join(usable)}"
    )


def _labels(text: str, source: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise bad_input(
                f"{source}: '{text}' is no list of labels; write {{port=0}}, or {{stream=\"a, b\"}} for a "
                f"name with a comma"
            )
        labels[found["name"]] = found["plain"] if found["quoted"] is None else found["quoted"]
        at = found.end()
    return labels


def _limit(number: str, suffix: str, metric: Metric, source: str) -> float:
    value, unit = float(number), metric.unit
    factor = unit.suffixes.get(suffix.lower())
    if factor is not None:
        return value * factor
    if not suffix and value == 0:
        return 0.0
    what = f"'{suffix}' is no unit of {metric.name}" if suffix else f"{metric.name} needs a unit"
    units = ", ".join(word for word in unit.suffixes if word)
    raise bad_input(f"{source}: {what}; write {unit.example} (one of {units or 'k, m, g, or none'})")


def _checked(threshold: Threshold, document: Document | None) -> Checked:
    readings = [] if document is None else threshold.metric.read(document, threshold.labels)
    known = [one for one in readings if one.value is not None]
    if len(known) < len(readings) or not known:
        # Of several, one that is not known may be the worst.
        return Checked(threshold, next((one for one in readings if one.value is None), Reading(None)))
    crossing = [one for one in known if threshold.crossed_by(one.value or 0.0)]
    sign = -1 if threshold.operator.startswith("<") else 1
    return Checked(threshold, max(crossing or known, key=lambda one: sign * (one.value or 0.0)))


def refuse_other_labels(labels: Labels, source: str, metric: str, known: Sequence[str]) -> None:
    """Raise :class:`CommandError` for a label that a metric does not have."""
    for name in labels:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise bad_input(f"{source}: {metric} has no label '{name}'; {has}")


def refuse_unknown(threshold: Threshold, label: str, names: Iterable[str]) -> None:
    """Raise :class:`CommandError` when a label of a threshold names what this run does not have."""
    value = threshold.labels.get(label)
    there = list(dict.fromkeys(names))
    if value is None or value == EACH or value in there:
        return
    meant = nearest(value, there, _NEAR)
    listed = ", ".join(there[:_LISTED_MAX]) + (", ..." if len(there) > _LISTED_MAX else "")
    raise bad_input(
        f"--fail-if '{threshold.text}': this run counts no {label} '{value}'{meant} It has {listed or 'none'}"
    )


def unmeasured(threshold: Threshold, why: str) -> Exception:
    """Return the error for a threshold of what this run does not measure."""
    return bad_input(f"--fail-if '{threshold.text}': {why}")
