"""Numbers, tables and sparklines as people read them. Pure text: no colour, no terminal."""

from __future__ import annotations

from collections.abc import Sequence

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
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


def seconds(value: float) -> str:
    """Return a time of seconds in the unit that fits it: `12.0 s`, `1.50 ms`, `20.0 µs`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{_three_digits(value * 1e9)} ns" if value else "0 s"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned table: the first column to the left, numbers to the right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = []
    for index, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text.append("  ".join(cells).rstrip())
        if index == 0:
            text.append("  ".join("-" * width for width in widths))
    return "\n".join(text)


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the last `width` values as bars; the highest of them is a full bar."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"
