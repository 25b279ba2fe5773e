"""Counters of flows over time, and the rates that are the differences between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from allosaur.report._flow_counters import SIDES, FlowCounters, SideCounters
from allosaur.report._readings import Readings, Sample


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
    failed_flows: int = 0
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
        return between(*self.window(window_s))

    def rates(self, end_s: float | None = None) -> list[FlowRates]:
        """Return the rates between samples, in the order of time; `end_s` is when the last flow began."""
        return [between(*one) for one in self.bins(_flows_a_second, end_s)]


def _flows_a_second(earlier: Sample[FlowCounters], later: Sample[FlowCounters]) -> float:
    rates = between(earlier, later)
    return rates.begun_fps + rates.server.connected_fps


def between(earlier: Sample[FlowCounters], later: Sample[FlowCounters]) -> FlowRates:
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
        failed_flows=0 if b.outcomes is None else max(b.outcomes.side(side).failed() for side in SIDES),
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
