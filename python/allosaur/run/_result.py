"""What a load did in a run, and what is said of it: judged, as tables, as a document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from allosaur.cli import _format
from allosaur.cli._options import FOREVER
from allosaur.report._model import Check, Headline, Part, Section
from allosaur.report._numbers import count, share
from allosaur.run._thresholds import NONE, Checked, Thresholds

UNTIL_THEN = "what is shown was counted until then"
"""What is told of a run that was cut short."""


@dataclass(frozen=True)
class Verdict:
    """Whether a run kept its promise, and if not, why."""

    ok: bool
    summary: str
    reasons: Sequence[str] = ()
    thresholds: Sequence[Checked] = ()
    """What became of each threshold."""
    built_in: Mapping[str, Any] = field(default_factory=dict)
    """With thresholds: the verdict without them, and what they allowed."""

    def to_json(self) -> dict[str, Any]:
        """Return the last keys of a run's document."""
        return {
            "ok": self.ok,
            "verdict": self.summary,
            "reasons": list(self.reasons),
            "thresholds": [one.to_json() for one in self.thresholds],
            "built_in": dict(self.built_in) or {"ok": self.ok, "verdict": self.summary, "allowed": []},
        }

    def checks(self) -> list[Check]:
        """Return what a report lists of thresholds: what must hold, whether it did, and what was found."""
        return [
            Check(f"not {one.threshold.text}", one.ok, f"{one.value_text} {one.reading.where}".rstrip())
            for one in self.thresholds
        ]


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

    noun: ClassVar[str]
    """What a report calls the kind of traffic."""
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
    def headlines(self) -> Iterable[Headline]:
        """Return the numbers that stand first in a report."""

    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """Return the charts and tables of a report."""

    def checks(self, thresholds: Thresholds) -> Sequence[Check]:
        """Return what a report says must hold, and whether it did, but for what thresholds decide on."""
        return ()

    @property
    def remedies(self) -> Sequence[str]:
        """What a report says to look at."""
        return self.hints

    def part(self, verdict: Verdict) -> Part:
        """Return what a report shows of it."""
        thresholds = Thresholds(one.threshold for one in verdict.thresholds)
        return Part(
            name=self.noun,
            kind=self.noun,
            ok=verdict.ok,
            verdict=verdict.summary,
            headlines=[*self.headlines()],
            sections=self.sections(),
            checks=[*self.checks(thresholds), *verdict.checks()],
            reasons=verdict.reasons,
            hints=self.remedies,
            notes=[f"Warning: {warning}" for warning in self.all_warnings],
        )


def missed_headline(label: str, missed: int, offered: int) -> Headline:
    """Return how much of the load was late."""
    note = f"{share(missed, offered)} of the load" if missed else "the load was reached"
    return Headline(label, count(missed), note, missed > 0)


def errors_headline(errors: int) -> Headline:
    """Return how often something went wrong."""
    return Headline("Errors counted", count(errors), "" if errors else "all counters are zero", errors > 0)
