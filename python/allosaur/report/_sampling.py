"""Counters over time: a sampler keeps readings, and rates are the differences between them.

A rate here is always what was counted, divided by the time in which it was counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

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

    def rates(self, port: int, end_s: float | None = None) -> list[PortRates]:
        """Return the rates of one port between samples, in the order of time.

        Samples nearer to each other than `RATE_INTERVAL_MIN_S` are taken together: in so short a time a few
        packets more or less look like another rate. With `end_s`, when the traffic ended, intervals in which
        it ran in part only are left out; they would look like another rate, too.
        """
        bins = []
        earlier = self.samples[0]
        for later in self.samples[1:]:
            if later.time_s - earlier.time_s >= RATE_INTERVAL_MIN_S:
                bins.append((earlier, later))
                earlier = later
        if end_s is not None:
            bins = whole_bins(bins, [_packets_a_second(*one) for one in bins], end_s)
        return [_rates(*one, port) for one in bins]

    def _reading(self, ports: Mapping[int, PortCounters], time_s: float) -> Sample:
        return Sample(time_s, {port: difference(now, self._base[port]) for port, now in ports.items()})


class _Timed(Protocol):
    @property
    def time_s(self) -> float: ...


_Bin = TypeVar("_Bin", bound=tuple[_Timed, _Timed])


def whole_bins(bins: Sequence[_Bin], rates: Sequence[float], end_s: float) -> list[_Bin]:
    """Return the bins without those at both ends that the traffic filled only in part.

    Nobody knows to the millisecond when it began, and it ended within a bin: these bins are partial when
    they are lower than their neighbor. A burst at the beginning is higher, and stays.
    """
    first, last = 0, len(bins)
    while last - first > 1 and bins[last - 1][1].time_s > end_s and rates[last - 1] < rates[last - 2]:
        last -= 1
    if last - first > 1 and rates[first] < rates[first + 1]:
        first += 1
    return list(bins[first:last])


def _packets_a_second(earlier: Sample, later: Sample) -> float:
    counted = [difference(later.ports[port], earlier.ports[port]) for port in later.ports]
    return sum(one.tx_packets + one.rx_packets for one in counted) / (later.time_s - earlier.time_s)


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
