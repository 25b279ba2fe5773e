"""The HTML report of a search for limits: what passes, what was lost at which load, how the search went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allosaur.report import _scale
from allosaur.report._chart import Chart, Line, charts_html
from allosaur.report._latency import LatencyRow, latency_section
from allosaur.report._numbers import short
from allosaur.report._page import Check, Headline, Page, Section, write_page
from allosaur.report._streams import StreamLatency
from allosaur.report._table import number, table, text

_TRIALS_MAX = 200
"""Rows of the table of trials of one case; the first ones say least."""


@dataclass(frozen=True)
class Limit:
    """What was found of one goal: loads, and the words for them."""

    goal: str
    lower: float | None
    upper: float | None
    cells: Sequence[str]
    """What the table says: the loss that is allowed, what passes, what fails, the rates of what passes."""


@dataclass(frozen=True)
class LimitTrial:
    """One trial of the search."""

    load: float
    duration_s: float
    loss_percent: float
    cells: Sequence[str]
    """What the table says: load, duration, offered, lost, share, why it failed."""


@dataclass(frozen=True)
class LimitCase:
    """One case: a profile, or a frame size of it."""

    name: str
    unit: str
    limits: Sequence[Limit]
    trials: Sequence[LimitTrial]
    latency: Sequence[tuple[str, int, StreamLatency]] = ()
    """Of trials at shares of the limit: a name, what was received, and the times."""
    loss_curve: Sequence[LimitTrial] = ()
    """Trials at steps of the highest load."""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class LimitReport:
    """All that a report of limits shows."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    cases: Sequence[LimitCase]
    columns: Sequence[str] = ()
    """The titles of a limit's cells."""
    headlines: Sequence[Headline] = ()
    checks: Sequence[Check] = ()
    reasons: Sequence[str] = ()
    reproduce: Sequence[str] = ()
    profile: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


def write_limit_report(path: Path, report: LimitReport) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    sections = [_limits_section(report)]
    for place, case in enumerate(report.cases):
        sections += [*_case_sections(f"case-{place}", case)]
    page = Page(
        report.title,
        report.verdict,
        report.ok,
        report.facts,
        sections,
        report.headlines,
        report.reasons,
        (),
        report.checks,
        report.reproduce,
        report.profile,
        report.notes,
    )
    write_page(path, page)


def _limits_section(report: LimitReport) -> Section:
    rows = [(f"{case.name} {limit.goal}", *limit.cells) for case in report.cases for limit in case.limits]
    columns = [text(""), *map(number, report.columns)]
    charts = [_over_cases(report.cases)] if len(report.cases) > 1 else []
    note = "Passes: the highest load whose trials passed. Fails: the lowest load above it that did not."
    return Section("Limits", [charts_html(charts), table("The limit of each goal", columns, rows)], note=note)


def _over_cases(cases: Sequence[LimitCase]) -> Chart:
    goals = list(dict.fromkeys(limit.goal for case in cases for limit in case.limits))
    lines = [
        Line(
            goal,
            [
                (place + 0.5, limit.lower)
                for place, case in enumerate(cases)
                for limit in case.limits
                if limit.goal == goal
            ],
            index,
            index,
        )
        for index, goal in enumerate(goals)
    ]
    names = [case.name for case in cases]
    best = max(
        ((limit.lower or 0.0, case.name) for case in cases for limit in case.limits), default=(0.0, "")
    )
    return Chart(
        "limits",
        "What passes",
        cases[0].unit,
        f"The highest limit is {short(best[0], cases[0].unit)}, of {best[1]}.",
        lines,
        _scale.named_axis(names),
        _scale.linear_axis(_scale.highest(line.points for line in lines)),
        say_x=lambda x: names[min(int(x), len(names) - 1)],
        say_y=lambda value: short(value, cases[0].unit),
        has_dots=True,
    )


def _case_sections(name: str, case: LimitCase) -> list[Section]:
    trials = case.trials[-_TRIALS_MAX:]
    columns = [
        text("trial"),
        *map(number, ("load", "duration", "offered", "lost", "loss")),
        text("failed by"),
    ]
    first = len(case.trials) - len(trials) + 1
    rows = [(str(place), *trial.cells) for place, trial in enumerate(trials, first)]
    charts = [_search_chart(name, case), _loss_chart(f"{name}-loss", "Loss by load", case.trials, case.unit)]
    if case.loss_curve:
        charts.append(_loss_chart(f"{name}-curve", "Frame loss rate", case.loss_curve, case.unit))
    latency = [LatencyRow(label, received, times) for label, received, times in case.latency]
    return [
        Section(case.name, [charts_html(charts)], note=" ".join(case.notes)),
        latency_section(f"Latency of {case.name}", name, latency),
        Section(f"Trials of {case.name}", [table("Each trial", columns, rows)], is_folded=True),
    ]


def _search_chart(name: str, case: LimitCase) -> Chart:
    """Return how the loads of trials came to the limits."""
    loads = [(float(place), trial.load) for place, trial in enumerate(case.trials, 1)]
    last = float(max(len(loads), 2))
    lines = [Line("load of the trial", loads, 0, 0)]
    lines += [
        Line(f"{limit.goal} passes", [(1.0, limit.lower), (last, limit.lower)], index, index)
        for index, limit in enumerate(case.limits, 1)
        if limit.lower is not None
    ]
    step = max(round(last / 6), 1)
    ticks = tuple((float(place), str(place)) for place in range(1, int(last) + 1, step))
    say: Callable[[float], str] = lambda value: short(value, case.unit)  # noqa: E731
    return Chart(
        f"{name}-search",
        "The search",
        case.unit,
        f"{len(loads)} trials, of {sum(one.duration_s for one in case.trials):.3g} s together.",
        lines,
        _scale.Axis(1.0, last, ticks),
        _scale.linear_axis(_scale.highest(line.points for line in lines)),
        say_x=lambda x: f"trial {x:.0f}",
        say_y=say,
        has_dots=True,
    )


def _loss_chart(name: str, title: str, trials: Sequence[LimitTrial], unit: str) -> Chart:
    """Return the loss at each load; of trials at the same load, that of the longest."""
    longest: dict[float, LimitTrial] = {}
    for trial in trials:
        if trial.load not in longest or trial.duration_s >= longest[trial.load].duration_s:
            longest[trial.load] = trial
    points = [(load, longest[load].loss_percent) for load in sorted(longest)]
    most = max((value for _, value in points), default=0.0)
    axis = _scale.linear_axis(max((load for load, _ in points), default=1.0))
    say: Callable[[float], str] = lambda value: f"{value:.3g} %"  # noqa: E731
    return Chart(
        name,
        title,
        "percent",
        f"The most was {most:.3g} %." if most else "Nothing was lost at any load.",
        [Line("lost", points, 1, 0)],
        axis,
        _scale.linear_axis(most, say=say),
        say_x=lambda x: short(x, unit),
        say_y=say,
        has_dots=True,
    )
