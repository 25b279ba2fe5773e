"""Line charts as SVG in the page: no script draws them, and nothing is loaded.

The drawing has no width of its own. Lines are stretched to the width that there is, and their strokes and
all text keep their sizes, so one drawing fits a telephone and a sheet of paper. What the pointer is on is
shown by CSS alone. Each chart has a sentence that says what it shows: neither sight nor colour is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from allosaur.report import _scale
from allosaur.report._numbers import short
from allosaur.report._scale import Axis, Point

COLOURS = 4
DASHES = 4
HEIGHT = 190
_WIDE, _HIGH = 2000, 1000
"""The units in which lines are drawn; they are stretched to the place that there is."""
_POINTS_OF_ALL_LINES = 6000
_POINTS_MIN, _POINTS_MAX = 40, 400
_MARKS_OF_ALL_CHARTS = 240
_MARKS_MIN, _MARKS_MAX = 8, 60
"""Places of which the pointer shows the values."""


@dataclass(frozen=True)
class Line:
    """One line: its name, its points, and how it is drawn. Colour never stands alone: dashes differ, too."""

    name: str
    points: Sequence[Point]
    colour: int = 0
    dash: int = 0
    is_filled: bool = False
    """Whether the area below is shaded."""


@dataclass(frozen=True)
class Chart:
    """Lines over one x axis."""

    name: str
    """The identifier in the page; letters, digits and hyphens."""
    title: str
    unit: str
    sentence: str
    """What the chart shows, in words."""
    lines: Sequence[Line]
    x: Axis
    y: Axis
    say_x: Callable[[float], str] = lambda x: f"{x:.2f} s"
    say_y: Callable[[float], str] = short
    has_dots: bool = False
    """Whether each point is marked: few points, each of which was measured by itself."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(True for line in self.lines for _ in _scale.known(line.points))


def over_time(
    name: str,
    title: str,
    unit: str,
    sentence: str,
    lines: Sequence[Line],
    end_s: float | None = None,
    is_whole: bool = False,
) -> Chart:
    """Return a chart of lines over time, from 0 to `end_s` or the last point."""
    last_s = max((point[0] for line in lines for point in line.points), default=0.0)
    highest = _scale.highest(line.points for line in lines)
    return Chart(
        name,
        title,
        unit,
        sentence,
        lines,
        _scale.time_axis(max(last_s, end_s or 0.0)),
        _scale.linear_axis(highest, is_whole=is_whole),
    )


