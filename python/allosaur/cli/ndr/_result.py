"""What a search found, as plain data: allosaur/schemas/ndr.json is its published form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allosaur.cli.ndr._bench import Case, Scale
from allosaur.search import Bounds, SearchPlan, Trial


@dataclass
class CaseResult:
    """What was measured of one case."""

    case: Case
    scale: Scale
    plan: SearchPlan
    bounds: Sequence[Bounds] = ()
    trials: Sequence[Trial] = ()
    measured: list[Trial] = field(default_factory=list)
    """All trials: those of the search, to warm up, at shares of the limit, and of further tests."""
    points: list[tuple[float, Trial]] = field(default_factory=list)
    """Trials at shares of the first limit, after the search."""
    tests: dict[str, Any] = field(default_factory=dict)
    """What further tests of RFC 2544 found, by name."""
    stopped: str = ""
    """Why the search ended before its time."""
    is_stopped_on_purpose: bool = False
    """Whether a plug-in ended it, so that what was found is what was wanted."""
    seconds: float = 0.0
    """How long all of it took."""

    @property
    def first(self) -> Bounds | None:
        """The bounds of the goal that allows the least loss."""
        return min(self.bounds, key=lambda one: one.goal.loss_ratio, default=None)

    @property
    def refuted(self) -> list[tuple[float, Trial]]:
        """The points at or below the first limit that do not pass, though the limit is said to.

        Where a share of the trials may fail at a limit, one that fails contradicts nothing.
        """
        if self.first is None or self.plan.exceed_ratio:
            return []
        goal = self.first.goal
        return [(share, one) for share, one in self.points if share <= 1 and not one.passes(goal)]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        plan = self.plan
        return {
            "name": self.case.name,
            "profile": str(self.case.path),
            "tunables": dict(self.case.tunables),
            "frame_bytes": self.case.frame_bytes,
            "unit": self.scale.unit,
            "load_min": plan.load_min,
            "load_max": plan.load_max,
            "limits": [self._limit(one) for one in self.bounds],
            "trials": [trial_json(one) for one in self.trials],
            "trial_seconds": round(sum(one.duration_s for one in self.trials), 6),
            "points": [{"share": share, **trial_json(one)} for share, one in self.points],
            "tests": self.tests,
            "stopped": self.stopped or None,
            "seconds": round(self.seconds, 3),
        }

    def _limit(self, bounds: Bounds) -> dict[str, Any]:
        return {
            "goal": bounds.goal.name,
            "loss_ratio": bounds.goal.loss_ratio,
            "lower": self.scale.rates(bounds.lower),
            "upper": self.scale.rates(bounds.upper),
            "throughput": self.scale.rates(bounds.throughput),
            "is_complete": bounds.is_complete,
        }


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as plain data."""
    return {
        "load": trial.load,
        "duration_s": trial.duration_s,
        "offered": trial.offered,
        "lost": trial.lost,
        "loss_ratio": trial.loss_ratio,
        "failures": list(trial.failures),
        "took_s": round(trial.took_s, 6),
        **trial.details,
    }


def search_json(plan: SearchPlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how it was searched, the same for all cases."""
    return {
        "algorithm": plan.algorithm,
        "goals": [{"name": one.name, "loss_ratio": one.loss_ratio} for one in plan.goals],
        "precision": plan.precision,
        "trial_s": plan.trial_s,
        "first_trial_s": plan.first_trial_s,
        "duration_sum_s": plan.decisive_s,
        "exceed_ratio": plan.exceed_ratio,
        **options,
    }
