"""The whole screen as lines, for any size: server, totals, views, the middle, events, keys."""

from __future__ import annotations

import time
from collections.abc import Sequence

from allosaur.cli import _emulated, _format
from allosaur.cli._modes import MODES
from allosaur.cli.top import (
    _dashboard_view,
    _emulation_view,
    _flows_view,
    _groups_view,
    _keys,
    _machine_view,
    _numbers,
)
from allosaur.cli.top._snapshot import Note, Snapshot
from allosaur.cli.top._state import State, View
from allosaur.cli.top._table import EMPTY, Body, Cell, Line, Look, cut, noted, spread, text_of

WIDTH_MIN, HEIGHT_MIN = 80, 24
_BARS = 20
_BESIDE_BARS = 65
"""The columns of a line of totals without its bars: rates, use of the CPUs, and the longest count."""
_NOTES_BY_HEIGHT = ((50, 6), (40, 4), (32, 2))


def lines(state: State, width: int, height: int) -> list[Line]:
    """Return exactly as many lines as the screen has."""
    if width < WIDTH_MIN or height < HEIGHT_MIN:
        return _filled([_too_small(width, height)], width, height)
    snapshot = state.snapshot
    if snapshot is None:
        return _filled([(Cell(state.lost or "Connecting ..."),)], width, height)
    top = [_server(state, snapshot, width), *_totals(state, snapshot, width), _views(state, width)]
    bottom = [*_notes(state, snapshot, height), _legend(state, width)]
    middle = _middle(state, _body(state, snapshot, width), width, height - len(top) - len(bottom))
    return _filled([*top, *middle, *bottom], width, height)


def plain(state: State, width: int) -> str:
    """Return all that there is as text, for what is no terminal."""
    snapshot = state.snapshot
    assert snapshot is not None, "there is something to print"
    views = [_dashboard_view.dashboard(state, snapshot, width, with_flows=False)]
    if snapshot.flows is not None and snapshot.flows.choices:
        views.append(_flows_view.flows(state, snapshot, width))
    if snapshot.emulated:
        views.append(_emulation_view.emulation(state, snapshot, width))
    views.append(_machine_view.utilization(state, snapshot, width))
    found: list[Line] = [_server(state, snapshot, width), *_totals(state, snapshot, width)]
    for body in views:
        found += [EMPTY, (Cell(body.title),), *body.head, *body.rows]
    return "\n".join("".join(cell.text for cell in line).rstrip() for line in found)


def _too_small(width: int, height: int) -> Line:
    return (Cell(f"{width}x{height}: enlarge to {WIDTH_MIN}x{HEIGHT_MIN}; q quits"),)


def _filled(found: Sequence[Line], width: int, height: int) -> list[Line]:
    shown = [cut(line, width) for line in found[:height]]
    return shown + [EMPTY] * (height - len(shown))


def _server(state: State, snapshot: Snapshot, width: int) -> Line:
    server = snapshot.server
    words = [server.address, server.version, _modes(server.modes)]
    words.append(f"{server.core_count} core{'s' if server.core_count != 1 else ''}")
    if server.uptime_s is not None:
        words.append(f"up {_numbers.elapsed(server.uptime_s)}")
    left = (Cell("allosaur top  ", Look.TITLE), Cell("  ".join(words)))
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.clock_s))
    if state.lost is not None:
        return spread(left, (Cell(f"server lost, last read {clock}", Look.BAD),), width)
    return spread(left, (Cell("read-only  " if state.readonly else ""), Cell(clock, Look.DIM)), width)


def _modes(modes: Sequence[str]) -> str:
    return "both modes" if len(modes) > 1 else ", ".join(MODES.get(one, one) for one in modes)


