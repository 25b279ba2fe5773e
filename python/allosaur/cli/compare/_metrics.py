"""What two results of `allosaur run` have in common: the metrics that thresholds have, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allosaur.cli.compare._rows import Row
from allosaur.run import _kinds
from allosaur.run._metrics import COUNT, Metric

ALIKE = ("profile", "tunables", "mode", "multiplier", "duration_asked_s", "sending_ports")
"""What must be the same of both to say much."""
NOUN = ("metric", "metrics")
NOTHING = "have no metric in common"
TOLERANCE = 0.05
"""Two runs of the same differ by so much without a reason, where the user does not say."""


def rows(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float | None) -> Iterator[Row]:
    """Return each metric that the first has measured."""
    share = TOLERANCE if tolerance is None else tolerance
    loads_after = _loads(after)
    for load, result in _loads(before).items():
        for metric in _compared(result):
            after_by_place = _readings(metric, loads_after.get(load, {}))
            for where, value in _readings(metric, result).items():
                place = ", ".join(filter(None, (load, where)))
                name = f"{metric.name} ({place})" if place else metric.name
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
    kinds = _kinds.KINDS
    # One that names no kind is of streams, which are the last.
    kind = next((one for one in kinds if one.mode == result.get("mode")), kinds[-1])
    return [metric for metric in kind.load().metrics if metric.unit is not COUNT or metric.decides]


def _loads(result: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the loads of a run by name; that of a run of one has none."""
    several = result.get("loads")
    if not several:
        return {"": result}
    return {name: {"mode": one.get("kind"), **one} for name, one in several.items()}


def _readings(metric: Metric, result: Mapping[str, Any]) -> dict[str, float | None]:
    try:
        return {one.where: one.value for one in metric.read(result, {})}
    except (KeyError, TypeError):
        # An older result, from before there was this metric.
        return {}
