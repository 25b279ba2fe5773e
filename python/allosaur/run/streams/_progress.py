"""What is shown while streams run: rates and losses of each port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._fitted import Cell, FittedLine, FittedTable
from allosaur.cli._live import SPARKLINE_WIDTH
from allosaur.report import PortCounters, PortRates, known_sum, total
from allosaur.run._load import Moment, clock
from allosaur.run.streams._counts import Plan

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class StreamMoment(Moment):
    """What is known of streams while they run."""

    plan: Plan
    elapsed_s: float
    counters: Mapping[int, PortCounters]
    rates: Mapping[int, PortRates]
    history: Sequence[float] = ()
    """Packets sent per second by all ports, one value a sample."""
    lost: Mapping[int, int | None] = field(default_factory=dict)
    """By sending port: packets that are lost, and not only under way; see `LiveLoss`."""

    def line(self, told: set[Any]) -> str:
        rates, counted = self.rates.values(), total(self.counters.values())
        return (
            f"{clock(self.elapsed_s, self.plan.duration_s)}: "
            f"sending {_format.rate(sum(r.tx_pps for r in rates), 'pps')}, "
            f"{_format.rate(sum(r.tx_bps for r in rates), 'bps')}; "
            f"receiving {_format.rate(sum(r.rx_pps for r in rates), 'pps')}; "
            f"lost {_format.count(known_sum(self.lost.values()))}, "
            f"missed {_format.count(counted.missed_packets)}"
        )

    def view(self, title: str) -> RenderableType:
        """Return the table under the sparkline of the sending rate.

        What sums up stands first: of many ports the last ones may find no room on the terminal.
        """
        from rich.console import Group

        names = ("port", "sending", "", "receiving", "sent", "lost", "missed")
        table = FittedTable(names, ranks=(0, 1, 6, 2, 5, 3, 4))
        if len(self.counters) > 1:
            both = total(self.counters.values())
            table.add("all", *_cells(_total(self), both, known_sum(self.lost.values())))
        for port, counters in sorted(self.counters.items()):
            table.add(str(port), *_cells(self.rates[port], counters, self.lost.get(port)))
        bars = _format.sparkline(self.history, SPARKLINE_WIDTH)
        now = self.history[-1] if self.history else 0.0
        return Group(
            FittedLine(title, f"  {clock(self.elapsed_s, self.plan.duration_s)}  (Ctrl-C stops)"),
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


def _total(moment: StreamMoment) -> PortRates:
    rates = list(moment.rates.values())
    return PortRates(
        moment.elapsed_s,
        tx_pps=sum(one.tx_pps for one in rates),
        tx_bps=sum(one.tx_bps for one in rates),
        rx_pps=sum(one.rx_pps for one in rates),
        rx_bps=sum(one.rx_bps for one in rates),
    )
