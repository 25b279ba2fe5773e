"""The HTML report of a search, from its results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allosaur.cli import _again, _format, _run
from allosaur.cli.ndr._names import FRAME_LOSS
from allosaur.cli.ndr._progress import percent
from allosaur.cli.ndr._result import CaseResult
from allosaur.report import (
    Headline,
    Limit,
    LimitCase,
    LimitTrial,
    Part,
    Report,
    StreamLatency,
    limit_sections,
)
from allosaur.search import Trial

_COLUMNS = ("loss up to", "passes", "fails", "came through", "bits at layer 1", "of the line")
_HEADLINES_MAX = 6


def report(
    options: argparse.Namespace, results: Sequence[CaseResult], ok: bool, verdict: str, reasons: Sequence[str]
) -> Report:
    """Return what the report shows."""
    trials = [trial for one in results for trial in one.trials]
    plan = results[0].plan
    asked = f"{plan.algorithm} search, to {percent(plan.precision)}, trials up to {plan.trial_s:g} s"
    took = _format.seconds(sum(one.seconds for one in results))
    sent_s = sum(one.duration_s for one in trials)
    ran = f"{len(trials)} trials of {_format.seconds(sent_s)} together, in {took}"
    facts = _run.facts(options, asked, plan.trial_s, ran)
    facts["Asked"] = asked
    path = Path(options.profile)
    part = Part(
        name=path.stem,
        kind="limits",
        ok=ok,
        verdict=verdict,
        headlines=_headlines(results),
        sections=limit_sections([_case(one) for one in results], _COLUMNS),
        reasons=reasons,
        profile=_run.source(path),
    )
    title, again = f"Limits of {path.name}", [_again.command(options)]
    return Report(title, f"{verdict}.", ok, facts, [part], reproduce=again)


def _headlines(results: Sequence[CaseResult]) -> list[Headline]:
    found = []
    for one in results:
        for bounds in one.bounds:
            value = "none" if bounds.lower is None else one.scale.said(bounds.lower)
            note = "" if bounds.is_complete else "until it was stopped"
            found.append(
                Headline(f"{bounds.goal.name.upper()}, {one.case.name}", value, note, bounds.lower is None)
            )
    return found[:_HEADLINES_MAX]


def _case(result: CaseResult) -> LimitCase:
    scale = result.scale
    limits = []
    for bounds in result.bounds:
        rates = scale.rates(bounds.lower) or {}
        loads = [bounds.lower, bounds.upper, bounds.throughput]
        cells = [percent(bounds.goal.loss_ratio), *("" if one is None else scale.said(one) for one in loads)]
        cells.append(_format.rate(rates["bps_l1"], "bps") if rates.get("bps_l1") else "")
        cells.append(f"{rates['line_percent']:.3g} %" if rates.get("line_percent") else "")
        limits.append(Limit(bounds.goal.name, bounds.lower, bounds.upper, cells))
    curve = result.tests.get(FRAME_LOSS, {}).get("trials", ())
    return LimitCase(
        result.case.name,
        scale.unit,
        limits,
        [_trial(result, one) for one in result.trials],
        [
            (f"{100 * share:g} % of {result.first.goal.name}", one.offered - one.lost, times)
            for share, one in result.points
            if result.first is not None and (times := _times(one)) is not None
        ],
        [_trial(result, _again_trial(one)) for one in curve],
        [f"{test['summary'][0].upper()}{test['summary'][1:]}." for test in result.tests.values()],
    )


def _trial(result: CaseResult, trial: Trial) -> LimitTrial:
    cells = (
        result.scale.said(trial.load),
        f"{trial.duration_s:.3g} s",
        f"{trial.offered:,}",
        f"{trial.lost:,}",
        percent(trial.loss_ratio),
        "; ".join(trial.failures),
    )
    return LimitTrial(trial.load, trial.duration_s, 100 * trial.loss_ratio, cells)


def _again_trial(fields: dict[str, Any]) -> Trial:
    names = ("load", "duration_s", "offered", "lost", "failures", "took_s")
    return Trial(*(fields[name] for name in names))


def _times(trial: Trial) -> StreamLatency | None:
    times = trial.details.get("latency")
    return None if not times else StreamLatency(**{"jitter_us": 0.0, **times})
