"""The view of flows: counters of both sides, how fast they grow, and what must not be there."""

from __future__ import annotations

from collections.abc import Callable

from allosaur.cli.top import _numbers
from allosaur.cli.top._snapshot import Flows, Run, Snapshot
from allosaur.cli.top._state import State
from allosaur.cli.top._table import Body, Cell, Column, Line, Look, said, section, table
from allosaur.report._flow_outcomes import FAILED_LABELS

_ABSOLUTE = ("m_active_flows", "m_est_flows", "m_avg_size", "m_tx_ratio", "m_traffic_duration")
_VALUE_WIDTH = 14
_FIRST = 9
"""So many are above the first bar of TRex's table."""
_RATES = "_r"
"""How the names of counters end that are rates already."""


def flows(state: State, snapshot: Snapshot, width: int) -> Body:
    """Return the counters of all profiles, of one, or of a template group."""
    found = snapshot.flows
    if found is None:
        return Body("Flows", rows=said("The counters of flows were not read."))
    kind = "Dynamic counters" if state.is_dynamic else "Flows"
    title = f"{kind}: {found.of}"
    place = f"{state.chosen + 1} of {len(found.choices) + 1}; left, right: others" if found.choices else ""
    head, *rows = table(_columns(state, found), _names(found), width)
    running = [(Cell(_running(run)),) for run in snapshot.runs if run.port is None]
    ended = section("How flows ended", outcomes(state, found, width)) if found.outcomes else []
    return Body(title, [*running, head], [*(rows or said("Nothing is counted.")), *ended], place)


def summary(state: State, found: Flows, width: int) -> list[Line]:
    """Return the first counters, which are rates and open flows, all that are errors, and failed flows."""
    names = _names(found)
    shown = [name for place, name in enumerate(names) if place < _FIRST or name in found.errors]
    failed = outcomes(state, found, width) if found.failed else []
    return [*table(_columns(state, found), shown, width), *failed]


def outcomes(state: State, found: Flows, width: int) -> list[Line]:
    """Return how the flows of both sides ended, and how many a second."""

    def count(place: int) -> Callable[[str], str]:
        return lambda label: _numbers.count(found.outcomes[label][place], _VALUE_WIDTH)

    def growth(side: str) -> Callable[[str], str]:
        def shown(label: str) -> str:
            known = state.history.growth(side, label)
            return "" if known is None else _numbers.rate(known)

        return shown

    def name_of(label: str) -> Cell:
        return Cell(f"! {label}", Look.BAD) if label in FAILED_LABELS else Cell(f"  {label}")

    columns = [
        Column[str]("  ended", 26, name_of, is_text=True),
        Column[str]("client", _VALUE_WIDTH, count(0)),
        Column[str]("client /s", 9, growth("client"), rank=1),
        Column[str]("server", _VALUE_WIDTH, count(1)),
        Column[str]("server /s", 9, growth("server"), rank=1),
    ]
    return table(columns, list(found.outcomes), width)


def _names(found: Flows) -> list[str]:
    return list(dict.fromkeys([*found.client, *found.server]))


def _columns(state: State, found: Flows) -> list[Column[str]]:
    def value(side: str, name: str) -> Cell:
        counted = (found.client if side == "client" else found.server).get(name, 0)
        text = _numbers.rate(counted) if name.endswith(_RATES) else _numbers.exact(counted, _VALUE_WIDTH)
        return Cell(text, Look.BAD if name in found.errors and counted else Look.PLAIN)

    def growth(side: str, name: str) -> str:
        known = None if name in _ABSOLUTE or name.endswith(_RATES) else state.history.growth(side, name)
        return "" if known is None else _numbers.rate(known)

    def name_of(name: str) -> Cell:
        return Cell(f"! {name}", Look.BAD) if name in found.errors else Cell(f"  {name}")

    return [
        Column("  counter", 26, name_of, is_text=True),
        Column("client", _VALUE_WIDTH, lambda name: value("client", name)),
        Column("client /s", 9, lambda name: growth("client", name), rank=1),
        Column("server", _VALUE_WIDTH, lambda name: value("server", name)),
        Column("server /s", 9, lambda name: growth("server", name), rank=1),
        Column("what is wrong", 60, lambda name: found.errors.get(name, ""), is_text=True, rank=2),
    ]


def _running(run: Run) -> str:
    until = "until stopped" if run.duration_s is None else f"of {run.duration_s:g} s"
    return (
        f"profile {run.profile}: multiplier {run.multiplier:g}, for {_numbers.elapsed(run.running_s)} {until}"
    )
