"""Flows of a stateful profile, as a load: put onto a server, started, and watched until they are closed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _gateways
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.report import FlowCounters, FlowSampler
from allosaur.run import _clocks
from allosaur.run._load import Load, Phase, Ran, Server
from allosaur.run._thresholds import Threshold, Thresholds
from allosaur.run.flows import _access, _readings
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._metrics import METRICS, refuse_unmeasured
from allosaur.run.flows._progress import FlowMoment
from allosaur.run.flows._result import FlowResult

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

_RECENT_S = 0.25
_CLOSE_MAX_S = 60.0
"""Flows that are open so long after the end are not waited for, unless the user gave another time."""
_TX = "STATE_TX"


@dataclass(frozen=True)
class Source:
    """What to load onto the server."""

    path: Path
    profile: ASTFProfile | ASTFProfileLight
    force: bool = False
    clients: Sequence[int] | None = None
    """The client ports that open flows; without, all."""
    ports: Sequence[int] | None = None
    """The ports for them; without, those that have flows or an owner already, else all that can be had."""
    tunables: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class FlowLoad(Load[FlowResult]):
    """Flows: those of a source, or those of the profile that is on the server of a client already."""

    kind = "stateful"
    metrics = METRICS
    shown_metrics = (
        *(f"allosaur_{name}_" for name in ("tcps", "udps", "err", "rss")),
        *("allosaur_flows_missed", "allosaur_echo_impossible_times", "allosaur_echo_dropped_packets"),
    )
    readings: FlowSampler

    def __init__(
        self, plan: FlowPlan, client: ASTFClient | None = None, source: Source | None = None
    ) -> None:
        self.plan = plan
        self.duration_s = plan.duration_s
        self.linger_s = plan.close_s or (0.0 if plan.no_close else _CLOSE_MAX_S)
        self._source = source
        self._owned: Sequence[int] = ()
        self._latency: Mapping[int, Mapping[str, Any]] = {}
        self._groups: Mapping[str, FlowCounters] = {}
        self._history: list[float] = []
        if client is not None:
            self.client = client

    def claims(self) -> Sequence[int]:
        return (self._source.ports if self._source else None) or ()

    @property
    def used_ports(self) -> Sequence[int]:
        return self._owned

    @property
    def port_count(self) -> int:
        source = self._source
        if source is not None and source.ports:
            return 1 + max(source.ports)
        return 2 + max((source.clients if source else None) or [0])

    @contextlib.contextmanager
    def connect(self, server: Server) -> Iterator[None]:
        from allosaur import ASTFClient

        with server.client(ASTFClient) as self.client:
            yield

    def check(self, thresholds: Sequence[Threshold]) -> None:
        source = self._source
        assert source is not None, "a load that is set up in a run has a source"
        _access.check_clients(self.client, source.clients)
        refuse_unmeasured(Thresholds(thresholds), self.client, self.plan, source.profile)
        _access.take_server(self.client, source.force, source.ports)

    def put(self, interrupt: Interrupt) -> None:
        source = self._source
        assert source is not None
        _access.put(self.client, self.plan, source.path, source.profile, source.force)
        ports = _gateways.of_flows(self.client, self.plan.client_mask)
        owned = self.client.get_acquired_ports()
        _gateways.wait(self.client, [port for port in ports if port in owned], interrupt)

    def open(self) -> None:
        self._owned = self.client.get_acquired_ports()
        self.client.clear_stats(pid_input=self.plan.profile_id)
        self.readings = FlowSampler(lambda: _readings.read(self.client, self.plan.profile_id))

    def start(self) -> None:
        _readings.begin(self.client, self.plan)

    def phase(self, now_s: float) -> Phase:
        resting = _access.RESTING
        state = self.client.get_profiles_state().get(self.plan.profile_id, resting[0])
        if state in resting:
            return Phase.OVER
        until_s = math.inf if self.duration_s == FOREVER else self.duration_s
        # A server goes on with TX until the last flow is closed.
        return Phase.CLOSING if state != _TX or now_s >= until_s else Phase.RUNNING

    def moment(self, now_s: float, phase: Phase) -> FlowMoment:
        readings = self.readings
        rates = readings.recent(_RECENT_S)
        self._history.append((rates.server if self.plan.servers_only else rates.client).connected_fps)
        is_closing = phase is not Phase.RUNNING
        return FlowMoment(self.plan, now_s, readings.counters, readings.recent(), is_closing, self._history)

    def stop(self) -> None:
        self.client.stop(pid_input=self.plan.profile_id)

    def settle(self, elapsed_s: float) -> None:
        self.sample()
        self._latency = _readings.latencies(self.client) if self.plan.latency_pps else {}
        self._groups = _readings.read_groups(self.client, self.plan.profile_id)

    def result(self, ran: Ran) -> FlowResult:
        impossible = (
            (f"echo of port {port}", one["impossible_times"]) for port, one in self._latency.items()
        )
        return FlowResult(
            self.plan,
            self.readings.counters,
            self.readings.rates(ran.elapsed_s),
            self._latency,
            self._groups,
            elapsed_s=ran.elapsed_s,
            closing_s=ran.closing_s,
            warnings=[*map(str, self.client.get_warnings()), *ran.steal, *_clocks.told(impossible)],
            profile_warnings=self._source.warnings if self._source else (),
            overdue=ran.overdue,
            exit_code=ran.exit_code,
            cut_short=ran.cut_short,
        )

    def clear(self) -> None:
        self.client.clear_profile(pid_input=self.plan.profile_id)

    @property
    def host(self) -> str:
        return str(self.client.get_connection_info()["server"])

    @property
    def has_missed(self) -> bool:
        return bool(self.readings.counters.missed_flows)

    def why_lost(self) -> str | None:
        return self.client.why_lost(self._owned)
