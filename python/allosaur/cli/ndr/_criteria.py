"""Criteria beside loss that a trial must meet: `latency.p99>100us`, `out_of_order>0`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from allosaur.cli import _format

LATENCY = {
    "latency.min": "min_us",
    "latency.average": "average_us",
    "latency.p50": "p50_us",
    "latency.p90": "p90_us",
    "latency.p99": "p99_us",
    "latency.p99.9": "p99_9_us",
    "latency.max": "max_us",
    "latency.jitter": "jitter_us",
}
COUNTS = ("duplicates", "out_of_order")
_SHAPE = re.compile(
    r"(?P<metric>[\w.]+)\s*>\s*(?P<value>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>us|µs|ms|s|%|)", re.ASCII
)
_MICROSECONDS = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}


@dataclass(frozen=True)
class Criterion:
    """A trial fails when the metric is above the value."""

    text: str
    metric: str
    most: float
    """Microseconds of a latency, or a count."""

    def __str__(self) -> str:
        """Return it as it was given."""
        return self.text

    @property
    def needs_latency(self) -> bool:
        """Whether only packets that are timed tell."""
        return self.metric in LATENCY or self.metric == "out_of_order"

    def failure(self, details: Mapping[str, Any]) -> str | None:
        """Return why a trial fails, or `None`. What was not measured cannot hold."""
        if self.metric in LATENCY:
            value = (details.get("latency") or {}).get(LATENCY[self.metric])
            if value is None:
                return f"{self.metric} was not measured"
            told = f"{self.metric} was {_format.seconds(value * 1e-6)}"
            return f"{told}, above {_format.seconds(self.most * 1e-6)}" if value > self.most else None
        value = details.get(self.metric)
        if value is None:
            return f"{self.metric} was not counted"
        return f"{self.metric} was {value:,}, above {self.most:g}" if value > self.most else None


def criterion(text: str) -> Criterion:
    """Read a criterion for `argparse`."""
    match = _SHAPE.fullmatch(text.strip())
    metric = match["metric"] if match else ""
    if match is None or metric not in (*LATENCY, *COUNTS):
        names = ", ".join((*LATENCY, *COUNTS))
        raise argparse.ArgumentTypeError(
            f"{text!r} is no criterion; write METRIC>VALUE, such as 'latency.p99>100us'; metrics are {names}"
        )
    unit, value = match["unit"], float(match["value"])
    if (metric in LATENCY) != (unit in _MICROSECONDS):
        wanted = "a time, such as 100us or 2ms" if metric in LATENCY else "a plain number"
        raise argparse.ArgumentTypeError(f"{text!r}: {metric} is compared to {wanted}")
    return Criterion(text.strip(), metric, value * _MICROSECONDS.get(unit, 1.0))
