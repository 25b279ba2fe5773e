"""What trials say of a goal: the highest load that passes, and the lowest that fails.

These are the relevant bounds of RFC 9971. The upper one is the lowest load that fails; the lower one is the
highest that passes below it. So a load that passes above one that failed counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from allosaur.search._plan import Goal
from allosaur.search._trial import Trial


@dataclass(frozen=True)
class Bounds:
    """Between which loads the limit of a goal lies."""

    goal: Goal
    lower: float | None
    """The highest load that passes, which is what is reported; `None` when none does."""
    upper: float | None
    """The lowest load that fails; `None` when none does."""
    throughput: float | None
    """What came through at the lower bound: the conditional throughput of RFC 9971."""
    is_complete: bool = True
    """Whether the search ended by itself, with the precision that was asked for."""

    @property
    def width(self) -> float | None:
        """How far the bounds are apart, as a share of the upper one; `None` without both."""
        if self.lower is None or self.upper is None:
            return None
        return (self.upper - self.lower) / self.upper


def relevant_bounds(
    goal: Goal, trials: Iterable[Trial], least_s: float = 0.0, is_complete: bool = True
) -> Bounds:
    """Return the bounds by single trials of at least this duration: a load fails when any of its trials does.

    Of trials at the same load, only those of the longest duration count.
    """
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        if trial.duration_s >= least_s:
            by_load.setdefault(trial.load, []).append(trial)
    lower: Trial | None = None
    upper: float | None = None
    for load in sorted(by_load):
        longest_s = max(trial.duration_s for trial in by_load[load])
        decisive = [trial for trial in by_load[load] if trial.duration_s == longest_s]
        if not all(trial.passes(goal) for trial in decisive):
            upper = load
            break
        lower = max(decisive, key=lambda trial: trial.loss_ratio)
    return Bounds(
        goal,
        None if lower is None else lower.load,
        upper,
        None if lower is None else lower.forwarding_rate,
        is_complete,
    )
