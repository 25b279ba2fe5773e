"""Numbers as the report prints them: counts, rates with a prefix, shares and times. Pure text."""

from __future__ import annotations

import math

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NOT_COUNTED = "not counted"


def count(value: int | None) -> str:
    """Return a count with its thousands separated; a counter that the server does not have says so."""
    return NOT_COUNTED if value is None else f"{value:,}"


def short(value: float, unit: str = "") -> str:
    """Return three significant digits with a prefix and the unit: `1.25 Mpps`, `200 k`, `0 bps`."""
    if not math.isfinite(value):
        return "-"
    for factor, prefix in _PREFIXES:
        # 999.5 would be rounded up to "1000": it belongs to the next prefix already.
        if abs(value) >= factor * 0.9995:
            return f"{three_digits(value / factor)} {prefix}{unit}"
    return f"{three_digits(value)} {unit}".rstrip()


def three_digits(value: float) -> str:
    """Return three significant digits, without zeros that say nothing: `1.5`, `12.3`, `1,234`."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share(part: int, whole: int) -> str:
    """Return `part` of `whole` in percent.

    Some is never printed as nothing, nor as all: 1 of a million is 0.0001 %, all but one of them is
    99.9999 %.
    """
    if whole <= 0 or part <= 0:
        return "0 %"
    percent = 100 * part / whole
    if part >= whole:
        return f"{percent:.3g} %" if percent < 1000 else f"{percent:,.0f} %"
    if percent < 0.0001:
        return "< 0.0001 %"
    if percent <= 99:
        # Not "0.00013": digits that count, and no power of ten.
        return f"{percent:.{max(2 - math.floor(math.log10(percent)), 0)}f}".rstrip("0").rstrip(".") + " %"
    rest = 100 - percent
    if rest < 0.0001:
        return "> 99.9999 %"
    digits = max(-math.floor(math.log10(rest)), 1)
    # Down, not to the nearest: 99.96 must not become 100.
    return f"{math.floor(percent * 10**digits) / 10**digits:.{digits}f} %"


def microseconds(value: float) -> str:
    """Return a time that is given in microseconds in the unit that fits: `12.3 µs`, `1.5 ms`, `2 s`."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= factor * 0.9995:
            return f"{three_digits(value / factor)} {unit}"
    return f"{three_digits(value)} µs"
