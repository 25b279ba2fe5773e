"""What a search found, for people: a row for each case and goal, what else was measured, the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.cli import _format
from allosaur.cli.ndr._progress import percent, told
from allosaur.cli.ndr._result import CaseResult
from allosaur.report._latency import LATENCY_COLUMNS
from allosaur.run._result import UNTIL_THEN
from allosaur.search import Bounds, Trial


def text(results: Sequence[CaseResult], ok: bool, verdict: str) -> str:
    """Return all of it."""
    parts = [limits(results)]
    for one in results:
        if one.points:
            parts += ["", points(one)]
        parts += [line for test in one.tests.values() for line in ["", f"{one.case.name}: {test['summary']}"]]
    warnings = dict.fromkeys(
        text for one in results for trial in one.trials for text in trial.details.get("warnings", ())
    )
    parts += ["", *(f"warning: {one}" for one in warnings)]
    trials, searched = (sum(len(found) for found in of) for of in _counted(results))
    sent_s = sum(trial.duration_s for one in results for trial in one.measured)
    took_s = sum(one.seconds for one in results)
    of_search = f", {searched} of them to search" if searched < trials else ""
    parts.append(
        f"{trials} trials of {_format.seconds(sent_s)} together{of_search}; "
        f"all took {_format.seconds(took_s)}."
    )
    parts.append(_format.verdict(ok, f"{verdict}."))
    return "\n".join(parts)


def _counted(results: Sequence[CaseResult]) -> tuple[list[Sequence[Trial]], list[Sequence[Trial]]]:
    return [one.measured for one in results], [one.trials for one in results]


def limits(results: Sequence[CaseResult]) -> str:
    """Return the table of limits: `passes` is the result, `fails` the lowest load that did not pass."""
    header = ["", "loss up to", "passes", "fails", "came through", "bits at layer 1", "of the line"]
    if any(one.scale.unit != "pps" for one in results):
        header = [*header[:4], "came through", "flows a second"]
    rows = [
        [
            f"{one.case.name} {bounds.goal.name}",
            percent(bounds.goal.loss_ratio),
            *_cells(one, bounds, len(header)),
        ]
        for one in results
        for bounds in one.bounds
    ]
    return _format.table(header, rows)


def _cells(result: CaseResult, bounds: Bounds, columns: int) -> list[str]:
    scale = result.scale
    rates = scale.rates(bounds.lower) or {}
    cells = [_said(result, bounds.lower), _said(result, bounds.upper), _said(result, bounds.throughput)]
    if columns == 6:
        return [*cells, _format.rate(rates["flows_per_second"], "cps") if rates else "-"]
    line = f"{rates['line_percent']:.3g} %" if rates.get("line_percent") else "-"
    return [*cells, _format.rate(rates["bps_l1"], "bps") if rates else "-", line]


def _said(result: CaseResult, load: float | None) -> str:
    return "-" if load is None else result.scale.said(load)


def points(result: CaseResult) -> str:
    """Return the table of trials at shares of the first limit."""
    first = result.first
    assert first is not None, "points are shares of a limit"
    columns = [name for name in LATENCY_COLUMNS if name not in ("p90", "jitter")]
    header = [f"{result.case.name}, at", "load", "lost", *columns]
    names = [LATENCY_COLUMNS[name] for name in columns]
    rows = [
        [
            f"{100 * share:g} % of {first.goal.name}",
            result.scale.said(trial.load),
            percent(trial.loss_ratio),
            *(_format.microseconds((trial.details.get("latency") or {}).get(name)) for name in names),
        ]
        for share, trial in result.points
    ]
    return _format.table(header, rows)


def problem(result: CaseResult) -> str | None:
    """Return why a case has no result, or not the one that was asked for; `None` when it has."""
    name = result.case.name
    if result.stopped and not result.is_stopped_on_purpose:
        return f"{name}: the search ended before its time: {result.stopped}; {UNTIL_THEN}"
    missing = [one.goal.name for one in result.bounds if one.lower is None]
    if not missing and (refuted := result.refuted):
        assert result.first is not None, "points are shares of a limit"
        goal = result.first.goal.name
        points = ", ".join(f"{100 * share:g} % of it: {told(one, result.scale)}" for share, one in refuted)
        return (
            f"{name}: the {goal} that was found did not hold when it was measured again ({points}); "
            f"let trials be longer (-d), more of them decide (--sum), or some of them fail (--exceed)"
        )
    if not missing:
        return None
    last = min(result.trials, key=lambda one: one.load, default=None)
    why = "" if last is None else f": {told(last, result.scale)}"
    return (
        f"{name}: no load passes for {' and '.join(missing)}{why}; give a lower --min, or look at the device"
    )
