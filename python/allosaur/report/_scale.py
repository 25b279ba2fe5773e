"""Axes of charts, and the points that a chart shows: pure functions of numbers, nothing is drawn here.

An axis maps values to places between 0 and 1. Ticks are 1, 2, 2.5 or 5 times a power of ten; those of time
are steps that a clock has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from allosaur.report._numbers import microseconds, short

Point = tuple[float, "float | None"]
"""Where on the x axis, and the value there; `None` is a gap in the line."""

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_CLOCK_S = (
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0),
    *(7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0),
)
_SMALLEST, _LARGEST = 1e-200, 1e200
"""Values beyond these are drawn at the end of the axis: no counter comes near them."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with ticks and their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    say: Callable[[float], str] = short
    """A value on the axis in words."""
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return where a value is on the axis, from 0 to 1; what is beyond an end is at that end."""
        if math.isnan(value):
            return 0.0
        if self.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            value = math.log10(min(max(value, self.low), self.high))
        else:
            low, high = self.low, self.high
        return min(max((value - low) / (high - low), 0.0), 1.0)


def linear_axis(
    highest: float, wanted: int = 4, is_whole: bool = False, say: Callable[[float], str] = short
) -> Axis:
    """Return an axis from 0 to a little above `highest`, with about `wanted` steps.

    `is_whole` is for counts: no step is then less than one. `say` makes the labels.
    """
    if not math.isfinite(highest) or highest < _SMALLEST:
        highest = 1.0
    # A constant rate that is a round number must not lie on the upper edge.
    highest = min(highest, _LARGEST) * 1.02
    step = _nice(highest / wanted)
    if is_whole:
        step = max(step, 1.0) if step != 2.5 else 5.0
    steps = math.ceil(highest / step)
    ticks = tuple((index * step, say(index * step)) for index in range(steps + 1))
    return Axis(0.0, steps * step, ticks, say)


def log_axis(lowest: float, highest: float) -> Axis:
    """Return a logarithmic axis for times in microseconds, from a power of ten to one."""
    lowest = min(max(lowest, 1e-3), 1e12) if math.isfinite(lowest) else 1.0
    highest = min(max(highest, lowest), 1e12) if math.isfinite(highest) else lowest
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    last = max(last, first + 1)
    every = math.ceil((last - first) / 6)
    powers = range(first, last + 1, every)
    ticks = tuple((10.0**power, microseconds(10.0**power)) for power in powers)
    return Axis(10.0**first, 10.0**last, ticks, microseconds, is_log=True)


def time_axis(end_s: float, wanted: int = 6) -> Axis:
    """Return an axis from 0 to `end_s` seconds, labelled in seconds, minutes, hours or days."""
    if not math.isfinite(end_s) or end_s <= _SMALLEST:
        end_s = 1.0
    end_s = min(end_s, _LARGEST)
    step = next((one for one in _CLOCK_S if end_s / one <= wanted), 0.0)
    if step == 0.0 or end_s < _CLOCK_S[0] * 2:
        # Longer than a clock shows, or a blink.
        days = 86_400.0 if step == 0.0 else 1.0
        step = _nice(end_s / days / wanted) * days
    unit_s, unit = next(
        (unit_s, unit)
        for unit_s, unit, longest_s in (
            *((1.0, "s", 120.0), (60.0, "min", 7200.0), (3600.0, "h", 259_200.0)),
            (86_400.0, "d", math.inf),
        )
        if end_s <= longest_s
    )
    steps = math.floor(end_s / step * (1 + 1e-9))
    ticks = tuple((index * step, f"{index * step / unit_s:g} {unit}") for index in range(steps + 1))
    return Axis(0.0, end_s, ticks, lambda x: f"{x:.2f} s")


def named_axis(names: Sequence[str]) -> Axis:
    """Return an axis of names, the first in the middle of the first part: `n` is at `n + 0.5`."""
    ticks = tuple((index + 0.5, name) for index, name in enumerate(names))
    return Axis(0.0, max(len(names), 1), ticks, lambda x: names[min(int(x), len(names) - 1)])


def highest(lines: Iterable[Sequence[Point]]) -> float:
    """Return the highest value of all lines; 0 without any."""
    return max((value for line in lines for _, value in known(line)), default=0.0)


def last(points: Sequence[Point]) -> float:
    """Return where the last point is; 0 without any."""
    return max((x for x, _ in points if math.isfinite(x)), default=0.0)


def known(points: Iterable[Point]) -> Iterator[tuple[float, float]]:
    """Return the points that are no gaps."""
    return ((x, value) for x, value in points if value is not None and math.isfinite(value))


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """Return at most `limit` of the points, so that no peak and no gap is lost.

    Of neighbours the lowest and the highest stay, in their order: a short dip in a run of hours is seen.
    """
    if len(points) <= limit:
        return list(points)
    kept_of_each = 3 if any(value is None for _, value in points) else 2
    parts = max(limit // kept_of_each, 1)
    thinned: list[Point] = []
    for part in range(parts):
        some = points[part * len(points) // parts : (part + 1) * len(points) // parts]
        values = [(value, index) for index, (_, value) in enumerate(some) if value is not None]
        keep = {min(values)[1], max(values)[1]} if values else set()
        keep |= {index for index, (_, value) in enumerate(some) if value is None and index not in keep} and {
            next(index for index, (_, value) in enumerate(some) if value is None)
        }
        thinned += [some[index] for index in sorted(keep)]
    return thinned


def runs(points: Iterable[Point]) -> list[list[tuple[float, float]]]:
    """Return the pieces of a line between its gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, value in points:
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((x, value))
    return [piece for piece in pieces if piece]


def _nice(step: float) -> float:
    """Return the next step of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor for factor in _STEPS if step <= factor * power * (1 + 1e-9)) * power
