"""The middle of the screen: a title, lines that stay at its top, and rows that can be scrolled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from allosaur.cli.top._snapshot import Note
from allosaur.cli.top._table import EMPTY, Cell, Line, Look


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
