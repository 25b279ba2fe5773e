"""Criteria beside loss that each trial must meet: thresholds like those of `allosaur run`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allosaur.run import _thresholds
from allosaur.run._metrics import COUNT, LATENCY, Document, Labels, Metric, Row, times
from allosaur.run._thresholds import Thresholds

_TIMES = {
    "min": "the shortest time",
    "average": "the mean",
    "p50": "half of the packets were as fast",
    "p90": "90 % were",
    "p99": "99 % were",
    "p99.9": "99.9 % were",
    "max": "the longest time",
    "jitter": "the jitter (RFC 3550)",
}


def read(words: Sequence[str]) -> Thresholds:
    """Read the words of `--fail-if`. Raises :class:`CommandError`."""
    return _thresholds.read(words, METRICS)


def failures(criteria: Thresholds, details: Document) -> list[str]:
    """Return why a trial with these details fails."""
    return [str(one) for one in criteria.check(details) if not one.ok]


def _latency(details: Document, _: Labels) -> Iterable[tuple[str, Row]]:
    return [("", details.get("latency") or {})]


_TWICE = "packets that were received too often"
_LATE = "timed packets that arrived after later ones"
METRICS = (
    *times("latency", _TIMES, _latency),
    Metric("duplicates.packets", COUNT, _TWICE, "duplicates"),
    Metric("out_of_order.packets", COUNT, _LATE, "out_of_order", needs=LATENCY),
)
