"""Counters of flows over time: a sampler keeps readings, and rates are the differences between them.

As `_sampling` does for ports. A rate is always what was counted, divided by the time in which it was counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from allosaur.report._flow_counters import FlowCounters, SideCounters
from allosaur.report._sampling import RATE_INTERVAL_MIN_S, SAMPLES_MAX, whole_bins


@dataclass(frozen=True)
class SideRates:
    """How fast one side was. Bits of data are those of applications, on the wire those of frames with FCS."""

    connected_fps: float = 0.0
    """Flows a second."""
    tx_data_bps: float = 0.0
    rx_data_bps: float = 0.0
    tx_wire_bps: float = 0.0
    rx_wire_bps: float = 0.0
    tx_pps: float = 0.0
    rx_pps: float = 0.0


@dataclass(frozen=True)
class FlowRates:
    """How fast a profile was between two samples."""

    time_s: float
    """The later end of the interval, in seconds after the start."""
    offered_fps: float = 0.0
    begun_fps: float = 0.0
    missed_fps: float = 0.0
    client: SideRates = field(default_factory=SideRates)
    server: SideRates = field(default_factory=SideRates)
    active_flows: int = 0
    """At the later end, of clients; of servers where there are no clients."""
    established_flows: int = 0
    errors: int = 0
    """How often something went wrong since the start, on both sides together."""

    def side(self, name: str) -> SideRates:
        """Return the rates of `client` or `server`."""
        return self.client if name == "client" else self.server


@dataclass(frozen=True)
class FlowSample:
    """One reading, `time_s` seconds after the start."""

    time_s: float
    counters: FlowCounters


class FlowSampler:
    """Reads counters when told to, and keeps them.

    How to drive it: make it before the traffic starts, say :meth:`started` when it has, and call
    :meth:`sample` at any pace. The counters of a profile begin at zero when it starts.
    """

    def __init__(self, read: Callable[[], FlowCounters], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._start = clock()
        self.samples: list[FlowSample] = [FlowSample(0.0, FlowCounters())]

    def started(self) -> None:
        """Say that the traffic starts now: times count from here."""
        self._start = self._clock()

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._start

    def sample(self) -> FlowSample:
        """Read the counters, keep and return them."""
        before = self._clock()
        counters = self._read()
        # The server read its counters somewhere between asking and its answer.
        one = FlowSample((before + self._clock()) / 2 - self._start, counters)
        self.samples.append(one)
        if len(self.samples) > SAMPLES_MAX:
            del self.samples[1:-1:2]
        return one

    @property
    def counters(self) -> FlowCounters:
        """What was counted until the last sample."""
        return self.samples[-1].counters

    def recent(self, window_s: float = 1.0) -> FlowRates:
        """Return the rates over about the last `window_s` seconds."""
        last, first = self.samples[-1], self.samples[0]
        for one in reversed(self.samples[:-1]):
            first = one
            if last.time_s - one.time_s >= window_s:
                break
        return between(first, last)

    def rates(self, end_s: float | None = None) -> list[FlowRates]:
        """Return the rates between samples, in the order of time; samples that are too near count as one.

        With `end_s`, when the last flow began, intervals in which flows began in part only are left out.
        """
        bins = []
        earlier = self.samples[0]
        for later in self.samples[1:]:
            if later.time_s - earlier.time_s >= RATE_INTERVAL_MIN_S:
                bins.append((earlier, later))
                earlier = later
        rates = [between(*one) for one in bins]
        if end_s is None:
            return rates
        begun = [one.begun_fps + one.server.connected_fps for one in rates]
        return [between(*one) for one in whole_bins(bins, begun, end_s)]


def between(earlier: FlowSample, later: FlowSample) -> FlowRates:
    """Return the rates between two samples."""
    span_s = later.time_s - earlier.time_s
    a, b = earlier.counters, later.counters
    gauge = b.client if b.client.begun_flows else b.server
    if span_s <= 0:
        return FlowRates(later.time_s)
    return FlowRates(
        later.time_s,
        offered_fps=(b.offered_flows - a.offered_flows) / span_s,
        begun_fps=(b.client.begun_flows - a.client.begun_flows) / span_s,
        missed_fps=((b.missed_flows or 0) - (a.missed_flows or 0)) / span_s,
        client=_side(a.client, b.client, span_s),
        server=_side(a.server, b.server, span_s),
        active_flows=gauge.active_flows,
        established_flows=gauge.established_flows,
        errors=b.error_events,
    )


def _side(a: SideCounters, b: SideCounters, span_s: float) -> SideRates:
    return SideRates(
        connected_fps=(b.connected_flows - a.connected_flows) / span_s,
        tx_data_bps=(b.tx_data_bytes - a.tx_data_bytes) * 8 / span_s,
        rx_data_bps=(b.rx_data_bytes - a.rx_data_bytes) * 8 / span_s,
        tx_wire_bps=(b.tx_wire_bytes - a.tx_wire_bytes) * 8 / span_s,
        rx_wire_bps=(b.rx_wire_bytes - a.rx_wire_bytes) * 8 / span_s,
        tx_pps=(b.tx_packets - a.tx_packets) / span_s,
        rx_pps=(b.rx_packets - a.rx_packets) / span_s,
    )
