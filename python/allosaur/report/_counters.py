"""The counters of one port: what it sent, received and missed; their differences and sums.

All bytes are with the 4-byte frame check sequence. A counter that the server does not have is `None`
(TRex does not count missed packets, nor sizes), never a zero that would look like a measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

SizeClasses = Mapping[str, int]
"""Packets by frame size with FCS, by class: `{"64": n, "65-127": n, ..., "1519-": n}`."""


@dataclass(frozen=True)
class PortCounters:
    """What one port counted."""

    tx_packets: int = 0
    tx_bytes: int = 0
    rx_packets: int = 0
    rx_bytes: int = 0
    missed_packets: int | None = None
    """Packets whose time had come and that were not sent: load that was asked for and not reached."""
    queue_full: int | None = None
    """How often the port had no room for a packet. It was sent later, or it is in `missed_packets`."""
    tx_lost_packets: int | None = None
    """Frames that could not leave the port, and are not in `tx_packets`: its interface or the other end
    refused them (longer than its MTU?), or they still waited when the traffic had ended."""
    rx_lost_packets: int | None = None
    """Frames that the in-memory link towards this port lost, because it was told to."""
    tx_by_size: SizeClasses | None = None
    rx_by_size: SizeClasses | None = None
    rx_overflow_packets: int | None = None
    """Frames that arrived at an interface and that this machine did not take in time: no loss of a device."""

    @classmethod
    def from_stats(cls, stats: Mapping[str, Any]) -> PortCounters:
        """Take the counters from one port's part of `STLClient.get_stats()`."""
        return cls(
            tx_packets=int(stats.get("opackets", 0)),
            tx_bytes=int(stats.get("obytes", 0)),
            rx_packets=int(stats.get("ipackets", 0)),
            rx_bytes=int(stats.get("ibytes", 0)),
            missed_packets=_optional(stats.get("missed_packets")),
            queue_full=_optional(stats.get("queue_full")),
            tx_lost_packets=_optional(stats.get("oerrors")),
            rx_lost_packets=_optional(stats.get("rx_lost_packets")),
            rx_overflow_packets=_optional(stats.get("ierrors")),
            tx_by_size=stats.get("tx_by_size"),
            rx_by_size=stats.get("rx_by_size"),
        )

    @property
    def offered_packets(self) -> int:
        """What the profile asked for so far: what was sent, what could not leave, and what was missed."""
        return self.written_packets + (self.missed_packets or 0)

    @property
    def written_packets(self) -> int:
        """What was handed to the port: what was sent, and what could not leave."""
        return self.tx_packets + (self.tx_lost_packets or 0)

    def to_json(self) -> dict[str, Any]:
        """Return the counters as plain data, with `offered_packets`."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("tx_by_size", "rx_by_size"):
            values[name] = None if values[name] is None else dict(values[name])
        return {"offered_packets": self.offered_packets, **values}


def difference(later: PortCounters, earlier: PortCounters) -> PortCounters:
    """Return what was counted between two readings of the same port."""
    return _combine(later, earlier, sign=-1)


def total(counters: Iterable[PortCounters]) -> PortCounters:
    """Return the sum over ports. A counter is `None` in the sum only if no port has it."""
    result: PortCounters | None = None
    for one in counters:
        result = one if result is None else _combine(result, one, sign=1)
    return result or PortCounters()


def _optional(value: Any) -> int | None:
    return None if value is None else int(value)


def _combine(a: PortCounters, b: PortCounters, sign: int) -> PortCounters:
    changes: dict[str, Any] = {}
    for field in fields(PortCounters):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if left is None or right is None:
            changes[field.name] = left if left is not None else right
        elif isinstance(left, Mapping):
            changes[field.name] = {
                key: left.get(key, 0) + sign * right.get(key, 0) for key in {**left, **right}
            }
        else:
            changes[field.name] = left + sign * right
    return replace(a, **changes)
