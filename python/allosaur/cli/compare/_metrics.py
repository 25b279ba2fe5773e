"""What two results of `allosaur run` have in common: the metrics that thresholds have, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allosaur.cli.compare._rows import Row
from allosaur.run._thresholds import COUNT, Metric
from allosaur.run.flows import _metrics as _flows
from allosaur.run.streams import _metrics as _streams

ALIKE = ("profile", "tunables", "mode", "multiplier", "duration_asked_s", "sending_ports")
"""What must be the same of both to say much."""
NOUN = ("metric", "metrics")
NOTHING = "have no metric in common"
TOLERANCE = 0.05
"""Two runs of the same differ by so much without a reason, where the user does not say."""


def rows(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float | None) -> Iterator[Row]:
    """Return each metric that the first has measured."""
    share = TOLERANCE if tolerance is None else tolerance
    for metric in _compared(before):
        after_by_place = _readings(metric, after)
        for where, value in _readings(metric, before).items():
            name = f"{metric.name} ({where})" if where else metric.name
            other = after_by_place.get(where)
            if value is not None or other is not None:
                yield Row(name, value, other, share, metric.unit.shown, metric.more_is_better)


def objects(found: list[Row], _: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows as plain data."""
    return [
        {
            "metric": row.name,
            "before": row.before,
            "after": row.after,
            "tolerance": row.tolerance,
            "change": row.change,
            "result": row.word,
        }
        for row in found
    ]


def _compared(result: Mapping[str, Any]) -> Sequence[Metric]:
    """Return the metrics that say whether a run went well: not how much there was of it."""
    known = _flows.METRICS if result.get("mode") == "stateful" else _streams.METRICS
    return [metric for metric in known if metric.unit is not COUNT or metric.decides]


def _readings(metric: Metric, result: Mapping[str, Any]) -> dict[str, float | None]:
    try:
        return {one.where: one.value for one in metric.read(result, {})}
    except (KeyError, TypeError):
        # An older result, from before there was this metric.
        return {}
