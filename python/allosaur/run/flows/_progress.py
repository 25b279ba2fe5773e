"""What is shown while flows run: flows, their rate, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format
from allosaur.cli._fitted import FittedLine, FittedTable
from allosaur.cli._live import SPARKLINE_WIDTH
from allosaur.report import SIDES, FlowCounters, FlowRates
from allosaur.run._load import Moment, clock
from allosaur.run.flows import _hints
from allosaur.run.flows._counts import FlowPlan

if TYPE_CHECKING:
    from rich.console import RenderableType


_VALUE_WIDTH = 16
"""So that the columns stand still while their numbers grow."""
_ERRORS_SHOWN = 4
"""Lines of errors that a live table has room for; it says how many more there are."""


@dataclass(frozen=True)
class FlowMoment(Moment):
    """What is known of flows while they run."""

    plan: FlowPlan
    elapsed_s: float
    counters: FlowCounters
    rates: FlowRates
    is_closing: bool = False
    """No more flows begin; those that are open may end."""
    history: Sequence[float] = ()
    """Flows that came to be, in each second, one value a sample."""

    @property
    def clock(self) -> str:
        """How long the run goes on, and of how long."""
        if self.is_closing:
            return f"{self.elapsed_s:.1f} s, closing"
        return clock(self.elapsed_s, self.plan.duration_s)

    def line(self, told: set[Any]) -> str:
        """Return a line; what goes wrong is named under it when it first does."""
        rates, counters = self.rates, self.counters
        line = (
            f"{self.clock}: offered {_format.rate(rates.offered_fps, 'flows/s')}, "
            f"connected {_format.rate(rates.client.connected_fps, 'flows/s')}; "
            f"missed {_format.count(counters.missed_flows)}{_failed(counters)}; "
            f"active {_format.count(rates.active_flows)}; "
            f"clients {_format.rate(rates.client.tx_data_bps, 'bps')}, "
            f"servers {_format.rate(rates.server.tx_data_bps, 'bps')}"
        )
        fresh = [one for one in counters.trouble() if one[:2] not in told]
        told.update(one[:2] for one in fresh)
        return "\n".join([line, *(f"  {error}" for error in error_lines(fresh))])

    def view(self, title: str) -> RenderableType:
        """Return the table, the error counters under it, and the sparkline of connections."""
        from rich.console import Group

        bars = _format.sparkline(self.history, SPARKLINE_WIDTH)
        now = self.history[-1] if self.history else 0.0
        errors = error_lines(self.counters.trouble())
        lines = errors[:_ERRORS_SHOWN]
        if len(errors) > _ERRORS_SHOWN:
            lines.append(f"and {len(errors) - _ERRORS_SHOWN} more lines of errors")
        return Group(
            FittedLine(title, f"  {self.clock}  (Ctrl-C stops)"),
            _table(self),
            *(FittedLine(line, style="bold red") for line in lines),
            FittedLine(f"connected  {bars}", f"  {_format.rate(now, 'flows/s')}"),
        )


def error_lines(errors: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return what is wrong, and what to do about it: a line for what has the same remedy on the same side."""
    alike: dict[tuple[str, str], list[str]] = {}
    for side, name, count in errors:
        alike.setdefault((side, _hints.hint(name)), []).append(f"{name} {_format.count(count)}")
    return [
        f"! {side} {', '.join(found)}" + (f": {hint}" if hint else "")
        for (side, hint), found in alike.items()
    ]


def _failed(counters: FlowCounters) -> str:
    """Return how many flows ended before their programs, at the end that knows of more."""
    if counters.outcomes is None:
        return ""
    return f", failed {_format.count(max(counters.outcomes.side(side).failed() for side in SIDES))}"


def _table(moment: FlowMoment) -> FittedTable:
    rates, counters = moment.rates, moment.counters
    sides = (rates.client, rates.server)
    table = FittedTable(["", *(f"{name:>{_VALUE_WIDTH}}" for name in ("clients", "servers"))])
    table.add("offered", _format.rate(rates.offered_fps, "flows/s"), "")
    table.add("connected", *(_format.rate(side.connected_fps, "flows/s") for side in sides))
    missed = _format.count(counters.missed_flows)
    style = "bold red" if counters.missed_flows else ""
    table.add(("missed flows", style), (missed, style), "")
    both = (counters.client, counters.server)
    if counters.outcomes is not None:
        failed = [counters.outcomes.side(side).failed() for side in SIDES]
        style = "bold red" if any(failed) else ""
        table.add(("failed flows", style), *((_format.count(count), style) for count in failed))
    table.add("active flows", *(_format.count(side.active_flows) for side in both))
    table.add("established", *(_format.count(side.established_flows) for side in both))
    table.add("data sent", *(_format.rate(side.tx_data_bps, "bps") for side in sides))
    table.add("data received", *(_format.rate(side.rx_data_bps, "bps") for side in sides))
    table.add("packets sent", *(_format.rate(side.tx_pps, "pps") for side in sides))
    return table
