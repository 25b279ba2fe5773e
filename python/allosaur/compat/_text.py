"""Text for terminals by the names of ``trex.utils.text_opts``; new scripts use a library such as ``rich``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable

_CODES = {
    **dict.fromkeys(("bold",), ("1", "22")),
    **{name: (code, "39") for name, code in (("cyan", "36"), ("blue", "34"), ("red", "31"))},
    **{name: (code, "39") for name, code in (("magenta", "35"), ("green", "32"), ("yellow", "33"))},
    "underline": ("4", "24"),
}
TEXT_CODES = {name: {"start": f"\x1b[{on}m", "end": f"\x1b[{off}m"} for name, (on, off) in _CODES.items()}
_CODE = re.compile(r"\x1b\[\d+m")
_UNITS = ("", "K", "M", "G", "T", "P")
_TIMES = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "sec"))
_SHORT_TIMES = ((1e-3, "ms"), (1e-6, "usec"), (1e-9, "ns"))

__all__ = [
    *("TEXT_CODES", "bold", "blue", "clear_formatting", "cyan", "format_num", "format_percentage"),
    *("format_text", "format_threshold", "format_time", "green", "limit_string", "magenta", "pretty_json"),
    *("red", "text_attribute", "underline", "yellow"),
]


def text_attribute(text: object, attribute: str) -> str:
    """The text with an attribute ("bold", "red", ...) on each line that is not empty."""
    codes = TEXT_CODES[attribute]
    lines = str(text).split("\n")
    return "\n".join(f"{codes['start']}{line}{codes['end']}" if line else "" for line in lines)


def bold(text: object) -> str:
    """Bold text."""
    return text_attribute(text, "bold")


def cyan(text: object) -> str:
    """Cyan text."""
    return text_attribute(text, "cyan")


def blue(text: object) -> str:
    """Blue text."""
    return text_attribute(text, "blue")


def red(text: object) -> str:
    """Red text."""
    return text_attribute(text, "red")


def magenta(text: object) -> str:
    """Magenta text."""
    return text_attribute(text, "magenta")


def green(text: object) -> str:
    """Green text."""
    return text_attribute(text, "green")


def yellow(text: object) -> str:
    """Yellow text."""
    return text_attribute(text, "yellow")


def underline(text: object) -> str:
    """Underlined text."""
    return text_attribute(text, "underline")


def format_text(text: object, *attributes: str) -> str:
    """The text with attributes, where standard output is a terminal."""
    shown = str(text)
    if sys.stdout.isatty():
        for attribute in attributes:
            shown = text_attribute(shown, attribute) if attribute in TEXT_CODES else shown
    return shown


def clear_formatting(s: str) -> str:
    """The text without attributes."""
    return _CODE.sub("", s)


def format_num(
    size: float | str, suffix: str = "", compact: bool = True, opts: Iterable[str] | str | None = None
) -> str:
    """A number for people, such as "1.5 Mbps"."""
    if isinstance(size, str):
        return "N/A"
    unit = ""
    for unit in _UNITS if compact else ():
        if abs(size) < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    if not isinstance(size, float):
        shown = f"{size:,}"
    else:
        shown = f"{round(size, 2):g}" if compact else f"{size:3.2f}"
    words = f"{shown} {unit}{suffix}" if unit or suffix else shown
    return format_text(words, *((opts,) if isinstance(opts, str) else opts or ()))


def format_time(t_sec: float) -> str:
    """A time for people, such as "1.50 [ms]"."""
    if t_sec <= 0:
        return "zero" if t_sec == 0 else "infinite"
    for least, unit in (*_TIMES, *_SHORT_TIMES):
        if t_sec >= least:
            return f"{t_sec / least:,.2f} [{unit}]"
    return "NaN"


def format_percentage(size: float) -> str:
    """A share for people, such as "1.50 %"."""
    return f"{size:0.2f} %"


def format_threshold(value: object, red_zone: tuple[float, float], green_zone: tuple[float, float]) -> str:
    """The value in red or green, by the zone it is in."""
    if isinstance(value, (int, float)):
        for (least, most), color in ((red_zone, "red"), (green_zone, "green")):
            if least <= value <= most:
                return format_text(value, color)
    return str(value)


def limit_string(string: str, trim_limit: int) -> str:
    """The text, cut to so many characters."""
    return string if len(string) <= trim_limit else string[: trim_limit - 3] + "..."


def pretty_json(json_str: str, use_colors: bool = True) -> str:
    """JSON with indents."""
    return json.dumps(json.loads(json_str), indent=4, sort_keys=True)
