"""The counters of flows: what began, what was missed, what was sent and received, and what went wrong.

They come by TRex's names (`tcps_connattempt` and so on); this gives them the names of a report. Bytes of
data are those of applications; bytes on the wire are of whole frames, with FCS. A counter that the server
does not have is `None`, never a zero that would look like a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from allosaur.report._flow_outcomes import Outcomes

SIDES = ("client", "server")
"""Clients open flows, on even ports; servers answer them, on odd ports."""

_TOTALS = (
    ("opened flows", "begun_flows"),
    ("connected flows", "connected_flows"),
    ("closed flows", "closed_flows"),
    ("active flows", "active_flows"),
    ("data bytes sent", "tx_data_bytes"),
    ("data bytes received", "rx_data_bytes"),
    ("UDP messages sent", "tx_messages"),
    ("UDP messages received", "rx_messages"),
    ("packets sent", "tx_packets"),
    ("packets received", "rx_packets"),
)


@dataclass(frozen=True)
class SideCounters:
    """What one side counted."""

    begun_flows: int = 0
    """Clients: flows that were opened. Servers: flows that came."""
    connected_flows: int = 0
    """Flows of which both ends knew. For UDP these are all that were opened."""
    closed_flows: int = 0
    active_flows: int = 0
    """Flows that there are now, with those that are not connected yet."""
    established_flows: int = 0
    tx_data_bytes: int = 0
    rx_data_bytes: int = 0
    tx_messages: int = 0
    """UDP only, as are the received ones."""
    rx_messages: int = 0
    tx_message_bytes: int = 0
    """What of the data bytes was in UDP messages, as of the received ones."""
    rx_message_bytes: int = 0
    dropped_flows: int = 0
    """TCP connections that were established, and ended otherwise than in order: by whichever end."""
    tx_packets: int = 0
    rx_packets: int = 0
    tx_wire_bytes: int = 0
    rx_wire_bytes: int = 0

    @classmethod
    def from_stats(
        cls, side: str, traffic: Mapping[str, Any], ports: Mapping[Any, Mapping[str, Any]]
    ) -> SideCounters:
        """Take one side's part of `ASTFClient.get_stats()`: its counters, and those of its ports."""
        own = [stats for port, stats in ports.items() if isinstance(port, int) and port % 2 == _parity(side)]
        began = (
            ("tcps_connattempt", "udps_connects") if side == "client" else ("tcps_accepts", "udps_accepts")
        )
        # A server's end of UDP has no handshake: it knows of both ends as soon as it is there.
        messages = "udps_connects" if side == "client" else "udps_accepts"
        return cls(
            begun_flows=_sum(traffic, *began),
            connected_flows=_sum(traffic, "tcps_connects", messages),
            closed_flows=_sum(traffic, "tcps_closed", "udps_closed"),
            active_flows=_sum(traffic, "m_active_flows"),
            established_flows=_sum(traffic, "m_est_flows"),
            tx_data_bytes=_sum(traffic, "tcps_sndbyte_ok", "udps_sndbyte"),
            rx_data_bytes=_sum(traffic, "tcps_rcvbyte", "udps_rcvbyte"),
            tx_messages=_sum(traffic, "udps_sndpkt"),
            rx_messages=_sum(traffic, "udps_rcvpkt"),
            tx_message_bytes=_sum(traffic, "udps_sndbyte"),
            rx_message_bytes=_sum(traffic, "udps_rcvbyte"),
            dropped_flows=_sum(traffic, "tcps_drops"),
            tx_packets=sum(int(stats.get("opackets", 0)) for stats in own),
            rx_packets=sum(int(stats.get("ipackets", 0)) for stats in own),
            tx_wire_bytes=sum(int(stats.get("obytes", 0)) for stats in own),
            rx_wire_bytes=sum(int(stats.get("ibytes", 0)) for stats in own),
        )

    def to_json(self) -> dict[str, int]:
        """Return the counters as plain data."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


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

    def side(self, name: str) -> SideCounters:
        """Return the counters of `client` or `server`."""
        return self.client if name == "client" else self.server

    def totals(self) -> Iterator[tuple[str, list[int]]]:
        """Return what a table of totals shows of both sides; UDP only where there is some."""
        for label, name in _TOTALS:
            values = [getattr(side, name) for side in (self.client, self.server)]
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

    def trouble(self) -> list[tuple[str, str, int]]:
        """Return the ways in which flows failed, and the error counters, as (side, name, how often)."""
        outcomes = self.outcomes
        if outcomes is None:
            return self.error_list()
        found = outcomes.failures()
        if outcomes.client.unanswered:
            found.append(("client", "unanswered", outcomes.client.unanswered))
        if not self.are_servers_ours:
            names = ("http_4xx", "http_5xx")
            found += [("client", name, outcomes.client.count(name)) for name in names]
        return [*(one for one in found if one[2]), *self.error_list()]

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


def _parity(side: str) -> int:
    return 0 if side == "client" else 1


def _sum(traffic: Mapping[str, Any], *names: str) -> int:
    return sum(int(traffic.get(name, 0)) for name in names)
