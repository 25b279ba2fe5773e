"""Flows of a stateful profile, as a load: put onto a server, started, and watched until they are closed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from allosaur.cli import _gateways, _profile
from allosaur.cli._errors import bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.report._flow_counters import FlowCounters, FlowSampler
from allosaur.run._load import Asked, Phase, PortLoad, Server
from allosaur.run._result import Ran
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


class FlowLoad(PortLoad[FlowResult]):
    """Flows: those of a profile, or those of the profile that is on the server of a client already."""

    kind = "stateful"
    metrics = METRICS
    shown_metrics = (
        *(f"allosaur_{name}_" for name in ("tcps", "udps", "err", "rss")),
        *("allosaur_flows_missed", "allosaur_echo_impossible_times", "allosaur_echo_dropped_packets"),
    )
    readings: FlowSampler

    def __init__(self, plan: FlowPlan, client: ASTFClient | None = None) -> None:
        self.plan = plan
        self.duration_s = plan.duration_s
        self.linger_s = plan.close_s or (0.0 if plan.no_close else _CLOSE_MAX_S)
        self._profile: ASTFProfile | ASTFProfileLight
        self._force = False
        self._clients: Sequence[int] | None = None
        """The client ports that open flows; without, all."""
        self._ports: Sequence[int] | None = None
        """Without, those that have flows or an owner already, else all that can be had."""
        self._latency: Mapping[int, Mapping[str, Any]] = {}
        self._groups: Mapping[str, FlowCounters] = {}
        self._history: list[float] = []
        if client is not None:
            self.client = client

    @classmethod
    def read(cls, asked: Asked) -> FlowLoad:
        """Read a stateful profile. Raises :class:`CommandError`: it needs no server."""
        options = asked.options
        if asked.ports is not None and options.local and not asked.is_one_of_several:
            raise bad_input(
                "--ports: a server of its own has a run's ports only; leave --ports or --local out"
            )
        plan = _access.plan_of(options, asked.multiplier)
        with _profile.noted_warnings() as noted:
            profile = _access.load_file(asked.path, _profile.merged(asked.tunables))
        load = cls(replace(plan, resetting=_access.resetting(profile)))
        load._profile, load.profile_warnings = profile, noted
        load._force, load._clients, load._ports = options.force, options.clients, asked.ports
        return load

    def claims(self) -> Sequence[int]:
        return self._ports or ()

    @property
    def used_ports(self) -> Sequence[int]:
        return self._owned

    @property
    def port_count(self) -> int:
        return 1 + max(self._ports) if self._ports else 2 + max(self._clients or [0])

    @contextlib.contextmanager
    def connect(self, server: Server) -> Iterator[None]:
        from allosaur import ASTFClient

        with server.client(ASTFClient) as self.client:
            yield

    def check(self, thresholds: Sequence[Threshold]) -> None:
        _access.check_clients(self.client, self._clients)
        refuse_unmeasured(Thresholds(thresholds), self.client, self.plan, self._profile)
        _access.take_server(self.client, self._force, self._ports)

    def put(self, interrupt: Interrupt) -> None:
        _access.put(self.client, self.plan, self.profile, self._profile, self._force)
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
        counters, recent, is_closing = readings.counters, readings.recent(), phase is not Phase.RUNNING
        return FlowMoment(now_s, self.duration_s, counters, recent, is_closing, self._history)

    def stop(self) -> None:
        self.client.stop(pid_input=self.plan.profile_id)

    def settle(self, elapsed_s: float) -> None:
        self.sample()
        self._latency = _readings.latencies(self.client) if self.plan.latency_pps else {}
        self._groups = _readings.read_groups(self.client, self.plan.profile_id)

    def result(self, ran: Ran) -> FlowResult:
        latency = self._latency
        impossible = [(f"echo of port {port}", one["impossible_times"]) for port, one in latency.items()]
        return FlowResult(
            **vars(ran),
            plan=self.plan,
            counters=self.readings.counters,
            rates=self.readings.rates(ran.elapsed_s),
            latency=latency,
            groups=self._groups,
            warnings=self.warnings(impossible, *ran.steal),
            profile_warnings=self.profile_warnings,
        )

    def clear(self) -> None:
        self.client.clear_profile(pid_input=self.plan.profile_id)

    @property
    def has_missed(self) -> bool:
        return bool(self.readings.counters.missed_flows)
