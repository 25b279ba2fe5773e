"""The counters of flows, over time: what began, was missed, was sent and received, and went wrong.

They come by TRex's names (`tcps_connattempt` and so on); this gives them the names of a report. Bytes of
data are those of applications; bytes on the wire are of whole frames, with FCS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from allosaur.report import _fields
from allosaur.report._fields import at_end, counter, per_second, rates_of
from allosaur.report._flow_outcomes import Outcomes
from allosaur.report._readings import Readings, Sample

SIDES = ("client", "server")
"""Clients open flows, on even ports; servers answer them, on odd ports."""


@dataclass(frozen=True)
class SideCounters:
    """What one side counted."""

    begun_flows: int = counter(
        *("tcps_connattempt", "udps_connects"),
        server=("tcps_accepts", "udps_accepts"),
        label="opened flows",
    )
    """Clients: flows that were opened. Servers: flows that came."""
    # A server's end of UDP has no handshake: it knows of both ends as soon as it is there.
    connected_flows: int = counter(
        *("tcps_connects", "udps_connects"),
        server=("tcps_connects", "udps_accepts"),
        label="connected flows",
    )
    """Flows of which both ends knew. For UDP these are all that were opened."""
    closed_flows: int = counter("tcps_closed", "udps_closed", label="closed flows")
    active_flows: int = counter("m_active_flows", label="active flows")
    """Flows that there are now, with those that are not connected yet."""
    established_flows: int = counter("m_est_flows")
    tx_data_bytes: int = counter("tcps_sndbyte_ok", "udps_sndbyte", label="data bytes sent")
    rx_data_bytes: int = counter("tcps_rcvbyte", "udps_rcvbyte", label="data bytes received")
    tx_messages: int = counter("udps_sndpkt", label="UDP messages sent")
    """UDP only, as are the received ones."""
    rx_messages: int = counter("udps_rcvpkt", label="UDP messages received")
    tx_message_bytes: int = counter("udps_sndbyte")
    """What of the data bytes was in UDP messages, as of the received ones."""
    rx_message_bytes: int = counter("udps_rcvbyte")
    dropped_flows: int = counter("tcps_drops")
    """TCP connections that were established, and ended otherwise than in order: by whichever end."""
    tx_packets: int = counter("opackets", label="packets sent")
    rx_packets: int = counter("ipackets", label="packets received")
    tx_wire_bytes: int = counter("obytes")
    rx_wire_bytes: int = counter("ibytes")

    @classmethod
    def from_stats(
        cls, side: str, traffic: Mapping[str, Any], ports: Mapping[Any, Mapping[str, Any]]
    ) -> SideCounters:
        """Take one side's part of `ASTFClient.get_stats()`: its counters, and those of its ports."""
        parity = SIDES.index(side)
        own = [stats for port, stats in ports.items() if isinstance(port, int) and port % 2 == parity]
        return cls(**_fields.read(cls, traffic, *own, side=side))

    def to_json(self) -> dict[str, int]:
        """Return the counters as plain data."""
        return _fields.plain(self)


