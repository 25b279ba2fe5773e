"""What is shown while traffic runs: a live table on a terminal, a plain line every 2 s elsewhere.

All of it goes to the error stream, so that the standard output stays for the result.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from allosaur.cli import _format
from allosaur.cli._options import FOREVER
from allosaur.cli._traffic import Moment
from allosaur.report import total

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_INTERVAL_S = 2.0
_SPARKLINE_WIDTH = 40


class Progress(Protocol):
    """Something that shows moments between its `__enter__` and its `__exit__`."""

    def __enter__(self) -> Progress:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        ...

    def show(self, moment: Moment) -> None:
        """Show this moment in place of the one before."""
        ...


def progress(title: str, stream: TextIO | None = None) -> Progress:
    """Return what suits the stream: live on a terminal, lines otherwise."""
    stream = stream or sys.stderr
    return LiveTable(title, stream) if stream.isatty() else PlainLines(stream)


class PlainLines:
    """One line every `PLAIN_INTERVAL_S`, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_s = PLAIN_INTERVAL_S

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, moment: Moment) -> None:
        """Write a line, if the last one is old enough."""
        if moment.elapsed_s < self._next_s:
            return
        self._next_s = PLAIN_INTERVAL_S * (moment.elapsed_s // PLAIN_INTERVAL_S + 1)
        rates, counted = moment.rates.values(), total(moment.counters.values())
        print(
            f"{_clock(moment)}: sending {_format.rate(sum(r.tx_pps for r in rates), 'pps')}, "
            f"{_format.rate(sum(r.tx_bps for r in rates), 'bps')}; "
            f"receiving {_format.rate(sum(r.rx_pps for r in rates), 'pps')}; "
            f"missed {_format.count(counted.missed_packets)}",
            file=self._stream,
            flush=True,
        )


class LiveTable:
    """A table that is redrawn in place, at most 80 columns wide."""

    def __init__(self, title: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = title
        console = Console(file=stream)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Redraw."""
        self._live.update(live_view(self._title, moment), refresh=True)


def live_view(title: str, moment: Moment) -> RenderableType:
    """Return the table of one moment, with the sparkline of the sending rate under it."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
    table.add_column("port")
    for name in ("sending", "", "receiving", "", "sent", "missed"):
        table.add_column(name, justify="right", no_wrap=True)
    for port, counters in sorted(moment.counters.items()):
        table.add_row(str(port), *_cells(moment.rates[port], counters))
    bars = _format.sparkline(moment.history, _SPARKLINE_WIDTH)
    now = moment.history[-1] if moment.history else 0.0
    return Group(
        Text(f"{title}  {_clock(moment)}  (Ctrl-C stops)", no_wrap=True, overflow="ellipsis"),
        table,
        Text(f"sent  {bars}  {_format.rate(now, 'pps')}", no_wrap=True, overflow="crop"),
    )


def _cells(rates: Any, counters: Any) -> list[str]:
    return [
        _format.rate(rates.tx_pps, "pps"),
        _format.rate(rates.tx_bps, "bps"),
        _format.rate(rates.rx_pps, "pps"),
        _format.rate(rates.rx_bps, "bps"),
        _format.count(counters.tx_packets),
        _format.count(counters.missed_packets),
    ]


def _clock(moment: Moment) -> str:
    if moment.plan.duration_s == FOREVER:
        return f"{moment.elapsed_s:.1f} s"
    return f"{moment.elapsed_s:.1f} of {moment.plan.duration_s:g} s"
