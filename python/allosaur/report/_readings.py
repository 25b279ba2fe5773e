"""Counters over time: readings of a server's counters, kept with their times.

A rate is always what was counted, divided by the time in which it was counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

SAMPLES_MAX = 4000
"""Samples kept. Beyond it every second one is dropped, so that a run of days fits in memory."""

_NOTICED_S = 0.3
"""So much later may it be noticed that the traffic has ended by itself, on a machine that is not stuck."""
_FALL = 0.98
"""A rate that is lower than this share of the one before has fallen."""

RATE_INTERVAL_MIN_S = 0.1
"""The shortest time over which a rate is shown."""
_END_SHARE = 0.3
"""By how much of an interval the traffic may end before it is seen to have ended."""

Counters = TypeVar("Counters")


@dataclass(frozen=True)
class Sample(Generic[Counters]):
    """One reading, `time_s` seconds after the start."""

    time_s: float
    counters: Counters


class Readings(Generic[Counters]):
    """Reads counters when told to, and keeps them.

    How to drive it: make it before the traffic starts, say :meth:`started` when it has, and call
    :meth:`sample` at any pace.
    """

    def __init__(self, read: Callable[[], Counters], zero: Counters, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._start = clock()
        self.samples = [Sample(0.0, zero)]

    def started(self) -> None:
        """Say that the traffic starts now: times count from here."""
        self._start = self._clock()

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._start

    def sample(self) -> Sample[Counters]:
        """Read the counters, keep and return what was counted since the start."""
        before = self._clock()
        counters = self._read()
        # The server read its counters somewhere between asking and its answer.
        one = Sample((before + self._clock()) / 2 - self._start, counters)
        self.samples.append(one)
        if len(self.samples) > SAMPLES_MAX:
            del self.samples[1:-1:2]
        return one

    @property
    def counters(self) -> Counters:
        """What was counted between the start and the last sample."""
        return self.samples[-1].counters

    def window(self, window_s: float) -> tuple[Sample[Counters], Sample[Counters]]:
        """Return the ends of about the last `window_s` seconds."""
        last, first = self.samples[-1], self.samples[0]
        for one in reversed(self.samples[:-1]):
            first = one
            if last.time_s - one.time_s >= window_s:
                break
        return first, last

    def bins(
        self, rate: Callable[[Sample[Counters], Sample[Counters]], float], end_s: float | None
    ) -> list[tuple[Sample[Counters], Sample[Counters]]]:
        """Return pairs of samples between which rates are told, in the order of time.

        Samples nearer to each other than `RATE_INTERVAL_MIN_S` are taken together: in so short a time a few
        packets more or less look like another rate. With `end_s`, when the traffic ended, intervals in which
        it ran in part only are left out; they would look like another rate, too.
        """
        found = []
        earlier = self.samples[0]
        for later in self.samples[1:]:
            if later.time_s - earlier.time_s >= RATE_INTERVAL_MIN_S:
                found.append((earlier, later))
                earlier = later
        return found if end_s is None else _whole(found, [rate(*one) for one in found], end_s)


class Interval(Protocol):
    """The rates of one interval, of whatever kind of traffic."""

    @property
    def time_s(self) -> float:
        """The later end."""


Rates = TypeVar("Rates", bound=Interval)


def whole(series: Sequence[Rates], duration_s: float) -> list[Rates]:
    """Return the rates of the intervals that lie wholly within the traffic.

    The first one begins a little after the traffic, and the last ends after it: their rates would look as if
    the load had begun or ended with a step.
    """
    inside = []
    earlier_s = 0.0
    for one in series:
        # A busy machine reads at other times than at others: each interval has a width of its own.
        if one.time_s <= duration_s - _END_SHARE * (one.time_s - earlier_s):
            inside.append(one)
        earlier_s = one.time_s
    return inside[1:]


def _whole(
    bins: list[tuple[Sample[Counters], Sample[Counters]]], rates: Sequence[float], end_s: float
) -> list[tuple[Sample[Counters], Sample[Counters]]]:
    """Return the bins without those at both ends that the traffic filled only in part.

    Nobody knows to the millisecond when it began, and it ended within a bin, most often before that was
    noticed: these bins are partial when they are lower than their neighbor. A burst at the beginning is
    higher, and stays.
    """

    def has_ended_in(place: int) -> bool:
        time_s, rate, before = bins[place][1].time_s, rates[place], rates[place - 1]
        return (time_s > end_s and rate < before) or (time_s > end_s - _NOTICED_S and rate < _FALL * before)

    first, last = 0, len(bins)
    while last - first > 1 and has_ended_in(last - 1):
        last -= 1
    if last - first > 1 and rates[first] < rates[first + 1]:
        first += 1
    return bins[first:last]
