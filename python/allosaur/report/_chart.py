"""Charts as SVG in the page: no script draws them, and nothing is loaded.

The drawing has no width of its own. Lines are stretched to the width that there is, and their strokes and
all text keep their sizes, so one drawing fits a telephone and a sheet of paper. What the pointer is on is
shown by CSS alone. Each chart has a sentence that says what it shows: neither sight nor colour is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from allosaur.report import _scale
from allosaur.report._model import Chart

_COLOURS = 4
_DASHES = 4
HEIGHT = 190
_WIDE, _HIGH = 2000, 1000
"""The units in which lines are drawn; they are stretched to the place that there is."""
_POINTS_OF_ALL_LINES = 6000
_POINTS_MIN, _POINTS_MAX = 40, 400
_MARKS_OF_ALL_CHARTS = 240
_MARKS_MIN, _MARKS_MAX = 8, 60
"""Places of which the pointer shows the values."""
_BAR_SHARE = 0.5
"""How much of its place the bars of a named thing fill."""


def charts_html(charts: Sequence[Chart]) -> str:
    """Return the charts side by side; nothing when all are empty.

    The more lines there are, the fewer points has each, so that a page stays small.
    """
    charts = [chart for chart in charts if not chart.is_empty]
    if not charts:
        return ""
    lines = sum(len(chart.series) for chart in charts)
    points = min(max(_POINTS_OF_ALL_LINES // lines, _POINTS_MIN), _POINTS_MAX)
    marks = min(max(_MARKS_OF_ALL_CHARTS // len(charts), _MARKS_MIN), _MARKS_MAX)
    return f'<div class="charts">{"".join(_Drawing(one, points).html(marks) for one in charts)}</div>'


def end_s(charts: Sequence[Chart]) -> float:
    """Return where the time axis of these charts ends."""
    over_time = [chart for chart in charts if chart.x is None]
    last_s = [_scale.last(one.points) for chart in over_time for one in chart.series]
    return max([*(chart.end_s for chart in over_time), *last_s], default=0.0)


class _Drawing:
    """One chart, with axes, and with no more points than are drawn."""

    def __init__(self, chart: Chart, points_max: int) -> None:
        self._chart = chart
        self._is_bars = chart.kind in ("bars", "histogram")
        self._x = chart.x or _scale.time_axis(end_s([chart]))
        highest = _scale.highest(one.points for one in chart.series)
        self._y = chart.y or _scale.linear_axis(highest, is_whole=chart.is_whole)
        self._drawn = [_scale.thin(one.points, points_max) for one in chart.series]

    def html(self, marks_max: int) -> str:
        """Return the figure: title, drawing, legend and sentence."""
        chart, name = self._chart, escape(self._chart.name)
        several = len(chart.series) > 1
        legend = "".join(self._legend(place) for place in range(len(chart.series))) if several else ""
        drawn = "".join(self._bars(place) if self._is_bars else self._line(place) for place in self._places())
        return (
            f'<figure class="chart" id="{name}"><figcaption>'
            f'<strong id="{name}-title">{escape(chart.title)}</strong> '
            f'<span class="unit">{escape(chart.unit)}</span></figcaption>'
            f'<svg role="img" aria-labelledby="{name}-title {name}-text" width="100%" height="{HEIGHT + 44}" '
            f'overflow="visible"><g transform="translate(0 18)">{self._grid()}'
            f'<svg width="100%" height="{HEIGHT}" viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" '
            f'overflow="visible">{drawn}</svg>'
            f"{self._dots()}{self._marks(marks_max)}</g></svg>"
            + (f'<p class="legend" aria-hidden="true">{legend}</p>' if legend else "")
            + f'<p class="says" id="{name}-text">{escape(chart.sentence or self._most())}</p></figure>'
        )

    def _places(self) -> range:
        return range(len(self._chart.series))

    def _most(self) -> str:
        """Return the sentence of a chart that has none of its own: how high each series comes."""
        said = [
            f"{one.name}: {self._y.say(_scale.highest([one.points]))} at the most"
            for one in self._chart.series
        ]
        return f"{'; '.join(said)}."

    def _grid(self) -> str:
        parts = []
        for value, label in self._y.ticks:
            y = self._height(value)
            parts.append(
                f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>'
                f'<text class="tick" x="-8" y="{y}" dy=".32em" text-anchor="end">{escape(label)}</text>'
            )
        last = len(self._x.ticks) - 1
        for index, (value, label) in enumerate(self._x.ticks):
            x = 100 * self._x.place(value)
            # The outermost labels stay inside the drawing.
            anchor = "start" if index == 0 and x < 5 else "end" if index == last and x > 97 else "middle"
            parts.append(
                f'<text class="tick" x="{x:.4g}%" y="{HEIGHT + 18}" text-anchor="{anchor}">'
                f"{escape(label)}</text>"
            )
        return "".join(parts)

    def _line(self, place: int) -> str:
        pieces = [[self._at(*point) for point in piece] for piece in _scale.runs(self._drawn[place])]
        path = "".join(_path(piece) for piece in pieces)
        area = ""
        if self._chart.series[place].is_filled:
            closed = "".join(
                f"M{piece[0][0]} {_HIGH}L{_pairs(piece)} {piece[-1][0]} {_HIGH}Z" for piece in pieces
            )
            area = f'<path class="area {_colour(place)}" d="{closed}"/>'
        return (
            f'{area}<path class="{_stroke(place)}" fill="none" '
            f'stroke="currentColor" vector-effect="non-scaling-stroke" d="{path}"/>'
        )

    def _bars(self, place: int) -> str:
        """Return the bars of one series, each in its part of the place that its name has."""
        share = _BAR_SHARE if self._chart.kind == "bars" else 1.0
        width = share * self._x.place(1.0) * _WIDE / len(self._chart.series)
        bars = []
        for point in _scale.known(self._drawn[place]):
            x, y = self._at(*point)
            left = x + width * (place - len(self._chart.series) / 2)
            bars.append(f"M{left:.0f} {_HIGH}V{y}h{width:.0f}V{_HIGH}Z")
        return f'<path class="bars {_colour(place)} d{_dash(place)}" d="{"".join(bars)}"/>'

    def _dots(self) -> str:
        if self._chart.kind != "points":
            return ""
        return "".join(
            f'<circle class="dot {_colour(place)}" cx="{100 * self._x.place(x):.4g}%" '
            f'cy="{self._height(value)}" r="3.5"/>'
            for place, points in enumerate(self._drawn)
            for x, value in _scale.known(points)
        )

    def _marks(self, marks_max: int) -> str:
        """Return what the pointer finds: at each place a strip, and in it a line and the values there."""
        values = [dict(_scale.known(one.points)) for one in self._chart.series]
        places = sorted({x for of in values for x in of})
        if len(places) > marks_max:
            places = [places[index * len(places) // marks_max] for index in range(marks_max)]
        at = [100 * self._x.place(x) for x in places]
        parts = []
        for index, (x, centre) in enumerate(zip(places, at, strict=True)):
            left = 0.0 if index == 0 else (at[index - 1] + centre) / 2
            right = 100.0 if index == len(at) - 1 else (centre + at[index + 1]) / 2
            said = "; ".join(
                f"{one.name} {self._y.say(of[x])}"
                for one, of in zip(self._chart.series, values, strict=True)
                if x in of
            )
            parts.append(
                f'<g class="mark"><rect x="{left:.4g}%" width="{right - left:.4g}%" height="{HEIGHT}" '
                f'fill="none" pointer-events="all"/><g visibility="hidden"><line x1="{centre:.4g}%" '
                f'x2="{centre:.4g}%" y2="{HEIGHT}"/><text x="100%" y="-6" text-anchor="end">'
                f"{escape(self._x.say(x))}: {escape(said)}</text></g></g>"
            )
        return "".join(parts)

    def _legend(self, place: int) -> str:
        drawn = f'<path class="{_stroke(place)}" fill="none" stroke="currentColor" d="M1 4H25"/>'
        if self._is_bars:
            drawn = f'<path class="bars {_colour(place)} d{_dash(place)}" d="M1 0H25V8H1Z"/>'
        return (
            f'<span><svg width="26" height="8">{drawn}</svg>{escape(self._chart.series[place].name)}</span>'
        )

    def _at(self, x: float, value: float) -> tuple[int, int]:
        return round(_WIDE * self._x.place(x)), round(_HIGH * (1 - self._y.place(value)))

    def _height(self, value: float) -> str:
        return f"{HEIGHT * (1 - self._y.place(value)):.4g}"


def _stroke(place: int) -> str:
    return f"line {_colour(place)} d{_dash(place)}"


def _colour(place: int) -> str:
    return f"c{place % _COLOURS}"


def _dash(place: int) -> int:
    """Return how a series is drawn beside its colour: no two of eight are alike in both."""
    return (place + place // _COLOURS) % _DASHES


def _path(piece: Sequence[tuple[int, int]]) -> str:
    if len(piece) == 1:
        # A line of no length with round ends: a dot.
        return f"M{piece[0][0]} {piece[0][1]}h0"
    return f"M{piece[0][0]} {piece[0][1]}L{_pairs(piece[1:])}"


def _pairs(piece: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{x} {y}" for x, y in piece)
