"""What a report shows, as data: a report has parts, a part has sections, a section has charts and tables.

A kind of traffic makes a :class:`Part` of what it measured, and knows nothing of HTML; `write_report` draws
the page. Each cell and each number is text already: who makes the part knows its units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from allosaur.report import _scale
from allosaur.report._scale import Axis, Point

WHEN = "When"
"""The fact that stands at the top of the page."""


@dataclass(frozen=True)
class Headline:
    """One of the numbers that stand before all others."""

    label: str
    value: str
    detail: str = ""
    is_bad: bool = False


@dataclass(frozen=True)
class Check:
    """One thing that had to hold, and whether it did."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Column:
    """The head of a column. Words stand left, numbers right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """A table of texts. The first cell of each row names the row; without rows it is not shown.

    A column of which no row has a value (`NOT_COUNTED`, or nothing) is left out.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Series:
    """The values of one line, or of the bars of one colour. A value that is `None` is a gap."""

    name: str
    points: Sequence[Point]
    is_filled: bool = False
    """Whether the area below a line is shaded."""


ChartKind = Literal["lines", "points", "bars", "histogram"]
"""`points`: lines through few points that were measured each by itself, which are marked. `bars`: of named
things, side by side. `histogram`: how often values of each range came, without gaps between the ranges."""


@dataclass(frozen=True)
class Chart:
    """A drawing of some series over one x axis; without points it is not shown."""

    title: str
    unit: str
    series: Sequence[Series]
    kind: ChartKind = "lines"
    sentence: str = ""
    """What the chart shows, in words, for who does not see it."""
    x: Axis | None = None
    """Without it, time in seconds since the start: from 0 to `end_s` or the last point of all such charts."""
    y: Axis | None = None
    """Without it, from 0 to the highest value."""
    name: str = ""
    """The identifier in the page; made of the title where it is empty."""
    end_s: float = 0.0
    is_whole: bool = False
    """Whether values are counts: no tick is then less than 1 apart from the next."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(True for one in self.series for _ in _scale.known(one.points))


@dataclass(frozen=True)
class Section:
    """Charts and tables below a title, and a note after them. Without any of them it is not shown."""

    title: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    note: str = ""
    is_folded: bool = False
    """Whether the reader has to open it."""


@dataclass(frozen=True)
class Part:
    """What came of one load."""

    name: str
    kind: str
    """The kind of traffic: `streams`, `flows` and so on."""
    ok: bool
    verdict: str = ""
    """What came of it in a sentence."""
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    checks: Sequence[Check] = ()
    reasons: Sequence[str] = ()
    """Why it failed, one sentence each."""
    hints: Sequence[str] = ()
    """What to look at next."""
    notes: Sequence[str] = ()
    profile: str = ""
    """The source of what was run."""


@dataclass(frozen=True)
class Report:
    """All that a page shows: of one part its sections, of several an overview and the parts below it."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where: shown as a list of names and values."""
    parts: Sequence[Part] = ()
    checks: Sequence[Check] = ()
    """What had to hold of all parts together."""
    reproduce: Sequence[str] = ()
    """Commands, one a line."""
    notes: Sequence[str] = field(default_factory=tuple)


def text(title: str) -> Column:
    """Return a column of words."""
    return Column(title)


def number(title: str) -> Column:
    """Return a column of numbers."""
    return Column(title, is_number=True)
