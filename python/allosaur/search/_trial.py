"""One trial, and the journal of all of them.

A trial sends one load for one duration and counts (RFC 2544, section 23: "A particular test consists of
multiple trials. Each trial returns one piece of information, for example the loss rate at a particular input
frame rate.").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allosaur.search._plan import Goal


@dataclass(frozen=True)
class Trial:
    """What one load did in one duration."""

    load: float
    duration_s: float
    """How long it was asked to last."""
    offered: int
    """Packets, or flows, that the load asked for."""
    lost: int
    """Those of them that did not arrive, and those that could not be sent in time: a load that was not
    reached did not pass. RFC 9971 counts the same way."""
    failures: Sequence[str] = ()
    """Why it fails whatever the loss: criteria of the user's that did not hold."""
    took_s: float = 0.0
    """How long it took with all around it: starting, and waiting for what was under way."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else was measured, as plain data."""

    @property
    def loss_ratio(self) -> float:
        """The share that was lost; all of it where nothing was offered."""
        return self.lost / self.offered if self.offered else 1.0

    @property
    def forwarding_rate(self) -> float:
        """The load that came through."""
        return self.load * (1 - self.loss_ratio)

    def passes(self, goal: Goal) -> bool:
        """Say whether the trial reaches the goal."""
        return not self.failures and self.loss_ratio <= goal.loss_ratio


Measurer = Callable[[float, float], Trial]
"""Makes a trial of a load for a duration in seconds. It raises `Stopped` when there shall be no more."""


class Stopped(Exception):
    """The search ends before its time; the message says why. What was found until then still stands."""


class Journal:
    """Makes trials and keeps them."""

    def __init__(
        self,
        measure: Measurer,
        trials_max: int | None = None,
        observe: Callable[[Trial], None] | None = None,
    ) -> None:
        self.trials: list[Trial] = []
        self._measure = measure
        self._trials_max = trials_max
        self._observe = observe

    def __call__(self, load: float, duration_s: float) -> Trial:
        """Make one more trial. Raises `Stopped` when there were as many as there may be."""
        if self._trials_max is not None and len(self.trials) >= self._trials_max:
            raise Stopped(f"{self._trials_max} trials did not reach the precision")
        trial = self._measure(load, duration_s)
        self.trials.append(trial)
        if self._observe is not None:
            self._observe(trial)
        return trial

    @property
    def seconds(self) -> float:
        """How long all trials together lasted."""
        return sum(trial.duration_s for trial in self.trials)
