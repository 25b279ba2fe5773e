"""What a run of streams was to do, and what was counted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allosaur.report import Direction, PortCounters, PortRates, StreamCounters, known_sum, total
from allosaur.run._result import Result
from allosaur.run.streams._directions import directions, other_packets
from allosaur.run.streams._groups import Grouping


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
class StreamCounts(Result):
    """What ports and packet groups counted."""

    plan: Plan
    counters: Mapping[int, PortCounters]
    rates: Mapping[int, Sequence[PortRates]]
    grouping: Grouping = field(default_factory=Grouping)
    """Which packets are the run's own."""
    streams: Sequence[StreamCounters] = ()
    """What was counted of streams that have a packet group."""
    still_arriving: bool = False
    """Packets still came when the waiting for them ended: what is not received is not all lost."""
    link_changes: Sequence[str] = ()
    """Links that went down or came back while the traffic ran, in words."""

    @property
    def duration_asked_s(self) -> float:
        return self.plan.duration_s

    @property
    def directions(self) -> list[Direction]:
        """What became of the packets of each port that sends."""
        return directions(self.grouping, self.plan.ports, self.counters, self.streams)

    @property
    def other_packets(self) -> dict[int, int | None]:
        """What each port received beside the run's own packets; `None` where nobody can tell."""
        return other_packets(self.grouping, self.counters, self.streams)

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
