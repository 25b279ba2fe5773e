"""Streams out of some ports, as a load: put onto them, started, and counted until nothing arrives."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from allosaur.cli import _arguments, _gateways, _profile
from allosaur.cli._access import check_ports, refuse_running, take
from allosaur.cli._errors import EXIT_USAGE, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.report._counters import PortCounters, Sampler, total
from allosaur.report._streams import StreamCounters
from allosaur.run._load import Asked, Phase, PortLoad, Server
from allosaur.run._result import Ran
from allosaur.run._thresholds import Threshold, Thresholds
from allosaur.run.streams import _groups, _loss_hints
from allosaur.run.streams._counts import Plan, StreamCounts, pair_of
from allosaur.run.streams._groups import Grouping, stream_counters
from allosaur.run.streams._live_loss import LiveLoss
from allosaur.run.streams._metrics import METRICS, refuse_unmeasured
from allosaur.run.streams._progress import StreamMoment
from allosaur.run.streams._result import StreamResult
from allosaur.run.streams._verdict import SETTLE_MAX_S

if TYPE_CHECKING:
    from allosaur import STLClient, STLProfile

_RECENT_S = 0.25
_POLL_INTERVAL_S = 0.05
_SETTLE_S = 0.3
"""The end of a run: when nothing arrived for this long, nothing will."""
_SETTLE_SHARE = 0.01
"""Counted by ports: what arrives slower than this share of what was sent is of others, and not waited for."""


def watched_ports(sending: Sequence[int], port_count: int) -> list[int]:
    """Return the ports to read: those that send and their peers, as far as they exist."""
    wanted = {*sending, *(pair_of(port) for port in sending)}
    return sorted(port for port in wanted if port < port_count)


class StreamLoad(PortLoad[StreamResult]):
    """Streams: those of a profile, or those that are on the ports of a client already.

    `grouping` says which packets are the run's own; without it the ports are counted. `begin` starts
    something else in the place of the streams.
    """

    kind = "stateless"
    metrics = METRICS
    shown_metrics = (
        *(f"allosaur_port_{name}_packets" for name in ("missed", "rx_lost", "tx_lost")),
        *(
            f"allosaur_stream_{name}"
            for name in ("missed", "dropped", "duplicate", "out_of_order", "impossible")
        ),
    )
    readings: Sampler

    def __init__(
        self,
        plan: Plan,
        client: STLClient | None = None,
        grouping: Grouping | None = None,
        begin: Callable[[], None] | None = None,
    ) -> None:
        self.plan = plan
        self.duration_s = plan.duration_s
        self.streams: list[StreamCounters] = []
        """What was counted of streams that have a packet group, as it was read last."""
        self.grouping = grouping or Grouping.none(plan.ports, "they have no packet groups")
        self._profiles: Mapping[int, STLProfile] = {}
        self._is_grouped = True
        self._begin = begin
        self.still_arriving = False
        """Packets still came when the waiting for them ended."""
        self._changes: Sequence[str] = ()
        self._losses: dict[int, LiveLoss] = {}
        self._history: list[float] = []
        if client is not None:
            self._use(client)

    @classmethod
    def read(cls, asked: Asked) -> StreamLoad:
        """Read a profile for the ports that send it. Raises :class:`CommandError`: it needs no server."""
        options = asked.options
        ports = list(asked.ports or [0])
        if not asked.is_one_of_several:
            _arguments.refuse_options_of_flows(options)
            options.ports = ports  # the command line that makes it again tells them
        tunables = _profile.merged(asked.tunables)
        load = cls(Plan(ports, asked.multiplier, options.duration, force=options.force))
        with _profile.noted_warnings() as load.profile_warnings:
            load._profiles = {port: _profile.load(asked.path, port % 2, port, tunables) for port in ports}
        load._is_grouped = not options.port_counters
        return load

    def claims(self) -> list[int]:
        return list(self.plan.ports)

    @property
    def used_ports(self) -> Sequence[int]:
        return self.plan.watched

    @property
    def port_count(self) -> int:
        return 1 + max(max(port, pair_of(port)) for port in self.plan.ports)

    def asked(self) -> dict[str, Any]:
        return {"sending_ports": list(self.plan.ports)}

    @contextlib.contextmanager
    def connect(self, server: Server) -> Iterator[None]:
        from allosaur import STLClient

        with server.client(STLClient) as client:
            check_ports(client, self.plan.ports)
            self._use(client)
            yield

    def check(self, thresholds: Sequence[Threshold]) -> None:
        client, ports = self.client, list(self.plan.ports)
        refuse_running(client, ports, self.plan.force)
        take(client, ports, self.plan.force)
        with explained("cannot clear the ports"):
            client.stop(ports=ports)
            client.remove_all_streams(ports=ports)
        self._put = {port: profile.get_streams() for port, profile in self._profiles.items()}
        with explained("cannot read the packet groups"):
            self.grouping = _groups.assign(client, self._put, wanted=self._is_grouped)
        refuse_unmeasured(Thresholds(thresholds), client, self.plan, self._put, self.grouping)

    def put(self, interrupt: Interrupt) -> None:
        for port, streams in self._put.items():
            with explained(f"profile {self.profile}, port {port}", EXIT_USAGE):
                self.client.add_streams(streams, ports=[port])
        ports = _gateways.of_streams(self.client, list(self.plan.ports))
        _gateways.wait(self.client, ports, interrupt, self.plan.force)

    def open(self) -> None:
        self._owned = [port for port in self.client.get_acquired_ports() if port in self.plan.ports]
        self.readings = Sampler(self._read)

    def start(self) -> None:
        plan = self.plan
        self._links = _loss_hints.Links(self.client, plan.watched)
        if self._begin is not None:
            self._begin()
        else:
            self.client.start(
                ports=list(plan.ports), mult=plan.multiplier, duration=plan.duration_s, force=plan.force
            )

    def phase(self, now_s: float) -> Phase:
        is_active = self.client.is_traffic_active(ports=list(self.plan.ports))
        return Phase.RUNNING if is_active else Phase.OVER

    def moment(self, now_s: float, phase: Phase) -> StreamMoment:
        readings = self.readings
        self._history.append(sum(rates.tx_pps for rates in readings.recent(_RECENT_S).values()))
        found = self._counts().directions
        lost = {one.port: self._losses.setdefault(one.port, LiveLoss()).take(now_s, one) for one in found}
        return StreamMoment(now_s, self.duration_s, readings.counters, readings.recent(), self._history, lost)

    def stop(self) -> None:
        self._changes = self._links.changes()
        self.client.stop(ports=list(self.plan.ports))

    def settle(self, elapsed_s: float) -> None:
        """Wait for packets that are still on the wire: until all arrived, or none did for a while.

        Where ports are counted, packets of others must not make up for lost ones: what arrives much slower
        than the traffic was is not waited for.
        """
        begun = quiet_since = time.monotonic()
        sent, received = self._sent_and_received()
        # One packet is something to wait for where only own ones are counted.
        few = _SETTLE_SHARE * sent * _SETTLE_S / max(elapsed_s, _SETTLE_S) if self.grouping.ungrouped else 0.0
        counted_from = received
        while received < sent and time.monotonic() < begun + SETTLE_MAX_S:
            if time.monotonic() - quiet_since > _SETTLE_S:
                if received - counted_from <= few:
                    return
                quiet_since, counted_from = time.monotonic(), received
            time.sleep(_POLL_INTERVAL_S)
            sent, received = self._sent_and_received()
        self.still_arriving = received < sent

    def result(self, ran: Ran) -> StreamResult:
        counts = self._counts()
        rates = {port: self.readings.rates(port, ran.elapsed_s) for port in self.plan.watched}
        hints = [] if ran.cut_short else _loss_hints.hints(self.client, counts)
        return StreamResult(
            **vars(ran),
            **vars(replace(counts, rates=rates)),
            still_arriving=self.still_arriving,
            link_changes=self._changes,
            warnings=self.warnings((one.name, one.impossible_times or 0) for one in self.streams),
            profile_warnings=self.profile_warnings,
            hints=[*hints, *ran.steal],
        )

    def clear(self) -> None:
        self.client.remove_all_streams(ports=list(self.plan.ports))

    @property
    def has_missed(self) -> bool:
        return bool(total(self.readings.counters.values()).missed_packets)

    def _use(self, client: STLClient) -> None:
        self.client = client
        watched = self.plan.watched or watched_ports(self.plan.ports, client.get_port_count())
        self.plan = replace(self.plan, watched=watched)

    def _counts(self) -> StreamCounts:
        counters = self.readings.counters
        return StreamCounts(self.plan, counters, grouping=self.grouping, streams=self.streams)

    def _read(self) -> dict[int, PortCounters]:
        """Read the counters of ports and of packet groups; give those of the ports."""
        ports = list(self.plan.watched)
        stats: Mapping[Any, Any] = self.client.get_stats(ports=ports, only_given=True)
        self.streams = stream_counters(self.grouping, stats)
        return {port: PortCounters.from_stats(stats[port]) for port in ports}

    def _sent_and_received(self) -> tuple[int, int]:
        """Read how much was sent and received of what is waited for: of groups, where there are any."""
        self.sample()
        if self.streams and not self.grouping.ungrouped:
            sent = sum(one.tx_packets for one in self.streams)
            return sent, sent - sum(one.lost_packets for one in self.streams)
        counted = total(self.readings.counters.values())
        return counted.tx_packets, counted.rx_packets
