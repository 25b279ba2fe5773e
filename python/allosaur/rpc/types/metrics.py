"""Replies of the RPC: metrics.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class MetricFamily(TypedDict):
    """What a metric is."""

    kind: str
    """`counter`, `gauge`, `histogram`, `summary` or `info`."""
    unit: str | None
    """What its values are counted in; `null` where they are just times that something happened."""
    labels: list[str]
    """The names of its labels, in the order in which series have their values."""
    help: str
    """What it says."""
    is_error: bool
    """Whether it stays zero in a run in which nothing goes wrong."""


class Distribution(TypedDict):
    """Many values, and what is known of how they are distributed."""

    count: int
    """How many there are."""
    sum: float
    """Their sum."""
    buckets: NotRequired[list[list[float | int]]]
    """Of a histogram: upper bounds in rising order, and how many values are at most so large."""
    max: NotRequired[float]
    """The largest."""
    min: NotRequired[float]
    """The smallest."""
    quantiles: NotRequired[dict[str, float]]
    """The values that these shares of them do not exceed: `0.5`, `0.9`, `0.99`, `0.999`."""


class Metrics(TypedDict):
    """Reply of `get_metrics`."""

    time_ns: int
    """The server's time of the reading, in nanoseconds: it only grows, and has no date."""
    families: dict[str, MetricFamily]
    """What the metrics are, by their names, also those without series; empty if nobody wants it."""
    metrics: dict[str, list[list[list[str] | int | float | Distribution]]]
    """The series of each metric that has any, by its name: each a list of the values of its
    labels and its value. That is a number, 1 of an `info`; of a `histogram` or a `summary` it
    has `count`, `sum` and, as far as they are known, `buckets` (upper bound, how many values are
    at most so large), `quantiles` (`0.5`, `0.9`, `0.99`, `0.999`), `min` and `max`."""
