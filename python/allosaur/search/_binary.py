"""Binary search, as RFC 2544 means it and TRex's `ndr` does it.

RFC 2544, section 26.1: "If fewer frames are received than were transmitted, the rate of the offered stream is
reduced and the test is rerun. The throughput is the fastest rate at which the count of test frames
transmitted by the DUT is equal to the number of test frames sent to it by the test equipment."
"""

from __future__ import annotations

from allosaur.search._bounds import Bounds, relevant_bounds
from allosaur.search._plan import Goal, SearchPlan
from allosaur.search._trial import Journal

GUIDE_SHARE = 0.05
"""How far around the rate that came through at full load TRex's guided search looks first."""


def binary(plan: SearchPlan, journal: Journal, guide_share: float | None = None) -> list[Bounds]:
    """Halve the interval of one goal after the other until it is narrow; trials serve all goals.

    With `guide_share` the first interval is that much around what came through at the highest load.
    """
    return [_bisect(goal, plan, journal, guide_share) for goal in plan.goals]


def _bisect(goal: Goal, plan: SearchPlan, journal: Journal, guide_share: float | None) -> Bounds:
    while True:
        bounds = relevant_bounds(goal, journal.trials, plan.trial_s)
        load = _next_load(plan, journal, bounds, guide_share)
        if load is None:
            return bounds
        journal(load, plan.trial_s)


def _next_load(plan: SearchPlan, journal: Journal, bounds: Bounds, guide_share: float | None) -> float | None:
    """Return what to try next, or `None` at the end."""
    if bounds.upper is None:
        return None if bounds.lower == plan.load_max else plan.load_max
    if bounds.upper <= plan.load_min:
        return None
    low = bounds.lower if bounds.lower is not None else plan.load_min
    if (bounds.upper - low) / bounds.upper <= plan.precision:
        return None if bounds.lower is not None else plan.load_min
    if guide_share is not None:
        tried = {trial.load for trial in journal.trials}
        at_max = next(trial for trial in journal.trials if trial.load == plan.load_max)
        for factor in (1 + guide_share, 1 - guide_share):
            guess = at_max.forwarding_rate * factor
            if low < guess < bounds.upper and guess not in tried:
                return guess
    return (bounds.upper + low) / 2