def _totals(state: State, snapshot: Snapshot, width: int) -> list[Line]:
    """Return the rates of the server as a whole, as TRex's dashboard has them above its tables."""
    totals, series = snapshot.totals, state.history.series
    # What stands beside the bars is whole.
    room = min(max(_BARS, min(60, (width - 60) // 2)), width - _BESIDE_BARS)

    def rates(side: str) -> list[Cell]:
        pps, bps = totals.get(f"{side}_pps", 0.0), totals.get(f"{side}_bps", 0.0)
        text = f"{_format.rate(pps, 'pps'):>9}  {_format.rate(bps, 'bps'):>9} "
        return [Cell(f"{side:<5} {text}"), _numbers.bars(series(None, f"{side}_pps"), room)]

    def use(title: str, name: str) -> list[Cell]:
        return [Cell(f"   {title:<6} {totals.get(name, 0.0):5.1f} % ")]

    missed = _count("missed", totals.get("missed_packets"))
    full = _count("queue full", totals.get("queue_full"))
    tx = (*rates("tx"), *use("cpu", "cpu_util"), *missed)
    rx = (*rates("rx"), *use("rx cpu", "rx_cpu_util"), *full)
    flows = [_flows(state, snapshot, room)] if snapshot.has_flows else []
    return [tx, rx, *flows, *([_clients(snapshot)] if snapshot.emulated else [])]


def _clients(snapshot: Snapshot) -> Line:
    assert snapshot.metrics is not None, "there are emulated clients"
    now = Cell(f"emulated  {_emulated.said(snapshot.metrics)}   ")
    return now, _wrong(View.EMULATION, ("error counter", _emulation_view.errors(snapshot)))


def _wrong(view: View, *counted: tuple[str, int]) -> Cell:
    """Return what went wrong, with how often, and where it is seen."""
    found = [f"{count} {what}{'s' if count != 1 else ''}" for what, count in counted if count]
    return Cell(f"{', '.join(found)} ({view.value})", Look.BAD) if found else Cell("no errors", Look.DIM)


def _flows(state: State, snapshot: Snapshot, room: int) -> Line:
    opened = _format.rate(snapshot.totals.get("tx_cps", 0.0), "cps")
    active = f"{_numbers.count(snapshot.totals.get('active_flows', 0))} open"
    flows = snapshot.flows
    wrong = (("failed flow", flows.failed), ("error counter", len(flows.errors))) if flows is not None else ()
    bars = _numbers.bars(state.history.series(None, "tx_cps"), room)
    return Cell(f"flows {opened:>9}  {active:>9} "), bars, Cell("   "), _wrong(View.FLOWS, *wrong)


def _count(title: str, value: float | None) -> Line:
    return () if value is None else (Cell(f"  {title} "), _numbers.problems(value))


def _views(state: State, width: int) -> Line:
    """Return the views with their keys, closer together where there is no room."""
    wide = _names_of_views(state, " ")
    return wide if len(text_of(wide)) < width else cut(_names_of_views(state, ""), width)


def _names_of_views(state: State, gap: str) -> Line:
    cells: list[Cell] = []
    for view, legend in _keys.views(state):
        is_chosen = view is state.view
        cells += [Cell(f" {view.value}", Look.CHOSEN if is_chosen else Look.KEY)]
        cells += [Cell(f" {legend}{gap}", Look.CHOSEN if is_chosen else Look.PLAIN)]
    return tuple(cells)


def _body(state: State, snapshot: Snapshot, width: int) -> Body:
    if state.view is View.STREAMS:
        return _groups_view.streams(state, snapshot, width)
    if state.view is View.LATENCY:
        return _groups_view.latency(state, snapshot, width)
    if state.view is View.FLOWS:
        return _flows_view.flows(state, snapshot, width)
    if state.view is View.EMULATION:
        return _emulation_view.emulation(state, snapshot, width)
    if state.view is View.UTILIZATION:
        return _machine_view.utilization(state, snapshot, width)
    if state.view is View.INFO:
        return _machine_view.info(state, width)
    if state.view is View.EVENTS:
        return _machine_view.events(snapshot)
    return _explained() if state.view is View.KEYS else _dashboard_view.dashboard(state, snapshot, width)


def _explained() -> Body:
    rows: list[Line] = [
        (Cell(f"  {' '.join(key.names):<10}", Look.KEY), Cell(key.help)) for key in _keys.KEYS if key.help
    ]
    rows += [
        (Cell("  0 to 9    ", Look.KEY), Cell("show or hide a port")),
        (Cell("  escape    ", Look.KEY), Cell("a line for commands, where this is part of a console")),
        (Cell("  q         ", Look.KEY), Cell("leave")),
    ]
    return Body("Keys", rows=rows)


def _middle(state: State, body: Body, width: int, height: int) -> list[Line]:
    room = height - 1 - len(body.head)
    state.scrolled = min(state.scrolled, max(0, len(body.rows) - room))
    state.rows_hidden = max(0, len(body.rows) - room - state.scrolled)
    first, last = state.scrolled + 1, min(state.scrolled + room, len(body.rows))
    where = (
        (Cell(f"{first} to {last} of {len(body.rows)} (up, down)", Look.DIM),)
        if len(body.rows) > room
        else EMPTY
    )
    hint = Cell(f"  ({body.hint})", Look.DIM) if body.hint else Cell("")
    title = spread((Cell(body.title, Look.TITLE), hint), where, width)
    rows = list(body.rows[state.scrolled : state.scrolled + room])
    return [title, *body.head, *rows, *([EMPTY] * (room - len(rows)))]


def _notes(state: State, snapshot: Snapshot, height: int) -> list[Line]:
    """Return the last events; what a key came to, and why the server is away, go before them."""
    count = next((number for least, number in _NOTES_BY_HEIGHT if height >= least), 1)
    notes = list(snapshot.notes[-count:])
    if state.message is not None:
        notes = sorted([*notes, state.message], key=lambda note: note.at_s)[-count:]
    if state.lost is not None:
        notes = [*notes, Note(snapshot.clock_s, f"trying again: {state.lost}", True)][-count:]
    return [*([EMPTY] * (count - len(notes))), *(noted(note) for note in notes)]


def _legend(state: State, width: int) -> Line:
    """Return the keys that have room, none of them cut."""
    console = (Cell("esc", Look.KEY), Cell(" console  ")) if state.has_console else ()
    last = (*console, Cell("q", Look.KEY), Cell(" quit"))
    left, cells = width - len(text_of(last)), list[Cell]()
    for name, legend in _keys.legends(state):
        left -= len(name) + len(legend) + 3
        if left < 0:
            break
        cells += [Cell(name, Look.KEY), Cell(f" {legend}  ")]
    return spread(tuple(cells), last, width)
