"""What is shown while streams run: rates and losses of each port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from allosaur.cli import _format
from allosaur.cli._fitted import FittedTable
from allosaur.report._counters import PortCounters, PortRates, total
from allosaur.report._streams import known_sum
from allosaur.run._load import Moment, alarm, sparkline

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class StreamMoment(Moment):
    """What is known of streams while they run."""

    counters: Mapping[int, PortCounters]
    rates: Mapping[int, PortRates]
    history: Sequence[float] = ()
    """Packets sent per second by all ports, one value a sample."""
    lost: Mapping[int, int | None] = field(default_factory=dict)
    """By sending port: packets that are lost, and not only under way; see `LiveLoss`."""

    def said(self) -> str:
        rates, counted = self._sum(), total(self.counters.values())
        return (
            f"sending {_format.rate(rates.tx_pps, 'pps')}, {_format.rate(rates.tx_bps, 'bps')}; "
            f"receiving {_format.rate(rates.rx_pps, 'pps')}; "
            f"lost {_format.count(known_sum(self.lost.values()))}, "
            f"missed {_format.count(counted.missed_packets)}"
        )

    def blocks(self) -> list[RenderableType]:
        """Return the sparkline of the sending rate and a table.

        What sums up stands first: of many ports the last ones may find no room on the terminal.
        """
        names = ("port", "sending", "", "receiving", "sent", "lost", "missed")
        table = FittedTable(names, ranks=(0, 1, 6, 2, 5, 3, 4))
        rows = [
            (str(port), self.rates[port], counters, self.lost.get(port))
            for port, counters in sorted(self.counters.items())
        ]
        if len(rows) > 1:
            both = total(self.counters.values())
            rows.insert(0, ("all", self._sum(), both, known_sum(self.lost.values())))
        for name, rates, counters, lost in rows:
            told = [(rates.tx_pps, "pps"), (rates.tx_bps, "bps"), (rates.rx_pps, "pps")]
            shown = [_format.rate(*one) for one in told]
            sent = _format.count(counters.tx_packets)
            table.add(name, *shown, sent, alarm(lost), alarm(counters.missed_packets))
        return [sparkline("sent", self.history, "pps"), table]

    def _sum(self) -> PortRates:
        rates = self.rates.values()
        names = ("tx_pps", "tx_bps", "rx_pps", "rx_bps")
        return PortRates(self.elapsed_s, *(sum(getattr(one, name) for one in rates) for name in names))
