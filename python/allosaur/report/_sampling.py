"""Counters over time: a sampler keeps readings, and rates are the differences between them.

A rate here is always what was counted, divided by the time in which it was counted. Not here: the
clock and the server, which are given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from allosaur.report._counters import PortCounters, difference

SAMPLES_MAX = 4000
"""Samples kept. Beyond it every second one is dropped, so that a run of days fits in memory."""

RATE_INTERVAL_MIN_S = 0.1
"""The shortest time over which a rate is shown."""


@dataclass(frozen=True)
class Sample:
    """One reading of all ports, `time_s` seconds after the start."""

    time_s: float
    ports: Mapping[int, PortCounters]


@dataclass(frozen=True)
class PortRates:
    """How fast one port was between two samples. Bits are of layer 2, with FCS."""

    time_s: float
    """The later end of the interval, in seconds after the start."""
    tx_pps: float = 0.0
    tx_bps: float = 0.0
    rx_pps: float = 0.0
    rx_bps: float = 0.0


class Sampler:
    """Reads counters when told to, and keeps them.

    How to drive it: make it just before the traffic starts (that reading is the zero), call
    :meth:`sample` at any pace, then look at :attr:`samples`, :meth:`counted` and :meth:`rates`.
    """

    def __init__(
        self, read: Callable[[], Mapping[int, PortCounters]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._base = dict(read())
        self._start = clock()
        self.samples: list[Sample] = [self._reading(self._base, 0.0)]

    def started(self) -> None:
        """Say that the traffic starts now: times count from here."""
        self._start = self._clock()

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._start

    def sample(self) -> Sample:
        """Read the counters, keep and return what was counted since the start."""
        before = self._clock()
        ports = self._read()
        # The server read its counters somewhere between asking and its answer.
        sample = self._reading(ports, (before + self._clock()) / 2 - self._start)
        self.samples.append(sample)
        if len(self.samples) > SAMPLES_MAX:
            del self.samples[1:-1:2]
        return sample

    def counted(self) -> Mapping[int, PortCounters]:
        """Return what each port counted between the start and the last sample."""
        return self.samples[-1].ports

    def recent(self, window_s: float = 1.0) -> dict[int, PortRates]:
        """Return the rates of each port over about the last `window_s` seconds."""
        last = self.samples[-1]
        first = self.samples[0]
        for sample in reversed(self.samples[:-1]):
            first = sample
            if last.time_s - sample.time_s >= window_s:
                break
        return {port: _rates(first, last, port) for port in last.ports}

    def rates(self, port: int) -> list[PortRates]:
        """Return the rates of one port between samples, in the order of time.

        Samples nearer to each other than `RATE_INTERVAL_MIN_S` are taken together: in so short a time a few
        packets more or less look like another rate.
        """
        rates = []
        earlier = self.samples[0]
        for later in self.samples[1:]:
            if later.time_s - earlier.time_s >= RATE_INTERVAL_MIN_S:
                rates.append(_rates(earlier, later, port))
                earlier = later
        return rates

    def _reading(self, ports: Mapping[int, PortCounters], time_s: float) -> Sample:
        return Sample(time_s, {port: difference(now, self._base[port]) for port, now in ports.items()})


def _rates(earlier: Sample, later: Sample, port: int) -> PortRates:
    span_s = later.time_s - earlier.time_s
    if span_s <= 0:
        return PortRates(later.time_s)
    delta = difference(later.ports[port], earlier.ports[port])
    return PortRates(
        later.time_s,
        tx_pps=delta.tx_packets / span_s,
        tx_bps=delta.tx_bytes * 8 / span_s,
        rx_pps=delta.rx_packets / span_s,
        rx_bps=delta.rx_bytes * 8 / span_s,
    )
