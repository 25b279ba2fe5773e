"""What is drawn: tables of fixed columns, as many as fit, and lines of cells, not yet on any terminal.

Columns keep their widths whatever they show. So a number that changes moves nothing beside it, and few cells
of the terminal are written again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from allosaur.cli import _format
from allosaur.cli.top._snapshot import Note

Row = TypeVar("Row")
_GAPS = (1, 3)
"""Columns are so far apart: at least, and where there is room."""


class Look(Enum):
    """How a cell looks. Colours only repeat what its text says."""

    PLAIN = "plain"
    DIM = "dim"
    TITLE = "title"
    CHOSEN = "chosen"
    KEY = "key"
    GOOD = "good"
    BAD = "bad"
    BARS = "bars"


@dataclass(frozen=True)
class Cell:
    """Some text of one look."""

    text: str
    look: Look = Look.PLAIN


Line = tuple[Cell, ...]
EMPTY: Line = ()


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its title, how wide it is, and what a row has there."""

    title: str
    width: int
    cell: Callable[[Row], str | Cell]
    is_text: bool = False
    """Texts stand at the left, numbers at the right."""
    rank: int = 0
    """Those of the lowest rank stay when not all fit."""


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Line]:
    """Return the header and the rows, of as many columns as fit."""
    chosen = fitting(columns, width)
    least, most = _GAPS
    spare = width - sum(one.width for one in chosen)
    gap = max(least, min(most, spare // max(len(chosen) - 1, 1)))
    header = _line([Cell(_aligned(one, one.title), Look.TITLE) for one in chosen], gap)
    return [header, *(_line([_cell(one, row) for one in chosen], gap) for row in rows)]


def fitting(columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """Return the columns that have room: by rank, and from the left among those of the same."""
    used = 0
    kept: set[int] = set()
    for place, one in sorted(enumerate(columns), key=lambda item: (item[1].rank, item[0])):
        needed = one.width + (_GAPS[0] if kept else 0)
        if used + needed > width:
            break
        used += needed
        kept.add(place)
    return [one for place, one in enumerate(columns) if place in kept]


def text_of(line: Line) -> str:
    """Return what a line says."""
    return "".join(cell.text for cell in line).rstrip()


def cut(line: Line, width: int) -> Line:
    """Return a line that is no wider than this: what is missing is marked, and no number is shown in part."""
    text = text_of(line)
    is_short = len(text) <= width
    left = width if is_short else _format.cut_place(text, width)
    cells = []
    for cell in line:
        if left <= 0:
            break
        cells.append(cell if len(cell.text) <= left else Cell(cell.text[:left], cell.look))
        left -= len(cell.text)
    return tuple(cells) if is_short or width <= 0 else (*cells, Cell("…", Look.DIM))


def spread(left: Line, right: Line, width: int) -> Line:
    """Return one line with something at each of its ends; the left goes before what is at the right."""
    room = width - len(text_of(right)) - 1
    shown = cut(left, room) if right else cut(left, width)
    filled = sum(len(cell.text) for cell in shown)
    return (*shown, Cell(" " * (width - filled - len(text_of(right)))), *right) if right else shown


def _line(cells: Sequence[Cell], gap: int) -> Line:
    apart = Cell(" " * gap)
    return tuple(part for place, cell in enumerate(cells) for part in ((apart, cell) if place else (cell,)))


def _cell(column: Column[Row], row: Row) -> Cell:
    value = column.cell(row)
    cell = value if isinstance(value, Cell) else Cell(value)
    return Cell(_aligned(column, cell.text), cell.look)


def _aligned(column: Column[Row], text: str) -> str:
    if len(text) > column.width:
        text = _format.cut(text, column.width) if column.is_text else "…"
    return f"{text:<{column.width}}" if column.is_text else f"{text:>{column.width}}"


@dataclass(frozen=True)
class Body:
    """What a view shows."""

    title: str
    head: Sequence[Line] = ()
    rows: Sequence[Line] = ()
    hint: str = ""
    """What keys do here, for the screen only."""


def said(text: str) -> list[Line]:
    """Return a sentence in place of a table."""
    return [(Cell(text, Look.DIM),)]


def noted(note: Note) -> Line:
    """Return an event as a line."""
    clock = time.strftime("%H:%M:%S", time.localtime(note.at_s))
    mark = "! " if note.is_warning else "  "
    return (
        Cell(f"{clock} ", Look.DIM),
        Cell(f"{mark}{note.text}", Look.BAD if note.is_warning else Look.PLAIN),
    )


def section(title: str, lines: Sequence[Line]) -> list[Line]:
    """Return a table under a title, with a line before it."""
    return [EMPTY, (Cell(title, Look.TITLE),), *lines]
