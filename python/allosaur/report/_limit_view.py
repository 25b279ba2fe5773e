"""What a report shows of a search for limits: what passes, the loss at each load, and each trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from allosaur.report import _scale
from allosaur.report._latency import LatencyRow, latency_section
from allosaur.report._model import Chart, Section, Series, Table, number, text
from allosaur.report._numbers import short
from allosaur.report._streams import StreamLatency

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


def limit_sections(cases: Sequence[LimitCase], columns: Sequence[str]) -> list[Section]:
    """Return the charts and tables; `columns` are the titles of a limit's cells."""
    rows = [(f"{case.name} {limit.goal}", *limit.cells) for case in cases for limit in case.limits]
    table = Table("The limit of each goal", [text(""), *map(number, columns)], rows)
    charts = [_over_cases(cases)] if len(cases) > 1 else []
    note = "Passes: the highest load whose trials passed. Fails: the lowest load above it that did not."
    of_cases = [_case_sections(f"case-{place}", case) for place, case in enumerate(cases)]
    return [Section("Limits", charts, [table], note), *(one for some in of_cases for one in some)]


def _over_cases(cases: Sequence[LimitCase]) -> Chart:
    goals = list(dict.fromkeys(limit.goal for case in cases for limit in case.limits))
    lines = [
        Series(
            goal,
            [
                (place + 0.5, limit.lower)
                for place, case in enumerate(cases)
                for limit in case.limits
                if limit.goal == goal
            ],
        )
        for goal in goals
    ]
    names = [case.name for case in cases]
    best = max(
        ((limit.lower or 0.0, case.name) for case in cases for limit in case.limits), default=(0.0, "")
    )
    return Chart(
        *("What passes", cases[0].unit, lines, "points"),
        f"The highest limit is {short(best[0], cases[0].unit)}, of {best[1]}.",
        _scale.named_axis(names),
        _load_axis(lines, cases[0].unit),
        "limits",
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
        Section(case.name, charts, note=" ".join(case.notes)),
        latency_section(f"Latency of {case.name}", name, latency),
        Section(f"Trials of {case.name}", tables=[Table("Each trial", columns, rows)], is_folded=True),
    ]


def _search_chart(name: str, case: LimitCase) -> Chart:
    """Return how the loads of trials came to the limits."""
    loads = [(float(place), trial.load) for place, trial in enumerate(case.trials, 1)]
    last = float(max(len(loads), 2))
    lines = [Series("load of the trial", loads)]
    lines += [
        Series(f"{limit.goal} passes", [(1.0, limit.lower), (last, limit.lower)])
        for limit in case.limits
        if limit.lower is not None
    ]
    step = max(round(last / 6), 1)
    ticks = tuple((float(place), str(place)) for place in range(1, int(last) + 1, step))
    return Chart(
        *("The search", case.unit, lines, "points"),
        f"{len(loads)} trials, of {sum(one.duration_s for one in case.trials):.3g} s together.",
        _scale.Axis(1.0, last, ticks, lambda x: f"trial {x:.0f}"),
        _load_axis(lines, case.unit),
        f"{name}-search",
    )


def _load_axis(lines: Sequence[Series], unit: str) -> _scale.Axis:
    axis = _scale.linear_axis(_scale.highest(one.points for one in lines))
    return replace(axis, say=lambda value: short(value, unit))


def _loss_chart(name: str, title: str, trials: Sequence[LimitTrial], unit: str) -> Chart:
    """Return the loss at each load; of trials at the same load, that of the longest."""
    longest: dict[float, LimitTrial] = {}
    for trial in trials:
        if trial.load not in longest or trial.duration_s >= longest[trial.load].duration_s:
            longest[trial.load] = trial
    points = [(load, longest[load].loss_percent) for load in sorted(longest)]
    most = max((value for _, value in points), default=0.0)
    loads = Series("lost", points)
    say: Callable[[float], str] = lambda value: f"{value:.3g} %"  # noqa: E731
    return Chart(
        *(title, "percent", [loads], "points"),
        f"The most was {most:.3g} %." if most else "Nothing was lost at any load.",
        _load_axis([Series("", [(0.0, load) for load in longest])], unit),
        _scale.linear_axis(most, say=say),
        name,
    )
