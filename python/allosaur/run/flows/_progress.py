"""What is shown while flows run: flows, their rate, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._fitted import FittedLine, FittedTable
from allosaur.report._flow_counters import SIDES, FlowCounters, FlowRates
from allosaur.run._load import Moment, alarm, sparkline
from allosaur.run.flows._hints import error_lines

if TYPE_CHECKING:
    from rich.console import RenderableType


_VALUE_WIDTH = 16
"""So that the columns stand still while their numbers grow."""
_ERRORS_SHOWN = 4
"""Lines of errors that a live table has room for; it says how many more there are."""


@dataclass(frozen=True)
class FlowMoment(Moment):
    """What is known of flows while they run."""

    counters: FlowCounters
    rates: FlowRates
    is_closing: bool = False
    """No more flows begin; those that are open may end."""
    history: Sequence[float] = ()
    """Flows that came to be, in each second, one value a sample."""

    @property
    def clock(self) -> str:
        return f"{self.elapsed_s:.1f} s, closing" if self.is_closing else super().clock

    def said(self) -> str:
        rates, counters = self.rates, self.counters
        failed = f", failed {_format.count(counters.failed_flows)}" if counters.outcomes is not None else ""
        return (
            f"offered {_format.rate(rates.offered_fps, 'flows/s')}, "
            f"connected {_format.rate(rates.client.connected_fps, 'flows/s')}; "
            f"missed {_format.count(counters.missed_flows)}{failed}; "
            f"active {_format.count(rates.active_flows)}; "
            f"clients {_format.rate(rates.client.tx_data_bps, 'bps')}, "
            f"servers {_format.rate(rates.server.tx_data_bps, 'bps')}"
        )

    def line(self, told: set[Any]) -> str:
        """Return a line; what goes wrong is named under it when it first does."""
        fresh = [one for one in self.counters.trouble() if one[:2] not in told]
        told.update(one[:2] for one in fresh)
        return "\n".join([super().line(told), *(f"  {error}" for error in error_lines(fresh))])

    def blocks(self) -> list[RenderableType]:
        """Return the table, the error counters under it, and the sparkline of connections."""
        errors = error_lines(self.counters.trouble())
        lines = errors[:_ERRORS_SHOWN]
        if len(errors) > _ERRORS_SHOWN:
            lines.append(f"and {len(errors) - _ERRORS_SHOWN} more lines of errors")
        wrong = (FittedLine(line, style="bold red") for line in lines)
        return [self._table(), *wrong, sparkline("connected", self.history, "flows/s")]

    def _table(self) -> FittedTable:
        rates, counters = self.rates, self.counters
        table = FittedTable(["", *(f"{name:>{_VALUE_WIDTH}}" for name in ("clients", "servers"))])
        both, rates_of_both = (counters.client, counters.server), (rates.client, rates.server)

        def add_rates(label: str, name: str, unit: str) -> None:
            table.add(label, *(_format.rate(getattr(side, name), unit) for side in rates_of_both))

        table.add("offered", _format.rate(rates.offered_fps, "flows/s"), "")
        add_rates("connected", "connected_fps", "flows/s")
        missed = alarm(counters.missed_flows)
        table.add(("missed flows", missed[1]), missed, "")
        if counters.outcomes is not None:
            failed = [counters.outcomes.side(side).failed() for side in SIDES]
            style = "bold red" if any(failed) else ""
            table.add(("failed flows", style), *((_format.count(count), style) for count in failed))
        table.add("active flows", *(_format.count(side.active_flows) for side in both))
        table.add("established", *(_format.count(side.established_flows) for side in both))
        add_rates("data sent", "tx_data_bps", "bps")
        add_rates("data received", "rx_data_bps", "bps")
        add_rates("packets sent", "tx_pps", "pps")
        return table
