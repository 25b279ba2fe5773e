"""What is shown while stateful traffic runs: flows, their rate, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from allosaur.cli import _format
from allosaur.cli._fitted import FittedLine, FittedTable
from allosaur.cli._live import SPARKLINE_WIDTH, Progress, suited
from allosaur.cli._options import FOREVER
from allosaur.cli.flows import _hints
from allosaur.cli.flows._drive import FlowMoment
from allosaur.report import SIDES, FlowCounters

if TYPE_CHECKING:
    from rich.console import RenderableType


_VALUE_WIDTH = 16
"""So that the columns stand still while their numbers grow."""
_ERRORS_SHOWN = 4
"""Lines of errors that a live table has room for; it says how many more there are."""


def progress(title: str, stream: TextIO | None = None) -> Progress[FlowMoment]:
    """Return what suits the stream: live on a terminal, lines otherwise."""
    return suited(stream, lambda moment: live_view(title, moment), _Lines())


def _failed(counters: FlowCounters) -> str:
    """Return how many flows ended before their programs, at the end that knows of more."""
    if counters.outcomes is None:
        return ""
    return f", failed {_format.count(max(counters.outcomes.side(side).failed() for side in SIDES))}"


class _Lines:
    """A line of each moment; what goes wrong is named under it when it first does."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def __call__(self, moment: FlowMoment) -> str:
        rates, counters = moment.rates, moment.counters
        line = (
            f"{clock(moment)}: offered {_format.rate(rates.offered_fps, 'flows/s')}, "
            f"connected {_format.rate(rates.client.connected_fps, 'flows/s')}; "
            f"missed {_format.count(counters.missed_flows)}{_failed(counters)}; "
            f"active {_format.count(rates.active_flows)}; "
            f"clients {_format.rate(rates.client.tx_data_bps, 'bps')}, "
            f"servers {_format.rate(rates.server.tx_data_bps, 'bps')}"
        )
        news = [one for one in counters.trouble() if one[:2] not in self._told]
        self._told.update(one[:2] for one in news)
        return "\n".join([line, *(f"  {error}" for error in error_lines(news))])


def live_view(title: str, moment: FlowMoment) -> RenderableType:
    """Return the table of one moment, the error counters under it, and the sparkline of connections."""
    from rich.console import Group

    bars = _format.sparkline(moment.history, SPARKLINE_WIDTH)
    now = moment.history[-1] if moment.history else 0.0
    errors = error_lines(moment.counters.trouble())
    lines = errors[:_ERRORS_SHOWN]
    if len(errors) > _ERRORS_SHOWN:
        lines.append(f"and {len(errors) - _ERRORS_SHOWN} more lines of errors")
    return Group(
        FittedLine(title, f"  {clock(moment)}  (Ctrl-C stops)"),
        _table(moment),
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


def clock(moment: FlowMoment) -> str:
    """Return how long the run goes on, and of how long."""
    if moment.is_closing:
        return f"{moment.elapsed_s:.1f} s, closing"
    if moment.plan.duration_s == FOREVER:
        return f"{moment.elapsed_s:.1f} s"
    return f"{moment.elapsed_s:.1f} of {moment.plan.duration_s:g} s"


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
