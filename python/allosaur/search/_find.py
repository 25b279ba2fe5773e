"""The search by its name, whatever ends it, and how long it will go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from allosaur.search._binary import GUIDE_SHARE, binary
from allosaur.search._bounds import Bounds, relevant_bounds
from allosaur.search._mlr import mlr
from allosaur.search._plan import Goal, SearchPlan
from allosaur.search._trial import Journal, Stopped, Trial


def _guided(plan: SearchPlan, journal: Journal) -> list[Bounds]:
    return binary(plan, journal, GUIDE_SHARE)


ALGORITHMS: Mapping[str, Callable[[SearchPlan, Journal], list[Bounds]]] = {
    "mlr": mlr,
    "binary": binary,
    "guided": _guided,
}


def find(plan: SearchPlan, journal: Journal) -> tuple[list[Bounds], str]:
    """Search. Gives the bounds of each goal, and why the search ended before its time, if it did.

    Of a search that was stopped, the bounds are what its trials say, however short they were.
    """
    try:
        return ALGORITHMS[plan.algorithm](plan, journal), ""
    except Stopped as stop:
        return [relevant_bounds(goal, journal.trials, is_complete=False) for goal in plan.goals], str(stop)


def time_left_s(plan: SearchPlan, trials: Sequence[Trial]) -> float:
    """Estimate how long a search still takes, from what its trials say until now and took."""
    around_s = sum(max(one.took_s - one.duration_s, 0) for one in trials) / max(len(trials), 1)
    is_mlr = plan.algorithm == "mlr"
    left_s = 0.0
    for goal in plan.goals:
        if _is_found(plan, goal, trials):
            continue
        narrowing = _halvings(plan, goal, trials if is_mlr else _decisive(plan, goal, trials))
        if is_mlr:
            # Bounds are narrowed by short trials mostly; then the lower one is confirmed.
            left_s += narrowing * (plan.first_trial_s + around_s) + plan.decisive_s + around_s
        else:
            left_s += max(narrowing, 1) * (plan.trial_s + around_s)
    return left_s


def _is_found(plan: SearchPlan, goal: Goal, trials: Sequence[Trial]) -> bool:
    """Say whether trials that decide tell all about a goal."""
    bounds = relevant_bounds(goal, _decisive(plan, goal, trials))
    if bounds.upper is None:
        return bounds.lower == plan.load_max
    if bounds.lower is None:
        return bounds.upper <= plan.load_min
    return (bounds.upper - bounds.lower) / bounds.upper <= plan.precision


def _decisive(plan: SearchPlan, goal: Goal, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of full length. With MLRsearch a load fails also by a short one."""
    is_mlr = plan.algorithm == "mlr"
    return [
        trial for trial in trials if trial.duration_s >= plan.trial_s or (is_mlr and not trial.passes(goal))
    ]


def _halvings(plan: SearchPlan, goal: Goal, trials: Sequence[Trial]) -> int:
    """Return how often the interval of a goal must still be halved."""
    bounds = relevant_bounds(goal, trials)
    if bounds.upper is None and bounds.lower == plan.load_max:
        return 0
    high = plan.load_max if bounds.upper is None else bounds.upper
    low = plan.load_min if bounds.lower is None else bounds.lower
    width = (high - low) / high
    return max(math.ceil(math.log2(width / plan.precision)), 0) if width > 0 else 0
