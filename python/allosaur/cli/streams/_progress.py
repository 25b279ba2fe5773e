"""What is shown while streams run: rates and losses of each port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from allosaur.cli import _format
from allosaur.cli._fitted import Cell, FittedLine, FittedTable
from allosaur.cli._live import SPARKLINE_WIDTH, Progress, suited
from allosaur.cli._options import FOREVER
from allosaur.cli.streams._drive import Moment
from allosaur.report import PortCounters, PortRates, total

if TYPE_CHECKING:
    from rich.console import RenderableType


def progress(title: str, stream: TextIO | None = None) -> Progress[Moment]:
    """Return what suits the stream: live on a terminal, lines otherwise."""
    return suited(stream, lambda moment: live_view(title, moment), _line)


def _line(moment: Moment) -> str:
    rates, counted = moment.rates.values(), total(moment.counters.values())
    return (
        f"{_clock(moment)}: sending {_format.rate(sum(r.tx_pps for r in rates), 'pps')}, "
        f"{_format.rate(sum(r.tx_bps for r in rates), 'bps')}; "
        f"receiving {_format.rate(sum(r.rx_pps for r in rates), 'pps')}; "
        f"lost {_format.count(_sum(moment.lost.values()))}, missed {_format.count(counted.missed_packets)}"
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def live_view(title: str, moment: Moment) -> RenderableType:
    """Return the table of one moment, under the sparkline of the sending rate.

    What sums up stands first: of many ports the last ones may find no room on the terminal.
    """
    from rich.console import Group

    names = ("port", "sending", "", "receiving", "sent", "lost", "missed")
    table = FittedTable(names, ranks=(0, 1, 6, 2, 5, 3, 4))
    if len(moment.counters) > 1:
        table.add("all", *_cells(_total(moment), total(moment.counters.values()), _sum(moment.lost.values())))
    for port, counters in sorted(moment.counters.items()):
        table.add(str(port), *_cells(moment.rates[port], counters, moment.lost.get(port)))
    bars = _format.sparkline(moment.history, SPARKLINE_WIDTH)
    now = moment.history[-1] if moment.history else 0.0
    return Group(
        FittedLine(title, f"  {_clock(moment)}  (Ctrl-C stops)"),
        FittedLine(f"sent  {bars}", f"  {_format.rate(now, 'pps')}"),
        table,
    )


def _cells(rates: PortRates, counters: PortCounters, lost: int | None) -> list[Cell]:
    missed = counters.missed_packets
    return [
        (_format.rate(rates.tx_pps, "pps"), ""),
        (_format.rate(rates.tx_bps, "bps"), ""),
        (_format.rate(rates.rx_pps, "pps"), ""),
        (_format.count(counters.tx_packets), ""),
        (_format.count(lost), "bold red" if lost else ""),
        (_format.count(missed), "bold red" if missed else ""),
    ]


def _total(moment: Moment) -> PortRates:
    rates = list(moment.rates.values())
    return PortRates(
        moment.elapsed_s,
        tx_pps=sum(one.tx_pps for one in rates),
        tx_bps=sum(one.tx_bps for one in rates),
        rx_pps=sum(one.rx_pps for one in rates),
        rx_bps=sum(one.rx_bps for one in rates),
    )


def _clock(moment: Moment) -> str:
    if moment.plan.duration_s == FOREVER:
        return f"{moment.elapsed_s:.1f} s"
    return f"{moment.elapsed_s:.1f} of {moment.plan.duration_s:g} s"
