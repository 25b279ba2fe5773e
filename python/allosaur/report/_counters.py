"""The counters of ports: what they sent, received and missed, over time.

All bytes are with the 4-byte frame check sequence. What the server does not count is `None`: TRex counts
neither missed packets nor sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from allosaur.report import _fields
from allosaur.report._fields import counter, difference, per_second
from allosaur.report._readings import Readings, Sample

SizeClasses = Mapping[str, int]
"""Packets by frame size with FCS, by class: `{"64": n, "65-127": n, ..., "1519-": n}`."""


@dataclass(frozen=True)
class PortCounters:
    """What one port counted."""

    tx_packets: int = counter("opackets")
    tx_bytes: int = counter("obytes")
    rx_packets: int = counter("ipackets")
    rx_bytes: int = counter("ibytes")
    missed_packets: int | None = counter("missed_packets", default=None)
    """Packets whose time had come and that were not sent: load that was asked for and not reached."""
    queue_full: int | None = counter("queue_full", default=None)
    """How often the port had no room for a packet. It was sent later, or it is in `missed_packets`."""
    tx_lost_packets: int | None = counter("oerrors", default=None)
    """Frames that could not leave the port, and are not in `tx_packets`: its interface or the other end
    refused them (longer than its MTU?), or they still waited when the traffic had ended."""
    rx_lost_packets: int | None = counter("rx_lost_packets", default=None)
    """Frames that the in-memory link towards this port lost, because it was told to."""
    tx_by_size: SizeClasses | None = field(default=None, metadata={"names": ("tx_by_size",)})
    rx_by_size: SizeClasses | None = field(default=None, metadata={"names": ("rx_by_size",)})
    rx_overflow_packets: int | None = counter("ierrors", default=None)
    """Frames that arrived at an interface and that this machine did not take in time: no loss of a device."""

    @classmethod
    def from_stats(cls, stats: Mapping[str, Any]) -> PortCounters:
        """Take the counters from one port's part of `STLClient.get_stats()`."""
        return cls(**_fields.read(cls, stats))

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
        return {"offered_packets": self.offered_packets, **_fields.plain(self)}


@dataclass(frozen=True)
class PortRates:
    """How fast one port was between two samples. Bits are of layer 2, with FCS."""

    time_s: float
    """The later end of the interval, in seconds after the start."""
    tx_pps: float = per_second("tx_packets")
    tx_bps: float = per_second("tx_bytes", 8)
    rx_pps: float = per_second("rx_packets")
    rx_bps: float = per_second("rx_bytes", 8)
    offered_pps: float = per_second("offered_packets")


Ports = Mapping[int, PortCounters]


class Sampler(Readings[Ports]):
    """Readings of ports. What they have counted when it is made is the zero."""

    def __init__(self, read: Callable[[], Ports], clock: Callable[[], float] = time.monotonic) -> None:
        base = dict(read())

        def counted(ports: Ports) -> Ports:
            return {port: difference(now, base[port]) for port, now in ports.items()}

        super().__init__(lambda: counted(read()), counted(base), clock)

    def recent(self, window_s: float = 1.0) -> dict[int, PortRates]:
        """Return the rates of each port over about the last `window_s` seconds."""
        first, last = self.window(window_s)
        return {port: _rates(first, last, port) for port in last.counters}

    def rates(self, port: int, end_s: float | None = None) -> list[PortRates]:
        """Return the rates of one port between samples, in the order of time; see :meth:`bins`."""
        return [_rates(*one, port) for one in self.bins(_packets_a_second, end_s)]


def total(counters: Iterable[PortCounters]) -> PortCounters:
    """Return the sum over ports. A counter is `None` in the sum only if no port has it."""
    return _fields.total(counters, PortCounters())


def _packets_a_second(earlier: Sample[Ports], later: Sample[Ports]) -> float:
    rates = [_rates(earlier, later, port) for port in later.counters]
    return sum(one.tx_pps + one.rx_pps for one in rates)


def _rates(earlier: Sample[Ports], later: Sample[Ports], port: int) -> PortRates:
    return port_rates(earlier.counters[port], later.counters[port], later.time_s, earlier.time_s)


def port_rates(
    earlier: PortCounters, later: PortCounters, later_s: float, earlier_s: float = 0.0
) -> PortRates:
    """Return the rates between two readings, at these times."""
    return PortRates(later_s, **_fields.between(PortRates, earlier, later, later_s - earlier_s))
