"""Numbers and states in few, steady letters: what changes every second must not change its width."""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.cli import _format
from allosaur.cli.top._table import Cell, Look

_STATES = {
    "IDLE": "idle",
    "STREAMS": "loaded",
    "TX": "sends",
    "PAUSE": "paused",
    "PCAP_TX": "sends",
    "ASTF_PARSE": "starting",
    "ASTF_BUILD": "starting",
    "ASTF_CLEANUP": "closing",
}
_COUNT_DIGITS_MAX = 10
_HEADROOM = 1.2


def rate(value: float) -> str:
    """Return a rate in seven letters at most, without its unit: `1.25 M`."""
    return _format.rate(value, "").rstrip()


def count(value: float, width: int = _COUNT_DIGITS_MAX) -> str:
    """Return a count, exactly as long as it has room."""
    whole = str(int(value))
    return whole if len(whole) <= width else _format.rate(value, "").rstrip()


def exact(value: float, width: int) -> str:
    """Return a number, with two decimals if it has some, as long as it has room."""
    if isinstance(value, float) and not value.is_integer() and len(text := f"{value:.2f}") <= width:
        return text
    return count(value, width)


def problems(value: float) -> Cell:
    """Return a count that should be zero."""
    return Cell(
        _format.rate(value, "").rstrip() if abs(value) >= 1e5 else str(int(value)),
        Look.BAD if value else Look.DIM,
    )


def percent(value: float) -> str:
    """Return a share of a hundred."""
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def loss(lost: int, sent: int) -> str:
    """Return a share of packets in percent, with as many digits as tell one packet of many."""
    share = 100 * lost / sent if sent else 0.0
    if not lost or abs(share) >= 0.01:
        return f"{share:.2f}" if abs(share) < 1000 else _format.rate(share, "").rstrip()
    return f"{share:.4f}" if abs(share) >= 0.0001 else ("<0.0001" if lost > 0 else "0.0000")


def usec(value: float | None) -> str:
    """Return microseconds; a dash where nobody counted."""
    if value is None:
        return "-"
    if value >= 1e6:
        return rate(value)
    return f"{value:.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.1f}"


def state(word: str) -> Cell:
    """Return what a port does."""
    text = _STATES.get(word, word.lower())
    return Cell(text, Look.GOOD if text == "sends" else Look.PLAIN)


def elapsed(seconds: float) -> str:
    """Return a time span: `1:02:03`, `4 d 1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days} d " if days else "") + f"{hours}:{minutes:02}:{rest:02}"


def bars(values: Sequence[float], width: int, top: float | None = None) -> Cell:
    """Return a sparkline that is exactly so wide, the newest value at its right.

    Without a `top` the highest value is nearly a full bar, so that those of two lines do not touch.
    """
    top = _HEADROOM * max(values[-width:], default=0.0) if top is None else top
    return Cell(f"{_format.sparkline(values, width, top):>{width}}", Look.BARS)
