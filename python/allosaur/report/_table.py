"""Tables in HTML: text stands left, numbers right, and a header as its column."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from allosaur.report._model import Column, Table
from allosaur.report._numbers import NOT_COUNTED


def table_html(table: Table) -> str:
    """Return a table; nothing without rows.

    On a narrow screen the table scrolls by itself, also with the keyboard.
    """
    if not table.rows:
        return ""
    columns, rows = _told(table.columns, table.rows)
    head = "".join(
        f'<th scope="col" class="{_class(column)}">{escape(column.title)}</th>' for column in columns
    )
    body = "".join(f"<tr>{_row(columns, row)}</tr>" for row in rows)
    title = escape(table.title)
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{title}"><table>'
        f"<caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _told(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns of which some row has a value, and their cells."""
    told = [
        index
        for index in range(len(columns))
        if index == 0 or any(row[index] not in ("", NOT_COUNTED) for row in rows)
    ]
    return [columns[index] for index in told], [[row[index] for index in told] for row in rows]


def _row(columns: Sequence[Column], row: Sequence[str]) -> str:
    name, *cells = zip(columns, row, strict=True)
    first = f'<th scope="row" class="{_class(name[0])}">{escape(name[1])}</th>'
    return first + "".join(f'<td class="{_class(column)}">{escape(cell)}</td>' for column, cell in cells)


def _class(column: Column) -> str:
    return "number" if column.is_number else "text"
