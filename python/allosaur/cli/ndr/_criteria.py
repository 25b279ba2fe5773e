"""Criteria beside loss that each trial must meet: thresholds like those of `allosaur run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from allosaur.run import _thresholds
from allosaur.run._thresholds import COUNT, TIME, Document, Labels, Metric, Reading, Thresholds

LATENCY = "latency"
"""What metrics of times need."""
_TIMES = {
    "min": ("min_us", "the shortest time"),
    "average": ("average_us", "the mean"),
    "p50": ("p50_us", "half of the packets were as fast"),
    "p90": ("p90_us", "90 % were"),
    "p99": ("p99_us", "99 % were"),
    "p99.9": ("p99_9_us", "99.9 % were"),
    "max": ("max_us", "the longest time"),
    "jitter": ("jitter_us", "the jitter (RFC 3550)"),
}


def read(words: Sequence[str]) -> Thresholds:
    """Read the words of `--fail-if`. Raises :class:`CommandError`."""
    return _thresholds.read(words, METRICS)


def failures(criteria: Thresholds, details: Document) -> list[str]:
    """Return why a trial with these details fails."""
    return [str(one) for one in criteria.check(details) if not one.ok]


def _time(key: str) -> Callable[[Document, Labels], Sequence[Reading]]:
    return lambda details, _: [Reading((details.get("latency") or {}).get(key))]


def _count(key: str) -> Callable[[Document, Labels], Sequence[Reading]]:
    def read_count(details: Document, _: Labels) -> Sequence[Reading]:
        value: Any = details.get(key)
        return [Reading(None if value is None else float(value))]

    return read_count


METRICS = (
    *(
        Metric(f"latency.{name}", TIME, meaning, _time(key), needs=LATENCY)
        for name, (key, meaning) in _TIMES.items()
    ),
    Metric("duplicates.packets", COUNT, "packets that were received too often", _count("duplicates")),
    Metric(
        "out_of_order.packets",
        COUNT,
        "timed packets that arrived after later ones",
        _count("out_of_order"),
        needs=LATENCY,
    ),
)
