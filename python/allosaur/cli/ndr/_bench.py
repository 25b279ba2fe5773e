"""What a search is made with: a kind of traffic on the server, and trials of it at a load, written once.

A kind of traffic is a :class:`Subject`: what a load of it is, what makes one, and what of it was lost.
"""

from __future__ import annotations

import argparse
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from allosaur.cli import _format
from allosaur.cli._errors import EXIT_SETUP, bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.run import Load, Moment, Result, _summary, drive_one
from allosaur.run._metrics import Metric
from allosaur.run._thresholds import Thresholds
from allosaur.search import Stopped, Trial

if TYPE_CHECKING:
    from allosaur import STLClient

ResultT = TypeVar("ResultT", bound=Result)

Show = Callable[[float], None]
"""Is told now and then how many seconds the traffic of a trial has run."""


@dataclass(frozen=True)
class Case:
    """One profile with its tunables: what gets a limit of its own."""

    name: str
    path: Path
    tunables: Mapping[str, Any] = field(default_factory=dict)
    frame_bytes: int | None = None
    """The frame size that was asked for, with FCS."""


@dataclass(frozen=True)
class Scale:
    """What loads of a case are in other units. A load of streams is packets a second of each port."""

    unit: str
    """`pps`, or `times` for a factor of a stateful profile's flows."""
    load_max: float
    load_min: float
    bps_l1: float | None = None
    """Bits a second at layer 1 that a load of one is."""
    bps_l2: float | None = None
    line_percent: float | None = None
    """Percent of the line rate that a load of one is."""
    flows_per_second: float | None = None

    def said(self, load: float) -> str:
        """Return a load as people read it."""
        if self.unit == "pps":
            return _format.rate(load, "pps")
        return f"{load:,.4g} times"

    def rates(self, load: float | None) -> dict[str, float] | None:
        """Return a load in all units that there are, as plain data."""
        if load is None:
            return None
        factors = {
            "bps_l1": self.bps_l1,
            "bps_l2": self.bps_l2,
            "line_percent": self.line_percent,
            "flows_per_second": self.flows_per_second,
        }
        known = {name: round(load * one, 6) for name, one in factors.items() if one is not None}
        return {"load": load, **known}


@dataclass(frozen=True)
class Counted:
    """What came of a load: packets, or flows."""

    offered: int
    lost: int
    """Of these, what began and came to nothing."""
    missed: int
    """Of these, what could not begin in time."""
    details: dict[str, Any]
    failures: Sequence[str] = ()
    """Why it fails whatever was lost."""


class Subject(ABC, Generic[ResultT]):
    """A kind of traffic whose limit is searched. Its ports are owned as long as the client is connected."""

    mode: ClassVar[str]
    """`stateless` or `stateful`."""
    unit: ClassVar[str]
    """What loads are counted in, as `Scale` has it."""
    load_noun: ClassVar[str]
    """What loads are in a message: `loads` from 1 to 2 pps are no range."""
    metrics: ClassVar[Sequence[Metric]]
    """What criteria may be about."""
    ports: Sequence[int]
    """The ports that send, or whose clients open flows."""

    def __init__(self, client: STLClient, options: argparse.Namespace) -> None:
        self.client = client
        self.options = options

    @staticmethod
    @abstractmethod
    def check(options: argparse.Namespace) -> None:
        """Refuse options that are not for this kind. Raises :class:`CommandError`."""

    @staticmethod
    @abstractmethod
    def connect(options: argparse.Namespace) -> AbstractContextManager[Any]:
        """Connect a client to the server that options name, or to one of our own."""

    @staticmethod
    def try_loading(case: Case, options: argparse.Namespace) -> None:
        """Load a profile before anything is started: one that does not load needs no server."""

    @abstractmethod
    def put(self, case: Case, interrupt: Interrupt) -> Scale:
        """Put the profile of a case onto the server. Raises :class:`CommandError`."""

    @abstractmethod
    def load(self, load: float, duration_s: float) -> Load[ResultT]:
        """Return what makes a load for so long; what came before does not count."""

    @abstractmethod
    def counted(self, result: ResultT) -> Counted:
        """Return what was offered and lost. Raises :class:`CommandError` where nobody knows."""

    def range(self, load_max: float, load_min: float, **units: float) -> Scale:
        """Return the range of loads. Raises :class:`CommandError` for one that is none."""
        if load_min >= load_max:
            raise bad_input(
                f"{self.load_noun} from {load_min:,.6g} to {load_max:,.6g}"
                f"{' pps' if self.unit == 'pps' else ''} are no range; give --min below --max, or "
                "longer trials with -d and --first-trial"
            )
        return Scale(self.unit, load_max, load_min, **units)

    @property
    def shortest_s(self) -> float:
        """How long the shortest trial of a search lasts."""
        return float(min(self.options.first_trial, self.options.duration))


def unmet(criteria: Thresholds, result: Result) -> list[str]:
    """Return which criteria a trial does not meet."""
    return [str(one) for one in criteria.check(_summary.document(result)) if not one.ok]


class Bench(Generic[ResultT]):
    """Makes trials of a subject."""

    def __init__(self, subject: Subject[ResultT], interrupt: Interrupt) -> None:
        self.subject = subject
        self.exit_code: int | None = None
        """What to exit with, when a signal or somebody else ended the trials."""
        self.server_counters: Mapping[str, Any] = {}
        """What the server counted of itself while the last trial ran, where a plug-in asks for it."""
        self._interrupt = interrupt

    def put(self, case: Case) -> Scale:
        """Put the profile of a case onto the server. Raises :class:`CommandError`."""
        return self.subject.put(case, self._interrupt)

    def trial(self, load: float, duration_s: float, show: Show) -> Trial:
        """Make a load and count. Raises :class:`CommandError`, and `Stopped` when no more can follow."""
        options = self.subject.options
        self._check_interrupt()
        self._interrupt.sleep(options.pause)
        begun_s = time.monotonic()

        def shown(moment: Moment) -> None:
            show(moment.elapsed_s)
            if options.plugin is not None:
                stats = self.subject.client.get_stats(list(self.subject.ports), only_given=True)
                self.server_counters = stats["global"]

        result = self.drive(load, duration_s, shown)
        counted = self.subject.counted(result)
        failures = [*unmet(options.criteria, result), *counted.failures]
        not_reached = max(counted.missed - round(options.missed * counted.offered), 0)
        lost = min(counted.lost + not_reached, counted.offered)
        took_s = time.monotonic() - begun_s
        return Trial(load, duration_s, counted.offered, lost, failures, took_s, counted.details)

    def drive(self, load: float, duration_s: float, show: Callable[[Moment], None]) -> ResultT:
        """Make a load, whatever is counted of it. Raises as `trial`."""
        self._check_interrupt()
        made = self.subject.load(load, duration_s)
        result = drive_one(made, self._interrupt, lambda moments: show(moments[0]))
        if result.exit_code is not None:
            self._stop()
        if result.cut_short:
            self.exit_code = EXIT_SETUP
            raise Stopped(result.cut_short)
        return result

    def _check_interrupt(self) -> None:
        if self._interrupt:
            self._stop()

    def _stop(self) -> None:
        self.exit_code = self._interrupt.exit_code
        raise Stopped("stopped")
