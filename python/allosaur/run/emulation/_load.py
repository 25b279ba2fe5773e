"""Emulated clients, as a load: they are loaded, wait until they are ready, and are removed at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli import _profile as _profiles
from allosaur.cli._arguments import OPTIONS_OF_FLOWS
from allosaur.cli._errors import EXIT_SETUP, CommandError, bad_input, explained
from allosaur.cli._fitted import FittedTable
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli.emulation import _profile
from allosaur.report._readings import Readings
from allosaur.run._load import Asked, Load, Moment, Phase, Server
from allosaur.run._metrics import Metric
from allosaur.run._result import Ran
from allosaur.run._thresholds import Threshold
from allosaur.run.emulation import _readings
from allosaur.run.emulation._counts import Clients, Counter
from allosaur.run.emulation._metrics import METRICS, counter_metric
from allosaur.run.emulation._result import EmulationResult

if TYPE_CHECKING:
    from rich.console import RenderableType

    from allosaur import EMUClient, EMUNamespaceKey

READY_S = 10.0
"""How long a run waits for clients to be ready, before it begins all the same."""
_POLL_INTERVAL_S = 0.2
_WATCHED_MAX = 2_000
"""Of more clients only the end says how many are ready: to ask for each takes too long to do all the time."""


@dataclass(frozen=True)
class EmulationMoment(Moment):
    """What is known of emulated clients while they are there."""

    clients: Clients

    def said(self) -> str:
        there, asked, ready = map(_format.count, (self.clients.there, self.clients.asked, self.clients.ready))
        return f"{there} clients of {asked} are there, {ready} are ready"

    def blocks(self) -> list[RenderableType]:
        table, one = FittedTable(["", "clients"]), self.clients
        table.add("there", _format.count(one.there))
        style = "bold red" if one.ready < one.asked else ""
        table.add(("ready", style), (_format.count(one.ready), style))
        return [table]


class EmulationLoad(Load[EmulationResult]):
    """Emulated clients of a profile."""

    kind = "emulation"
    metrics = METRICS
    shown_metrics = ("allosaur_emulation_",)
    order = -1
    readings: Readings[Clients]

    def __init__(self, asked: Asked) -> None:
        options = asked.options
        if asked.has_own_ports:
            raise bad_input(
                f"--ports {asked.name}=: emulated clients are on the ports that their profile names"
            )
        if not asked.is_one_of_several:
            if asked.multiplier != "1":
                raise bad_input(
                    f"-m {asked.multiplier}: emulated clients have no rate; tunables say how many there are"
                )
            given = [one for one in OPTIONS_OF_FLOWS if getattr(options, one.replace("-", "_")) is not None]
            if given:
                raise bad_input(
                    f"--{given[0]} is for stateful profiles, and {asked.name} has emulated clients"
                )
        self.client: EMUClient
        self.duration_s = options.duration
        self._force = options.force
        self._tunables = _profiles.merged(asked.tunables)
        self._profile = _profile.load(asked.path, [self._tunables])
        self._namespaces: list[EMUNamespaceKey] = [one.key for one in self._profile.ns_list]
        self._count = sum(len(one.c_map) for one in self._profile.ns_list)
        self._keys: Sequence[EMUNamespaceKey] = ()
        """Those that are on the server."""
        self._ready_s: float | None = None
        self._counters: list[Counter] = []

    @classmethod
    def read(cls, asked: Asked) -> EmulationLoad:
        return cls(asked)

    def claims(self) -> list[str]:
        return [f"the namespace of {key}" for key in self._namespaces]

    @property
    def used_ports(self) -> set[int]:
        return {key.vport for key in self._namespaces}

    @property
    def port_count(self) -> int:
        return 1 + max(self.used_ports, default=1)

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
        if there and not self._force:
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
        with explained(f"profile {self.profile}"):
            self.client.add_profile(self._profile)
            self._keys = self._namespaces
            begun_s = time.monotonic()
            while not interrupt and time.monotonic() < begun_s + READY_S:
                if self._read().ready >= self._count:
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
        return EmulationResult(
            **vars(ran),
            clients=self.readings.counters if ran.cut_short else self._last,
            counters=self._counters,
            ready_s=self._ready_s,
            over_time=[(one.time_s, one.counters) for one in self.readings.samples],
        )

    def clear(self) -> None:
        self.client.remove_ns_and_clients(list(self._keys))

    def asked(self) -> dict[str, Any]:
        return {"tunables": dict(self._tunables)}

    def _read(self) -> Clients:
        return _readings.clients(self.client, self._keys, self._count)

    def _sampled(self) -> Clients:
        return self._read() if self._count <= _WATCHED_MAX else self.readings.counters
