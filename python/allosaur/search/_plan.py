"""What is searched for, and how: goals, loads, precision and durations.

NDR and PDR are the words of FD.io's CSIT: "NON DROP RATE (NDR): packet and bandwidth throughput at PLR=0%",
and the same at a packet loss ratio (PLR) of 0.5 % for the partial drop rate. The throughput of RFC 1242,
section 3.17, is the NDR: "The maximum rate at which none of the offered frames are dropped by the device."
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A share of loss that is allowed, with a name: a goal of RFC 9971, whose goal loss ratio this is."""

    name: str
    loss_ratio: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.loss_ratio < 1:
            raise ValueError(f"{self.name}: a loss of {self.loss_ratio:g} is not a share of 0 up to 1")


NDR = Goal("ndr")
PDR = Goal("pdr", 0.005)


@dataclass(frozen=True)
class SearchPlan:
    """All that a search is told. Loads are in a unit of the measurer's choice."""

    load_min: float
    """No trial has less. Where this fails, nothing is found."""
    load_max: float
    """No trial has more. Where this passes, it is what was found."""
    goals: Sequence[Goal] = (NDR, PDR)
    algorithm: str = "mlr"
    precision: float = 0.005
    """The bounds end up no further apart than this share of the upper one (RFC 9971: goal width)."""
    trial_s: float = 10.0
    """How long the trials last that decide (RFC 2544, section 24: "SHOULD be at least 60 seconds")."""
    first_trial_s: float = 1.0
    """MLRsearch: how long the first trials last; those that follow are longer and longer."""
    duration_sum_s: float = 0.0
    """MLRsearch: how many seconds of trials at one load decide; at least `trial_s`."""
    exceed_ratio: float = 0.0
    """MLRsearch: the share of these seconds in which trials may fail at a load that still passes."""

    def __post_init__(self) -> None:
        if not 0 < self.load_min < self.load_max:
            raise ValueError(f"loads from {self.load_min:g} to {self.load_max:g} are no range above zero")
        if not 0 < self.precision < 1:
            raise ValueError(f"a precision of {self.precision:g} is not a share between 0 and 1")
        if not 0 < self.first_trial_s <= self.trial_s:
            raise ValueError("the first trials must last longer than zero, and no longer than the others")
        if not self.goals or len({goal.loss_ratio for goal in self.goals}) < len(self.goals):
            raise ValueError("goals must differ in the loss that they allow")
        if not 0 <= self.exceed_ratio < 1:
            raise ValueError(f"an exceed ratio of {self.exceed_ratio:g} is not a share of 0 up to 1")

    @property
    def decisive_s(self) -> float:
        """How many seconds of trials decide about a load."""
        return max(self.duration_sum_s, self.trial_s)
