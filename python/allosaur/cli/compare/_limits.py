"""What two results of `allosaur ndr` have in common: the limits of their cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from allosaur.cli import _format
from allosaur.cli.compare._rows import Row

ALIKE = ("profile", "tunables", "mode", "ports", "search")
"""What must be the same of both to say much."""
NOUN = ("limit", "limits")
NOTHING = "have no case and goal in common"


def rows(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float | None) -> Iterator[Row]:
    """Return each limit of the first; without a tolerance what the two searches cannot tell says nothing."""
    limits_after = _limits(after)
    for (case, goal), (unit, limit) in _limits(before).items():
        other = limits_after.get((case, goal), (unit, {}))[1]
        share = tolerance if tolerance is not None else _width(limit) + _width(other)
        yield Row(f"{case} {goal}", _load(limit), _load(other), share, _pps if unit == "pps" else _times)


def objects(found: list[Row], before: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows as plain data."""
    keys = [(case, goal, unit) for (case, goal), (unit, _) in _limits(before).items()]
    return [
        {
            "case": case,
            "goal": goal,
            "unit": unit,
            "before": row.before,
            "after": row.after,
            "tolerance": row.tolerance,
            "change": row.change,
            "result": row.word,
        }
        for row, (case, goal, unit) in zip(found, keys, strict=True)
    ]


def _pps(load: float) -> str:
    return _format.rate(load, "pps")


def _times(load: float) -> str:
    return f"{load:,.4g} times"


def _limits(result: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, Mapping[str, Any]]]:
    return {
        (case["name"], limit["goal"]): (case["unit"], limit)
        for case in result["cases"]
        for limit in case["limits"]
    }


def _load(limit: Mapping[str, Any]) -> float | None:
    bound = limit.get("lower")
    return None if bound is None else float(bound["load"])


def _width(limit: Mapping[str, Any]) -> float:
    """Return how far the bounds of a limit are apart: what a measurement cannot tell."""
    low, high = limit.get("lower"), limit.get("upper")
    return (high["load"] - low["load"]) / high["load"] if low and high else 0.0
