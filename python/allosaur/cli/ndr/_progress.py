"""What is shown while a search runs: the trial, the bounds until now, and how long it may still take."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from allosaur.cli import _format
from allosaur.cli._fitted import FittedLine
from allosaur.cli._live import showing
from allosaur.cli.ndr._bench import Scale
from allosaur.search import Journal, SearchPlan, Trial, relevant_bounds, time_left_s

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class SearchMoment:
    """What is known at a time of a search."""

    title: str
    elapsed_s: float
    doing: str
    """The trial that runs now."""
    last: str = ""
    """What came of the one before."""
    bounds: Sequence[str] = ()
    left_s: float | None = None
    has_tests: bool = False
    """Further tests follow, of which nobody knows how long they take."""

    @property
    def left(self) -> str:
        """How long it may take, roughly."""
        if self.left_s is None:
            return ""
        return f"about {_roughly(self.left_s)} left{', and further tests' if self.has_tests else ''}"


@contextlib.contextmanager
def searching(stream: TextIO | None = None) -> Iterator[SearchProgress]:
    """Show a search inside the block."""
    with showing(stream, _view, _line) as show:
        yield SearchProgress(lambda moment: show(moment.elapsed_s, moment))


class SearchProgress:
    """What is known of a search, told to `show` whenever it changes."""

    def __init__(self, show: Callable[[SearchMoment], None]) -> None:
        self._show_moment = show
        self._begun_s = time.monotonic()
        self._title = ""
        self._trials = 0
        self._last = ""
        self._bounds: list[str] = []
        self._left_s: float | None = None
        self._after_s = 0.0
        self._has_tests = False
        self._doing = ""
        self._trial_s = 0.0

    def case(self, title: str, after_s: float = 0.0, has_tests: bool = False) -> None:
        """A new case begins. Trials of `after_s` follow its search, and further tests may."""
        self._after_s, self._has_tests = after_s, has_tests
        self._title, self._trials, self._last, self._bounds, self._left_s = title, 0, "", [], None

    def remains(self, left_s: float | None) -> None:
        """The search is over, and what follows takes so long; `None` where nobody knows."""
        self._left_s = left_s

    def begins(self, what: str, duration_s: float) -> None:
        """A trial begins; `what` names it and its load."""
        self._trials += 1
        self._doing, self._trial_s = f"trial {self._trials}, {what}", duration_s
        self.runs(0.0)

    def runs(self, elapsed_s: float) -> None:
        """The traffic of the trial has run so long."""
        elapsed_s = min(elapsed_s, self._trial_s)
        # An estimate may be short; the trial that runs still has its time.
        left_s = None if self._left_s is None else max(self._left_s, self._trial_s) - elapsed_s
        self._show(f"{self._doing}, {elapsed_s:.1f} of {self._trial_s:.3g} s", left_s)

    def ends(self, plan: SearchPlan, journal: Journal, scale: Scale) -> None:
        """A trial of a search has ended."""
        self._last = told(journal.trials[-1], scale)
        self._left_s = time_left_s(plan, journal.trials) + self._after_s
        self._bounds = [_interval(plan, journal.trials, index, scale) for index in range(len(plan.goals))]

    def _show(self, doing: str, left_s: float | None) -> None:
        elapsed_s = time.monotonic() - self._begun_s
        moment = SearchMoment(
            self._title, elapsed_s, doing, self._last, self._bounds, left_s, self._has_tests
        )
        self._show_moment(moment)


def told(trial: Trial, scale: Scale) -> str:
    """Return in words what came of a trial."""
    why = "; ".join(trial.failures)
    return f"{scale.said(trial.load)} lost {percent(trial.loss_ratio)}{f' ({why})' if why else ''}"


def percent(ratio: float) -> str:
    """Return a share in percent: some loss never looks like none."""
    if ratio == 0:
        return "0 %"
    return f"{100 * ratio:.3g} %" if ratio >= 1e-6 else "less than 0.0001 %"


def _interval(plan: SearchPlan, trials: Sequence[Trial], index: int, scale: Scale) -> str:
    bounds = relevant_bounds(plan.goals[index], trials)
    low = scale.said(plan.load_min if bounds.lower is None else bounds.lower)
    if bounds.upper is None:
        return f"{bounds.goal.name}: {low} or more"
    return f"{bounds.goal.name}: {low} to {scale.said(bounds.upper)}"


def _roughly(duration_s: float) -> str:
    if duration_s < 90:
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 5400 else f"{duration_s / 3600:.1f} h"


def _line(moment: SearchMoment) -> str:
    parts = [
        f"{_format.seconds(moment.elapsed_s)}: {moment.title}: {moment.doing}",
        *moment.bounds,
        moment.left,
    ]
    return "; ".join(part for part in parts if part)


def _view(moment: SearchMoment) -> RenderableType:
    from rich.console import Group

    clock = f"  {moment.elapsed_s:.1f} s  {moment.left}  (Ctrl-C stops)"
    lines = [
        f"  {moment.doing}",
        *(f"  before: {text}" for text in [moment.last] if text),
        *(f"  {text}" for text in moment.bounds),
    ]
    return Group(FittedLine(moment.title, clock), *map(FittedLine, lines))
