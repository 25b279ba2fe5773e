"""Multiple Loss Ratio search (RFC 9971), by the package `MLRsearch` of its authors, for all goals at once.

It begins with short trials at the highest load and at what came through there, and makes them longer as the
bounds come closer, so that few trials last as long as those that decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allosaur.search._bounds import Bounds
from allosaur.search._plan import Goal, SearchPlan
from allosaur.search._trial import Journal

if TYPE_CHECKING:
    from MLRsearch import GoalResult, MeasurementResult

_FAILED_RATIO = 0.5
"""What a trial that failed for another reason than loss counts as: half of the load is the next guess."""
_NO_END_S = 1e12
"""The package would look at a clock; here the measurer says when to stop."""
_PRECEDING_TARGETS = 2


def mlr(plan: SearchPlan, journal: Journal) -> list[Bounds]:
    """Search for all goals at once."""
    from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal

    goals = {
        goal: SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=plan.exceed_ratio,
            relative_width=plan.precision,
            initial_trial_duration=plan.first_trial_s,
            final_trial_duration=plan.trial_s,
            duration_sum=plan.decisive_s,
            preceding_targets=_PRECEDING_TARGETS,
            expansion_coefficient=2,
            fail_fast=False,
        )
        for goal in plan.goals
    }
    config = Config(
        goals=goals.values(),
        min_load=plan.load_min,
        max_load=plan.load_max,
        search_duration_max=_NO_END_S,
        warmup_duration=None,
    )
    found = MultipleLossRatioSearch(config=config).search(measurer=_Adapter(journal), debug=lambda _: None)
    return [_bounds(goal, found[of]) for goal, of in goals.items()]


class _Adapter:
    """The measurer that the package asks for."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        from MLRsearch import MeasurementResult

        trial = self._journal(intended_load, intended_duration)
        offered = max(trial.offered, 1)
        lost = trial.lost if trial.offered else offered
        if trial.failures:
            lost = max(lost, round(_FAILED_RATIO * offered), 1)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            loss_count=lost,
        )


def _bounds(goal: Goal, found: GoalResult) -> Bounds:
    lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
    throughput = found.conditional_throughput
    return Bounds(
        goal,
        None if lower is None else float(lower),
        None if upper is None else float(upper),
        None if throughput is None else float(throughput),
    )
