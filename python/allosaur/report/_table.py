"""Tables in HTML: text stands left, numbers right, and a header as its column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from allosaur.report._numbers import NOT_COUNTED


@dataclass(frozen=True)
class Column:
    """The head of a column, and whether there are numbers in it."""

    title: str
    is_number: bool = False
    is_bar: bool = False
    """Whether its cells are drawn: each is a share between 0 and 1, which another column says in words."""


def text(title: str) -> Column:
    """Return a column of words."""
    return Column(title)


def number(title: str) -> Column:
    """Return a column of numbers."""
    return Column(title, is_number=True)


def bar(title: str = "") -> Column:
    """Return a column of bars."""
    return Column(title, is_bar=True)


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; nothing without rows. The first cell of each row names the row.

    A column of which no row has a value (`NOT_COUNTED`, or nothing) is left out.
    On a narrow screen the table scrolls by itself, also with the keyboard.
    """
    if not rows:
        return ""
    columns, rows = _told(columns, rows)
    head = "".join(
        f'<th scope="col" class="{_class(column)}">{escape(column.title)}</th>' for column in columns
    )
    body = "".join(f"<tr>{_row(columns, row)}</tr>" for row in rows)
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _told(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[Column], list[list[str]]]:
    told = [
        index
        for index in range(len(columns))
        if index == 0 or any(row[index] not in ("", NOT_COUNTED) for row in rows)
    ]
    return [columns[index] for index in told], [[row[index] for index in told] for row in rows]


def _row(columns: Sequence[Column], row: Sequence[str]) -> str:
    name, *cells = zip(columns, row, strict=True)
    first = f'<th scope="row" class="{_class(name[0])}">{escape(name[1])}</th>'
    return first + "".join(_cell(column, cell) for column, cell in cells)


def _cell(column: Column, cell: str) -> str:
    if column.is_bar:
        return f'<td class="bar" aria-hidden="true"><i style="width:{100 * float(cell):.3g}%"></i></td>'
    return f'<td class="{_class(column)}">{escape(cell)}</td>'


def _class(column: Column) -> str:
    if column.is_bar:
        return "bar"
    return "number" if column.is_number else "text"
