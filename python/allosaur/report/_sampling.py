"""Counters of ports over time, and the rates that are the differences between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from allosaur.report._counters import PortCounters, difference
from allosaur.report._readings import Readings, Sample

Ports = Mapping[int, PortCounters]


@dataclass(frozen=True)
class PortRates:
    """How fast one port was between two samples. Bits are of layer 2, with FCS."""

    time_s: float
    """The later end of the interval, in seconds after the start."""
    tx_pps: float = 0.0
    tx_bps: float = 0.0
    rx_pps: float = 0.0
    rx_bps: float = 0.0


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


def _packets_a_second(earlier: Sample[Ports], later: Sample[Ports]) -> float:
    counted = [difference(later.counters[port], earlier.counters[port]) for port in later.counters]
    return sum(one.tx_packets + one.rx_packets for one in counted) / (later.time_s - earlier.time_s)


def _rates(earlier: Sample[Ports], later: Sample[Ports], port: int) -> PortRates:
    span_s = later.time_s - earlier.time_s
    if span_s <= 0:
        return PortRates(later.time_s)
    delta = difference(later.counters[port], earlier.counters[port])
    return PortRates(
        later.time_s,
        tx_pps=delta.tx_packets / span_s,
        tx_bps=delta.tx_bytes * 8 / span_s,
        rx_pps=delta.rx_packets / span_s,
        rx_bps=delta.rx_bytes * 8 / span_s,
    )