@dataclass(frozen=True)
class FlowCounters:
    """What a profile counted since its start."""

    client: SideCounters = SideCounters()
    server: SideCounters = SideCounters()
    missed_flows: int | None = None
    """Flows that were due and were not opened in time: load that was asked for and not reached."""
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counters that should be zero and are not: by side, by name."""
    outcomes: Outcomes | None = None
    """How flows ended; `None` when the server does not tell, as TRex's."""

    @property
    def offered_flows(self) -> int:
        """What the profile asked for so far: what was opened and what was missed."""
        return self.client.begun_flows + (self.missed_flows or 0)

    @property
    def opener(self) -> SideCounters:
        """The clients; the servers where there are no clients of ours."""
        return self.client if self.client.begun_flows else self.server

    @property
    def failed_flows(self) -> int:
        """Flows that ended before their program, on the side that has more of them."""
        return 0 if self.outcomes is None else max(self.outcomes.side(side).failed() for side in SIDES)

    def side(self, name: str) -> SideCounters:
        """Return the counters of `client` or `server`."""
        return self.client if name == "client" else self.server

    def totals(self) -> Iterator[tuple[str, list[int]]]:
        """Return what a table of totals shows of both sides; UDP only where there is some."""
        for name, label, values in _fields.rows((self.client, self.server)):
            if any(values) or "UDP" not in label:
                yield label, values
            if name == "closed_flows" and self.outcomes is not None:
                yield from self.outcomes.rows()

    @property
    def are_servers_ours(self) -> bool:
        """Whether our own servers took the clients' flows: both ends are counted then.

        A stranger's connection to a server of ours is not taken for that: most flows must have come.
        """
        return 0 < self.client.connected_flows <= 2 * self.server.begun_flows

    @property
    def lost_messages(self) -> int | None:
        """UDP messages that did not arrive, both ways; `None` without any, or when one side is not ours.

        Extra ones of one way hide no loss of the other.
        """
        client, server = self.client, self.server
        # A flow of UDP begins without its peer: of many that are lost, few need to have come.
        if not client.begun_flows or not server.begun_flows or not (client.tx_messages or server.tx_messages):
            return None
        return sum(max(one.tx_messages - other.rx_messages, 0) for one, other in self._ways())

    @property
    def lost_bytes(self) -> int | None:
        """Bytes of TCP that programs sent and did not arrive; `None` when one side is not ours."""
        if not self.are_servers_ours:
            return None
        return sum(
            max(one.tx_data_bytes - one.tx_message_bytes - other.rx_data_bytes + other.rx_message_bytes, 0)
            for one, other in self._ways()
        )

    def _ways(self) -> tuple[tuple[SideCounters, SideCounters], ...]:
        return ((self.client, self.server), (self.server, self.client))

    def error_list(self) -> list[tuple[str, str, int]]:
        """Return what went wrong as (side, name, how often)."""
        return [(side, name, count) for side in SIDES for name, count in self.errors.get(side, {}).items()]

    def failures(self) -> list[tuple[str, str, int]]:
        """Return the ways in which flows failed or were answered badly, as (side, outcome, how many)."""
        outcomes = self.outcomes
        if outcomes is None:
            return []
        found = outcomes.failures()
        if outcomes.client.unanswered:
            found.append(("client", "unanswered", outcomes.client.unanswered))
        if not self.are_servers_ours:
            names = ("http_4xx", "http_5xx")
            found += [("client", name, outcomes.client.count(name)) for name in names]
        return [one for one in found if one[2]]

    def trouble(self) -> list[tuple[str, str, int]]:
        """Return the ways in which flows failed, and the error counters, as (side, name, how often)."""
        return [*self.failures(), *self.error_list()]

    @property
    def error_events(self) -> int:
        """How often something went wrong: error counters together, without those that count bytes."""
        return sum(count for _, name, count in self.error_list() if "byte" not in name)

    def to_json(self) -> dict[str, Any]:
        """Return the counters as plain data, with `offered_flows`."""
        return {
            "offered_flows": self.offered_flows,
            "missed_flows": self.missed_flows,
            "client": self.client.to_json(),
            "server": self.server.to_json(),
            "errors": {side: dict(self.errors.get(side, {})) for side in SIDES},
            "outcomes": None if self.outcomes is None else self.outcomes.to_json(),
        }


@dataclass(frozen=True)
class SideRates:
    """How fast one side was. Bits of data are those of applications, on the wire those of frames with FCS."""

    connected_fps: float = per_second("connected_flows")
    """Flows a second."""
    tx_data_bps: float = per_second("tx_data_bytes", 8)
    rx_data_bps: float = per_second("rx_data_bytes", 8)
    tx_pps: float = per_second("tx_packets")
    rx_pps: float = per_second("rx_packets")


@dataclass(frozen=True)
class FlowRates:
    """How fast a profile was between two samples."""

    time_s: float
    """The later end of the interval, in seconds after the start."""
    offered_fps: float = per_second("offered_flows")
    begun_fps: float = per_second("client.begun_flows")
    client: SideRates = field(default_factory=SideRates, metadata=rates_of("client", SideRates))
    server: SideRates = field(default_factory=SideRates, metadata=rates_of("server", SideRates))
    active_flows: int = at_end("opener.active_flows")
    """At the later end, of clients; of servers where there are no clients."""
    established_flows: int = at_end("opener.established_flows")
    errors: int = at_end("error_events")
    """How often something went wrong since the start, on both sides together."""
    failed_flows: int = at_end("failed_flows")
    """Flows that ended before their program since the start, on the side that has more of them."""

    def side(self, name: str) -> SideRates:
        """Return the rates of `client` or `server`."""
        return self.client if name == "client" else self.server


class FlowSampler(Readings[FlowCounters]):
    """Readings of a profile, whose counters begin at zero when it starts."""

    def __init__(self, read: Callable[[], FlowCounters], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(read, FlowCounters(), clock)

    def recent(self, window_s: float = 1.0) -> FlowRates:
        """Return the rates over about the last `window_s` seconds."""
        return _rates(*self.window(window_s))

    def rates(self, end_s: float | None = None) -> list[FlowRates]:
        """Return the rates between samples, in the order of time; `end_s` is when the last flow began."""
        return [_rates(*one) for one in self.bins(_flows_a_second, end_s)]


def _flows_a_second(earlier: Sample[FlowCounters], later: Sample[FlowCounters]) -> float:
    rates = _rates(earlier, later)
    return rates.begun_fps + rates.server.connected_fps


def _rates(earlier: Sample[FlowCounters], later: Sample[FlowCounters]) -> FlowRates:
    return flow_rates(earlier.counters, later.counters, later.time_s, earlier.time_s)


def flow_rates(
    earlier: FlowCounters, later: FlowCounters, later_s: float, earlier_s: float = 0.0
) -> FlowRates:
    """Return the rates between two readings, at these times."""
    return FlowRates(later_s, **_fields.between(FlowRates, earlier, later, later_s - earlier_s))