def charts_html(charts: Sequence[Chart]) -> str:
    """Return the charts side by side; nothing when all are empty.

    The more lines there are, the fewer points has each, so that a page stays small.
    """
    charts = [chart for chart in charts if not chart.is_empty]
    if not charts:
        return ""
    lines = sum(len(chart.lines) for chart in charts)
    points = min(max(_POINTS_OF_ALL_LINES // lines, _POINTS_MIN), _POINTS_MAX)
    marks = min(max(_MARKS_OF_ALL_CHARTS // len(charts), _MARKS_MIN), _MARKS_MAX)
    return f'<div class="charts">{"".join(_chart(one, points, marks) for one in charts)}</div>'


def _chart(chart: Chart, points_max: int, marks_max: int) -> str:
    name = escape(chart.name)
    drawn = [(line, _scale.thin(line.points, points_max)) for line in chart.lines]
    legend = "".join(_legend(line) for line in chart.lines) if len(chart.lines) > 1 else ""
    return (
        f'<figure class="chart" id="{name}"><figcaption>'
        f'<strong id="{name}-title">{escape(chart.title)}</strong> '
        f'<span class="unit">{escape(chart.unit)}</span></figcaption>'
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" width="100%" height="{HEIGHT + 44}" '
        f'overflow="visible"><g transform="translate(0 18)">{_grid(chart)}'
        f'<svg width="100%" height="{HEIGHT}" viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" '
        f'overflow="visible">{"".join(_line(chart, line, points) for line, points in drawn)}</svg>'
        f"{_dots(chart, drawn)}{_marks(chart, marks_max)}</g></svg>"
        + (f'<p class="legend" aria-hidden="true">{legend}</p>' if legend else "")
        + f'<p class="says" id="{name}-text">{escape(chart.sentence)}</p></figure>'
    )


def _grid(chart: Chart) -> str:
    parts = []
    for value, label in chart.y.ticks:
        y = _y(chart, value)
        parts.append(
            f'<line class="grid" x2="100%" y1="{y}" y2="{y}"/>'
            f'<text class="tick" x="-8" y="{y}" dy=".32em" text-anchor="end">{escape(label)}</text>'
        )
    last = len(chart.x.ticks) - 1
    for index, (value, label) in enumerate(chart.x.ticks):
        x = 100 * chart.x.place(value)
        # The outermost labels stay inside the drawing.
        anchor = "start" if index == 0 and x < 5 else "end" if index == last and x > 97 else "middle"
        parts.append(
            f'<text class="tick" x="{x:.4g}%" y="{HEIGHT + 18}" text-anchor="{anchor}">{escape(label)}</text>'
        )
    return "".join(parts)


def _line(chart: Chart, line: Line, points: Sequence[Point]) -> str:
    pieces = [
        [(round(_WIDE * chart.x.place(x)), round(_HIGH * (1 - chart.y.place(value)))) for x, value in piece]
        for piece in _scale.runs(points)
    ]
    path = "".join(_path(piece) for piece in pieces)
    area = ""
    if line.is_filled:
        closed = "".join(
            f"M{piece[0][0]} {_HIGH}L{_pairs(piece)} {piece[-1][0]} {_HIGH}Z" for piece in pieces
        )
        area = f'<path class="area c{line.colour % COLOURS}" d="{closed}"/>'
    return (
        f'{area}<path class="line c{line.colour % COLOURS} d{line.dash % DASHES}" fill="none" '
        f'stroke="currentColor" vector-effect="non-scaling-stroke" d="{path}"/>'
    )


def _path(piece: Sequence[tuple[int, int]]) -> str:
    if len(piece) == 1:
        # A line of no length with round ends: a dot.
        return f"M{piece[0][0]} {piece[0][1]}h0"
    return f"M{piece[0][0]} {piece[0][1]}L{_pairs(piece[1:])}"


def _pairs(piece: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{x} {y}" for x, y in piece)


def _dots(chart: Chart, drawn: Sequence[tuple[Line, Sequence[Point]]]) -> str:
    if not chart.has_dots:
        return ""
    return "".join(
        f'<circle class="dot c{line.colour % COLOURS}" cx="{100 * chart.x.place(x):.4g}%" '
        f'cy="{_y(chart, value)}" r="3.5"/>'
        for line, points in drawn
        for x, value in _scale.known(points)
    )


def _marks(chart: Chart, marks_max: int) -> str:
    """Return what the pointer finds: at each place a strip, and in it a line and the values there."""
    places = sorted({x for line in chart.lines for x, _ in _scale.known(line.points)})
    places = (
        [places[index * len(places) // marks_max] for index in range(min(marks_max, len(places)))]
        if (len(places) > marks_max)
        else places
    )
    values = [dict(_scale.known(line.points)) for line in chart.lines]
    at = [100 * chart.x.place(x) for x in places]
    parts = []
    for index, (x, centre) in enumerate(zip(places, at, strict=True)):
        left = 0.0 if index == 0 else (at[index - 1] + centre) / 2
        right = 100.0 if index == len(at) - 1 else (centre + at[index + 1]) / 2
        said = "; ".join(
            f"{line.name} {chart.say_y(of[x])}"
            for line, of in zip(chart.lines, values, strict=True)
            if x in of
        )
        parts.append(
            f'<g class="mark"><rect x="{left:.4g}%" width="{right - left:.4g}%" height="{HEIGHT}" '
            f'fill="none" pointer-events="all"/><g visibility="hidden"><line x1="{centre:.4g}%" '
            f'x2="{centre:.4g}%" y2="{HEIGHT}"/><text x="100%" y="-6" text-anchor="end">'
            f"{escape(chart.say_x(x))}: {escape(said)}</text></g></g>"
        )
    return "".join(parts)


def _legend(line: Line) -> str:
    return (
        f'<span><svg width="26" height="8"><path class="line c{line.colour % COLOURS} '
        f'd{line.dash % DASHES}" fill="none" stroke="currentColor" d="M1 4H25"/></svg>'
        f"{escape(line.name)}</span>"
    )


def _y(chart: Chart, value: float) -> str:
    return f"{HEIGHT * (1 - chart.y.place(value)):.4g}"
