"""Numbers, tables, verdicts and sparklines as people read them.

Tables and verdicts are for the standard output: as wide as it is, and in colour where it is a terminal that
wants colour (the variable NO_COLOR says that it does not).
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_GAP = 2
"""Columns of a table are so far apart."""
_PORT_COLUMNS_MAX = 4
"""More ports than these are rows of their tables: an eye finds a line sooner than a block of columns."""
_TEXT_MIN = 16
"""A column of texts has so much room at least, if it needs it."""
_NUMBER = re.compile(r"[-+<]?\d[\w.,:%]*(?: \S+)?")
"""A number, and the unit behind it."""
_BARS = "▁▂▃▄▅▆▇█"


def rate(value: float, unit: str) -> str:
    """Return a rate with three significant digits and a prefix: `1.25 Mpps`, `0 bps`."""
    for factor, prefix in _PREFIXES:
        # 999.5 would round up to "1000": it belongs to the next prefix already.
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {prefix}{unit}"
    return f"{_three_digits(value)} {unit}" if value else f"0 {unit}"


def count(value: int | None) -> str:
    """Return a count with thousands separated, or a dash where nobody counted."""
    return "-" if value is None else f"{value:,}"


def beside(value: float, limit: float) -> str:
    """Return a value with four significant digits, or as many as it takes to be another than its limit."""
    for digits in range(4, 17):
        text = f"{value:.{digits}g}"
        if value == limit or float(text) != limit:
            return f"{float(text):.15g}"
    return repr(value)


def seconds(value: float) -> str:
    """Return a time of seconds in the unit that fits it: `12.0 s`, `1.50 ms`, `20.0 µs`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{_three_digits(value * 1e9)} ns" if value else "0 s"


def microseconds(value: float | None) -> str:
    """Return a time that was measured in microseconds, or a dash where none was."""
    return "-" if value is None else seconds(value * 1e-6)


def percent(part: float, whole: float) -> str:
    """Return a share with three significant digits."""
    return f"{100 * part / max(whole, 1):.3g} %"


def cut(text: str, width: int) -> str:
    """Return a text that is no wider than this: what is missing is marked, and no number is shown in part."""
    if len(text) <= width:
        return text
    return f"{text[: cut_place(text, width)].rstrip()}…"[: max(width, 0)]


def cut_place(text: str, width: int) -> int:
    """Return how much of a text that is too wide stands before the mark: no number is shown in part."""
    place = max(width - 1, 0)
    for number in _NUMBER.finditer(text):
        if number.start() < place < number.end():
            return number.start()
    return place


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    texts: Collection[str] = (),
) -> str:
    """Return an aligned table: the first column and those of `texts` to the left, numbers to the right.

    It is as wide as the output, or `width`; columns that do not fit follow in further tables, each with the
    first column again. A text that is long wraps before that.
    """
    console = _console(width)
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    left = {number for number, name in enumerate(header) if name in texts}
    needed = [min(one, _TEXT_MIN) if number in left else one for number, one in enumerate(widths)]
    blocks = _blocks(needed, console.width)
    return "\n\n".join(_rendered(console, _block(lines, columns, left)) for columns in blocks)


def by_port(ports: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return the table of values by port: a column each, or, of more than a few, a row each.

    A row begins with its label; one without continues the one before.
    """
    columns = [name for name in ports if name != "total"]
    if len(columns) <= _PORT_COLUMNS_MAX:
        return table(["", *ports], rows, width)
    labels = [""]
    for label, *_ in rows:
        labels.append(label or labels[-1])
    return table(labels, list(zip(ports, *(row[1:] for row in rows), strict=True)), width)


def verdict(ok: bool, summary: str, words: tuple[str, str] = ("OK", "FAILED")) -> str:
    """Return the line that says whether all went well: green, or red."""
    from rich.text import Text

    word = words[0] if ok else words[1]
    style = "bold green" if ok else "bold red"
    return _rendered(_console(None), Text.assemble((f"{word}:", style), f" {summary}"))


def styled(text: str, style: str) -> str:
    """Return a text in a style such as `bold red`, where the output wants colour."""
    from rich.text import Text

    return _rendered(_console(None), Text(text, style))


def width() -> int:
    """Return how many columns the standard output has."""
    return _console(None).width


def _console(width: int | None) -> Console:
    """Return what draws for the standard output, into a text."""
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width or Console().width,
        force_terminal=sys.stdout.isatty(),
        highlight=False,
    )


def _rendered(console: Console, what: RenderableType) -> str:
    from rich.text import Text

    with console.capture() as capture:
        console.print(what, soft_wrap=isinstance(what, Text))
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").splitlines())


def _block(lines: Sequence[Sequence[str]], columns: Sequence[int], left: Collection[int]) -> RenderableType:
    """Return a table of some of the columns; those of `left` are texts, which may wrap."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        justify = "right" if column and column not in left else "left"
        drawn.add_column(
            Text(lines[0][column]),
            justify=justify,  # type: ignore[arg-type]
            # What has no room at all is for the terminal to wrap: a number that is cut is another number.
            no_wrap=bool(column) and column not in left,
            overflow="fold",
            min_width=None if not column or column in left else max(len(line[column]) for line in lines),
        )
    for line in lines[1:]:
        drawn.add_row(*(Text(line[column]) for column in columns))
    return drawn


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Return the columns of each table, so that each fits: the first of all, and as many as have room."""
    block, used = [0], widths[0]
    for column, width in enumerate(widths[1:], 1):
        if len(block) > 1 and used + _GAP + width > room:
            yield block
            block, used = [0], widths[0]
        block.append(column)
        used += _GAP + width
    yield block


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """Return the last `width` values as bars; `top`, or the highest of them, is a full bar."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0) if top is None else top
    if top <= 0:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"
