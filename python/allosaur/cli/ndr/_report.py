"""The report of a search for limits: what passes, the loss at each load, how the search went."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allosaur.cli import _again, _format, _run
from allosaur.cli.ndr._cases import FRAME_LOSS
from allosaur.cli.ndr._progress import percent
from allosaur.cli.ndr._result import CaseResult
from allosaur.report._latency import LatencyRow, latency_section
from allosaur.report._model import Chart, Headline, Part, Report, Section, Series, Table, number, text
from allosaur.report._numbers import short
from allosaur.report._scale import Axis, linear_axis, named_axis
from allosaur.report._streams import StreamLatency
from allosaur.search import Bounds, Trial

_COLUMNS = ("loss up to", "passes", "fails", "came through", "bits at layer 1", "of the line")
_NOTE = "Passes: the highest load whose trials passed. Fails: the lowest load above it that did not."
_HEADLINES_MAX = 6
_TRIALS_MAX = 200
"""Rows of the table of trials of one case; the first ones say least."""


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
        sections=_sections(results),
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


def _sections(results: Sequence[CaseResult]) -> list[Section]:
    columns = [text(""), *map(number, _COLUMNS)]
    rows = [_limit_row(one, bounds) for one in results for bounds in one.bounds]
    charts = [_over_cases(results)] if len(results) > 1 else []
    of_cases = [one for place, case in enumerate(results) for one in _case_sections(f"case-{place}", case)]
    return [Section("Limits", charts, [Table("The limit of each goal", columns, rows)], _NOTE), *of_cases]


def _limit_row(result: CaseResult, bounds: Bounds) -> list[str]:
    scale, rates = result.scale, result.scale.rates(bounds.lower) or {}
    loads = (bounds.lower, bounds.upper, bounds.throughput)
    return [
        f"{result.case.name} {bounds.goal.name}",
        percent(bounds.goal.loss_ratio),
        *("" if one is None else scale.said(one) for one in loads),
        _format.rate(rates["bps_l1"], "bps") if rates.get("bps_l1") else "",
        f"{rates['line_percent']:.3g} %" if rates.get("line_percent") else "",
    ]


def _over_cases(results: Sequence[CaseResult]) -> Chart:
    """Return what passes in each case, for each goal."""
    unit, names = results[0].scale.unit, [one.case.name for one in results]
    found = [
        (place, bounds.goal.name, bounds.lower) for place, one in enumerate(results) for bounds in one.bounds
    ]
    lines = [
        Series(goal, [(place + 0.5, lower) for place, name, lower in found if name == goal])
        for goal in dict.fromkeys(goal for _, goal, _ in found)
    ]
    load, place = max(((lower or 0.0, -place) for place, _, lower in found), default=(0.0, 0))
    sentence = f"The highest limit is {short(load, unit)}, of {names[-place]}."
    y = _load_axis([lower for _, _, lower in found], unit)
    return Chart("What passes", unit, lines, "points", sentence, named_axis(names), y, "limits")


def _case_sections(name: str, result: CaseResult) -> list[Section]:
    case, unit = result.case.name, result.scale.unit
    curve = [_trial(one) for one in result.tests.get(FRAME_LOSS, {}).get("trials", ())]
    charts = [_search_chart(name, result), _loss_chart(f"{name}-loss", "Loss by load", result.trials, unit)]
    charts += [_loss_chart(f"{name}-curve", "Frame loss rate", curve, unit)] if curve else []
    notes = [f"{test['summary'][0].upper()}{test['summary'][1:]}." for test in result.tests.values()]
    latency = [
        LatencyRow(f"{100 * share:g} % of {result.first.goal.name}", one.offered - one.lost, times)
        for share, one in result.points
        if result.first is not None and (times := _times(one)) is not None
    ]
    columns = [text("trial"), *map(number, ("load", "duration", "offered", "lost", "loss"))]
    rows = [_trial_row(result, place, trial) for place, trial in enumerate(result.trials, 1)]
    table = Table("Each trial", [*columns, text("failed by")], rows[-_TRIALS_MAX:])
    return [
        Section(case, charts, note=" ".join(notes)),
        latency_section(f"Latency of {case}", name, latency),
        Section(f"Trials of {case}", tables=[table], is_folded=True),
    ]


def _trial_row(result: CaseResult, place: int, trial: Trial) -> list[str]:
    return [
        str(place),
        result.scale.said(trial.load),
        f"{trial.duration_s:.3g} s",
        f"{trial.offered:,}",
        f"{trial.lost:,}",
        percent(trial.loss_ratio),
        "; ".join(trial.failures),
    ]


def _search_chart(name: str, result: CaseResult) -> Chart:
    """Return how the loads of trials came to the limits."""
    trials, unit = result.trials, result.scale.unit
    last = float(max(len(trials), 2))
    lines = [Series("load of the trial", [(float(at), one.load) for at, one in enumerate(trials, 1)])]
    lines += [
        Series(f"{one.goal.name} passes", [(1.0, one.lower), (last, one.lower)])
        for one in result.bounds
        if one.lower is not None
    ]
    step = max(round(last / 6), 1)
    ticks = tuple((float(place), str(place)) for place in range(1, int(last) + 1, step))
    sentence = f"{len(trials)} trials, of {sum(one.duration_s for one in trials):.3g} s together."
    x = Axis(1.0, last, ticks, lambda x: f"trial {x:.0f}")
    y = _load_axis([*(one.load for one in trials), *(one.lower for one in result.bounds)], unit)
    return Chart("The search", unit, lines, "points", sentence, x, y, f"{name}-search")


def _loss_chart(name: str, title: str, trials: Sequence[Trial], unit: str) -> Chart:
    """Return the loss at each load; of trials at the same load, that of the longest."""
    longest: dict[float, Trial] = {}
    for trial in trials:
        if trial.load not in longest or trial.duration_s >= longest[trial.load].duration_s:
            longest[trial.load] = trial
    points = [(load, 100 * longest[load].loss_ratio) for load in sorted(longest)]
    most = max((value for _, value in points), default=0.0)
    sentence = f"The most was {most:.3g} %." if most else "Nothing was lost at any load."
    x, y = _load_axis([*longest], unit), linear_axis(most, say=lambda value: f"{value:.3g} %")
    return Chart(title, "percent", [Series("lost", points)], "points", sentence, x, y, name)


def _load_axis(loads: Sequence[float | None], unit: str) -> Axis:
    highest = max((one for one in loads if one is not None), default=0.0)
    return replace(linear_axis(highest), say=lambda value: short(value, unit))


def _trial(fields: dict[str, Any]) -> Trial:
    names = ("load", "duration_s", "offered", "lost", "failures", "took_s")
    return Trial(*(fields[name] for name in names))


def _times(trial: Trial) -> StreamLatency | None:
    times = trial.details.get("latency")
    return None if not times else StreamLatency(**{"jitter_us": 0.0, **times})
