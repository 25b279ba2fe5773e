"""What a run of streams was to do, what was counted of it, and what of each port's packets was received.

Each direction stands by itself, nothing is taken from another. Packets that have a packet group are known
wherever they arrive. Of the others only the ports' counters tell, in which packets of other programs count,
too; for these, a port's packets are expected at the other end of its wire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allosaur.report._counters import PortCounters, PortRates, total
from allosaur.report._streams import Direction, StreamCounters, known_sum
from allosaur.run._result import Result
from allosaur.run.streams._groups import Grouping


def pair_of(port: int) -> int:
    """Return the port at the other end of the wire: 0 and 1, 2 and 3, and so on."""
    return port ^ 1


@dataclass(frozen=True)
class Plan:
    """What to do: which ports send, how fast and how long."""

    ports: Sequence[int]
    multiplier: str
    duration_s: float
    """Seconds, or `FOREVER`."""
    watched: Sequence[int] = ()
    """Ports whose counters are read: those that send, and their peers."""
    force: bool = False
    """Start although the rate is above the line's, or the link is down."""


@dataclass(frozen=True)
class StreamCounts:
    """What ports and packet groups counted."""

    plan: Plan
    counters: Mapping[int, PortCounters]
    rates: Mapping[int, Sequence[PortRates]] = field(default_factory=dict)
    grouping: Grouping = field(default_factory=Grouping)
    """Which packets are the run's own."""
    streams: Sequence[StreamCounters] = ()
    """What was counted of streams that have a packet group."""

    @property
    def directions(self) -> list[Direction]:
        """What became of the packets of each port that sends."""
        return [self._direction(port) for port in sorted(set(self.plan.ports)) if port in self.counters]

    @property
    def other_packets(self) -> dict[int, int | None]:
        """What each port received beside the run's own packets; `None` where nobody can tell."""
        senders = {row.port for row in self.grouping.rows} | set(self.grouping.ungrouped)
        unclear = {pair_of(port) for port in senders if self._uncounted(port)}
        # The ports were read before the groups: while packets arrive, the groups may know of more of them.
        return {
            port: None if port in unclear or not senders else max(one.rx_packets - self.own(port), 0)
            for port, one in self.counters.items()
        }

    @property
    def total(self) -> PortCounters:
        """All watched ports together."""
        return total(self.counters.values())

    @property
    def lost_packets(self) -> int | None:
        """`None` when there is no port that could have received."""
        return known_sum(one.lost_packets for one in self.directions)

    @property
    def duplicate_packets(self) -> int:
        """Own packets that arrived more often than they were sent."""
        return sum(one.duplicate_packets for one in self.directions)

    @property
    def missed_packets(self) -> int | None:
        """Packets that were not sent in time; `None` where nobody counts them."""
        return self.total.missed_packets

    @property
    def counted_by(self) -> str:
        """`groups`, or `ports` when packets of others count too."""
        return "ports" if any(one.ungrouped for one in self.directions) else "groups"

    def own(self, port: int) -> int:
        """Return how many packets of known streams arrived at a port."""
        return sum(one.rx_by_port.get(port, 0) for one in self.streams)

    def _uncounted(self, port: int) -> list[str]:
        """Return the streams of a port of which no packet group tells: all, where none is known."""
        counted = {one.pg_id for one in self.streams if one.port == port}
        rows = [row for row in self.grouping.rows if row.port == port]
        found = [*self.grouping.ungrouped.get(port, ())]
        found += [name for row in rows if row.pg_id not in counted for name in row.names]
        return found if found or rows else ["all packets"]

    def _direction(self, port: int) -> Direction:
        of_port, ungrouped = [one for one in self.streams if one.port == port], self._uncounted(port)
        received: Counter[int] = Counter()
        for one in of_port:
            received.update(one.rx_by_port)
        sent = sum(one.tx_packets for one in of_port)
        lost: int | None = sum(one.lost_packets for one in of_port)
        surplus, peer = 0, pair_of(port)
        if ungrouped:
            # Everything that the port sent belongs to the run but what groups know already.
            rest = self.counters[port].written_packets - sent
            sent += rest
            if peer in self.counters:
                arrived = max(self.counters[peer].rx_packets - self.own(peer), 0)
                received[peer] += arrived
                lost, surplus = (lost or 0) + max(rest - arrived, 0), max(arrived - rest, 0)
        if peer not in self.counters and not received.total():
            lost = None
        return Direction(
            port=port,
            sent_packets=sent,
            received_packets=received.total(),
            received_by_port={port: count for port, count in sorted(received.items()) if count},
            lost_packets=lost,
            duplicate_packets=sum(one.duplicate_packets for one in of_port),
            ungrouped=ungrouped,
            surplus_packets=surplus,
        )


@dataclass(frozen=True)
class StreamOutcome(StreamCounts, Result):
    """What was counted until the end, and how it came to it."""

    still_arriving: bool = False
    """Packets still came when the waiting for them ended: what is not received is not all lost."""
    link_changes: Sequence[str] = ()
    """Links that went down or came back while the traffic ran, in words."""
