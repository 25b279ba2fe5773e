"""Emulated clients, as a load: they are loaded, wait until they are ready, and are removed at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._errors import EXIT_SETUP, CommandError, explained
from allosaur.cli._fitted import FittedLine, FittedTable
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.report import Readings
from allosaur.run._load import Load, Moment, Phase, Ran, Server, clock
from allosaur.run._thresholds import Metric, Threshold
from allosaur.run.emulation import _readings
from allosaur.run.emulation._counts import Clients, Counter
from allosaur.run.emulation._metrics import METRICS, counter_metric
from allosaur.run.emulation._result import EmulationResult

if TYPE_CHECKING:
    from rich.console import RenderableType

    from allosaur import EMUClient, EMUNamespaceKey, EMUProfile

READY_S = 10.0
"""How long a run waits for clients to be ready, before it begins all the same."""
_POLL_INTERVAL_S = 0.2
_WATCHED_MAX = 2_000
"""Of more clients only the end says how many are ready: to ask for each takes too long to do all the time."""


@dataclass(frozen=True)
class Source:
    """What to emulate."""

    path: Path
    profile: EMUProfile
    tunables: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False


@dataclass(frozen=True)
class EmulationMoment(Moment):
    """What is known of emulated clients while they are there."""

    elapsed_s: float
    duration_s: float
    clients: Clients

    def line(self, told: set[Any]) -> str:
        one = self.clients
        return (
            f"{clock(self.elapsed_s, self.duration_s)}: {_format.count(one.there)} clients of "
            f"{_format.count(one.asked)} are there, {_format.count(one.ready)} are ready"
        )

    def view(self, title: str) -> RenderableType:
        from rich.console import Group

        table = FittedTable(["", "clients"])
        one = self.clients
        table.add("there", _format.count(one.there))
        style = "bold red" if one.ready < one.asked else ""
        table.add(("ready", style), (_format.count(one.ready), style))
        head = FittedLine(title, f"  {clock(self.elapsed_s, self.duration_s)}  (Ctrl-C stops)")
        return Group(head, table)


class EmulationLoad(Load[EmulationResult]):
    """Emulated clients of a profile."""

    kind = "emulation"
    metrics = METRICS
    shown_metrics = ("allosaur_emulation_",)
    order = -1
    readings: Readings[Clients]

    def __init__(self, source: Source, duration_s: float) -> None:
        self.duration_s = duration_s
        self.client: EMUClient
        self._source = source
        self._asked = sum(len(one.c_map) for one in source.profile.ns_list)
        self._keys: Sequence[EMUNamespaceKey] = ()
        self._ready_s: float | None = None
        self._counters: list[Counter] = []

    def claims(self) -> list[str]:
        return [f"the namespace of {one.key}" for one in self._source.profile.ns_list]

    @property
    def used_ports(self) -> set[int]:
        return {one.key.vport for one in self._source.profile.ns_list}

    @property
    def port_count(self) -> int:
        return 1 + max((one.key.vport for one in self._source.profile.ns_list), default=1)

    @contextlib.contextmanager
    def connect(self, server: Server) -> Iterator[None]:
        from allosaur import EMUClient

        with server.client(EMUClient) as self.client:
            yield

    def metric(self, name: str) -> Metric | None:
        return counter_metric(name)

    def check(self, thresholds: Sequence[Threshold]) -> None:
        with explained("cannot read the emulated clients"):
            there = self.client.get_all_ns()
        if there and not self._source.force:
            raise CommandError(
                "clients are emulated already; remove them with `allosaur emu remove`, or give --force to "
                "replace them",
                EXIT_SETUP,
            )
        if there:
            with explained("cannot remove the emulated clients"):
                self.client.remove_profile()

    def put(self, interrupt: Interrupt) -> None:
        """Load them, and wait until they are ready. Those that are not are for the verdict.

        Other loads may have clients there, in other namespaces.
        """
        with explained(f"profile {self._source.path}"):
            self.client.add_profile(self._source.profile)
            self._keys = [one.key for one in self._source.profile.ns_list]
            begun_s = time.monotonic()
            while not interrupt and time.monotonic() < begun_s + READY_S:
                if self._read().ready >= self._asked:
                    self._ready_s = time.monotonic() - begun_s
                    return
                interrupt.sleep(_POLL_INTERVAL_S)

    def open(self) -> None:
        self.readings = Readings(self._sampled, self._read(), time.monotonic)

    def start(self) -> None:
        """They are there already."""

    def phase(self, now_s: float) -> Phase:
        is_over = self.duration_s != FOREVER and now_s >= self.duration_s
        return Phase.OVER if is_over else Phase.RUNNING

    def moment(self, now_s: float, phase: Phase) -> EmulationMoment:
        return EmulationMoment(now_s, self.duration_s, self.readings.counters)

    def stop(self) -> None:
        """Nothing is sent but what they answer: `clear` removes them, when all is read."""

    def settle(self, elapsed_s: float) -> None:
        self._last = self._read()
        self._counters = _readings.counters(self.client, self._keys)

    def result(self, ran: Ran) -> EmulationResult:
        last = self.readings.counters if ran.cut_short else self._last
        return EmulationResult(
            last,
            self._counters,
            self._ready_s,
            [(one.time_s, one.counters) for one in self.readings.samples],
            self.duration_s,
            elapsed_s=ran.elapsed_s,
            exit_code=ran.exit_code,
            cut_short=ran.cut_short,
        )

    def clear(self) -> None:
        self.client.remove_ns_and_clients(list(self._keys))

    def asked(self) -> dict[str, Any]:
        return {"tunables": dict(self._source.tunables)}

    def _read(self) -> Clients:
        return _readings.clients(self.client, self._keys, self._asked)

    def _sampled(self) -> Clients:
        return self._read() if self._asked <= _WATCHED_MAX else self.readings.counters
