"""The view of emulated clients: how many are there and ready, and what their plugins count."""

from __future__ import annotations

from allosaur.cli import _emulated, _registry
from allosaur.cli.top import _numbers
from allosaur.cli.top._snapshot import Snapshot
from allosaur.cli.top._state import State
from allosaur.cli.top._table import Body, Cell, Column, Look, said, table
from allosaur.metrics import Series

_NOBODY = "No clients are emulated: `allosaur start PROFILE` or `allosaur emu load PROFILE` brings some."
_VALUE_WIDTH = 14


def emulation(state: State, snapshot: Snapshot, width: int) -> Body:
    """Return what there is now, then the counters that are not zero, those that should be first."""
    if snapshot.metrics is None or not snapshot.emulated:
        return Body("Emulated clients", rows=said(_NOBODY))
    head, *rows = table(_columns(state), _emulated.counters(snapshot.metrics), width)
    now = (Cell(_emulated.said(snapshot.metrics)),)
    return Body("Emulated clients", [now, head], rows or said("Nothing is counted."))


def errors(snapshot: Snapshot) -> int:
    """Return how many counters are there that must be zero and are not."""
    if snapshot.metrics is None:
        return 0
    return sum(one.is_wrong for one in _emulated.counters(snapshot.metrics))


def _columns(state: State) -> list[Column[Series]]:
    def name(one: Series) -> Cell:
        text = _emulated.name(one)
        return Cell(f"! {text}", Look.BAD) if one.is_wrong else Cell(f"  {text}")

    def value(one: Series) -> Cell:
        text = _numbers.count(one.number, _VALUE_WIDTH)
        return Cell(text, Look.BAD if one.is_wrong else Look.PLAIN)

    def rate(one: Series) -> str:
        is_counter = one.family.kind == "counter"
        known = state.history.rate(one.family.name, one.labels) if is_counter else None
        return "" if known is None else _numbers.rate(known)

    return [
        Column("  counter", 42, name, is_text=True),
        Column("count", _VALUE_WIDTH, value),
        Column("/s", 7, rate),
        Column("meaning", 46, lambda one: one.family.help, is_text=True, rank=1),
        Column("of", 20, lambda one: _registry.where(one), is_text=True, rank=2),
    ]
