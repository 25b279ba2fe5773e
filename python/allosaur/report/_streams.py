"""What was counted of single streams, and of all that one port sent: the run's own packets, and no others.

A row is the packets of one packet group that one port sends: of one stream, or of several that share the
group. A direction is all that one port sends. Nothing is netted: a packet that came twice hides no other
that was lost, unless both are of the same group and its latency is not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from allosaur.report import _fields

PERCENTILES = ("p50", "p90", "p99", "p99_9")


@dataclass(frozen=True)
class StreamLatency:
    """What was measured of the packets of a stream, in microseconds."""

    min_us: float
    average_us: float
    max_us: float
    jitter_us: float
    p50_us: float | None = None
    """Percentiles are `None` where the server tells none, as TRex's."""
    p90_us: float | None = None
    p99_us: float | None = None
    p99_9_us: float | None = None


@dataclass(frozen=True)
class StreamCounters:
    """What was counted of the packets of one group that one port sends."""

    port: int
    """The port that sends."""
    names: Sequence[str]
    """The streams of the group on this port."""
    pg_id: int
    tx_packets: int = 0
    tx_bytes: int = 0
    rx_packets: int = 0
    """All that arrived, on whichever port; what arrived twice is in it twice."""
    rx_bytes: int = 0
    rx_by_port: Mapping[int, int] = field(default_factory=dict)
    """Packets by the port that received them, without ports that received none."""
    lost_packets: int = 0
    duplicate_packets: int = 0
    """Packets that arrived and were not sent so often: the device sent them twice, or in pieces."""
    missed_packets: int | None = None
    out_of_order_packets: int | None = None
    """`None` where latency is not measured."""
    impossible_times: int | None = None
    """Packets that arrived before they were sent, by the clocks: their times are in no other number."""
    latency: StreamLatency | None = None

    @property
    def name(self) -> str:
        """The names of the streams, or how many there are."""
        return ", ".join(self.names) if len(self.names) <= 3 else f"{len(self.names)} streams"

    @property
    def lost_percent(self) -> float:
        """How much of what was sent was not received."""
        return percent(self.lost_packets, self.tx_packets)

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        values = _fields.plain(replace(self, rx_by_port=dict(sorted(self.rx_by_port.items()))))
        latency = values.pop("latency")
        return {**values, "lost_percent": round(self.lost_percent, 6), "latency": latency}


@dataclass(frozen=True)
class Direction:
    """What one port sent, and what of it was received."""

    port: int
    """The port that sends."""
    sent_packets: int
    received_packets: int
    received_by_port: Mapping[int, int] = field(default_factory=dict)
    lost_packets: int | None = None
    """`None` when there is no port that could have received."""
    duplicate_packets: int = 0
    ungrouped: Sequence[str] = ()
    """Streams that have no packet group: of these, the ports' counters tell, in which packets of others count
    too. Empty when every packet of the direction was told from those of others."""
    surplus_packets: int = 0
    """With `ungrouped`: what ports received above what was sent. It may hide as many lost packets."""

    @property
    def counted_by(self) -> str:
        """`groups`, or `ports` when packets of others count too."""
        return "ports" if self.ungrouped else "groups"

    @property
    def lost_percent(self) -> float:
        """How much of what was sent was not received."""
        return percent(self.lost_packets or 0, self.sent_packets)

    def to_json(self) -> dict[str, Any]:
        """Return the direction as plain data."""
        return {
            "port": self.port,
            "counted_by": self.counted_by,
            "ungrouped_streams": list(self.ungrouped),
            "sent_packets": self.sent_packets,
            "received_packets": self.received_packets,
            "received_by_port": {str(port): n for port, n in sorted(self.received_by_port.items())},
            "lost_packets": self.lost_packets,
            "lost_percent": None if self.lost_packets is None else round(self.lost_percent, 6),
            "duplicate_packets": self.duplicate_packets,
            "surplus_packets": self.surplus_packets,
        }


def percent(part: int, whole: int) -> float:
    """Return a share in percent; zero of nothing."""
    return 100 * part / whole if whole else 0.0


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; `None` when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
