"""What a load did in a run, and what is said of it: judged, as tables, as a document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allosaur.cli import _format
from allosaur.cli._options import FOREVER
from allosaur.report import Part
from allosaur.run._thresholds import NONE, Thresholds


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a load ran, as far as its driver knows."""

    duration_asked_s: float = FOREVER
    """How long it should run, or `FOREVER`."""
    elapsed_s: float = 0.0
    """Seconds in which the load was made."""
    closing_s: float = 0.0
    """Seconds after that until all of it had ended."""
    overdue: bool = False
    """It went on long after its end, and was stopped from here."""
    exit_code: int | None = None
    """Set when a signal ended the run: what to exit with."""
    cut_short: str = ""
    """Who or what ended the run before its time, and when; the counters are those until then."""
    steal: Sequence[str] = ()
    """What the host of this virtual machine took away meanwhile, in words, where load was missed."""


@dataclass(frozen=True, kw_only=True)
class Result(Ran, ABC):
    """What a load did. A kind of traffic adds what it counted, and the rules by which it is judged."""

    warnings: Sequence[str] = ()
    profile_warnings: Sequence[str] = ()
    """What the profile was warned of when it was loaded, which is printed already."""
    hints: Sequence[str] = ()
    """What to look at."""
    is_over: bool = True
    """Whether the traffic has ended: what runs is judged by what it did so far."""

    @property
    def all_warnings(self) -> list[str]:
        """The warnings of the profile and of the server."""
        return [*self.profile_warnings, *self.warnings]

    @abstractmethod
    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        """Return why it failed; what thresholds decide on is left to them."""

    @abstractmethod
    def praise(self) -> str:
        """Return what was looked at and found right, and nothing else."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the tables for people."""

    def alarms(self) -> list[str]:
        """Return lines about what went wrong, and what to do."""
        return []

    def ended(self) -> str:
        """Return the sentence about how long it ran and what is missing."""
        return f"Ran {_format.seconds(self.elapsed_s)}."

    @abstractmethod
    def brief(self) -> tuple[str, str]:
        """Return what it did and what of it failed, in a few words each, for a table of several loads."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Return what only this kind has in the JSON document; thresholds read it there."""

    @property
    @abstractmethod
    def asked(self) -> str:
        """What was asked for, in words."""

    @property
    def ran(self) -> str:
        """How long it ran, in words."""
        return f"{self.elapsed_s:.2f} s"

    @abstractmethod
    def part(self, verdict: Any) -> Part:
        """Return what a report shows of it; `verdict` is a :class:`Verdict`."""
