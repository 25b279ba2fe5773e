"""What is drawn on a terminal of any width, live: no number is shown in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from allosaur.cli import _format

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Cell = tuple[str, str]
"""A text and its style."""
_GAP = 2


@dataclass(frozen=True)
class FittedLine:
    """A line of text; what has no room is cut, but for `end`, which stays whole."""

    text: str
    end: str = ""
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        from rich.text import Text

        end = _format.cut(self.end, options.max_width)
        start = _format.cut(self.text, options.max_width - len(end))
        yield Text(start + end, self.style, no_wrap=True)


@dataclass
class FittedTable:
    """A table with its first column at the left and numbers at the right; the last columns go first."""

    header: Sequence[str]
    ranks: Sequence[int] = ()
    """Columns of the lowest ranks stay when not all fit; without, those at the left."""
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: str | Cell) -> None:
        """Add a row."""
        self.rows.append([cell if isinstance(cell, tuple) else (cell, "") for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw as many columns as have room."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
        columns = self._fitting(options.max_width)
        for place in columns:
            shown.add_column(self.header[place], justify="right" if place else "left", no_wrap=True)
        for row in self.rows:
            shown.add_row(*(Text(*row[place]) for place in columns))
        yield shown

    def _fitting(self, room: int) -> list[int]:
        widths = [
            max(len(title), *(len(row[place][0]) for row in self.rows), 0)
            for place, title in enumerate(self.header)
        ]
        ranks = self.ranks or range(len(self.header))
        kept: list[int] = []
        for place in sorted(range(len(widths)), key=lambda place: (ranks[place], place)):
            if sum(widths[one] + _GAP for one in [*kept, place]) > room:
                break
            kept.append(place)
        return sorted(kept)
