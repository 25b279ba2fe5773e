"""The first view: ports, and under them whatever else is measured."""

from __future__ import annotations

from allosaur.cli._modes import MODES
from allosaur.cli.top import _flows_view, _groups_view, _numbers
from allosaur.cli.top._snapshot import Port, Snapshot
from allosaur.cli.top._state import State
from allosaur.cli.top._table import Body, Cell, Column, Line, Look, said, section, table

_SPARKLINE = 24


def dashboard(state: State, snapshot: Snapshot, width: int, with_flows: bool = True) -> Body:
    """Return the ports that are shown, then packet groups, latency and the first counters of flows."""
    head, *rows = table(_columns(state, snapshot), state.shown_ports, width)
    rows = rows or said("No ports are shown: a shows all, o those that are ours, a digit one.")
    flows: list[Line] = []
    if with_flows and snapshot.flows is not None and snapshot.flows.choices:
        flows = section("Flows", _flows_view.summary(state, snapshot.flows, width))
    return Body("Ports", [head], [*rows, *_more(state, snapshot, width), *flows])


def _more(state: State, snapshot: Snapshot, width: int) -> list[Line]:
    lines: list[Line] = []
    if snapshot.groups:
        body = _groups_view.streams(state, snapshot, width)
        lines += section("Streams", [*body.head, *body.rows])
    if snapshot.latency:
        body = _groups_view.latency_table(snapshot, width)
        lines += section("Latency (usec)", [*body.head, *body.rows])
    return lines


def _columns(state: State, snapshot: Snapshot) -> list[Column[Port]]:
    def counter(title: str, name: str, width: int = 10, rank: int = 0) -> Column[Port]:
        return Column(title, width, lambda one: _numbers.count(one.counters.get(name, 0)), rank=rank)

    def rate(title: str, name: str, rank: int = 0) -> Column[Port]:
        return Column(title, 7, lambda one: _numbers.rate(one.counters.get(name, 0.0)), rank=rank)

    def bars(title: str, name: str) -> Column[Port]:
        def cell(one: Port) -> Cell:
            return _numbers.bars(state.history.series(one.number, name), _SPARKLINE)

        return Column(title, _SPARKLINE, cell, rank=5)

    return [
        Column("port", 4, lambda one: str(one.number)),
        Column("link", 4, _link, is_text=True),
        Column("state", 8, lambda one: _numbers.state(one.state), is_text=True),
        Column("owner", 8, _owner, is_text=True),
        rate("tx pps", "tx_pps"),
        rate("tx bps", "tx_bps"),
        Column("util %", 6, lambda one: _numbers.percent(one.counters.get("tx_util", 0.0))),
        rate("rx pps", "rx_pps"),
        rate("rx bps", "rx_bps"),
        Column("missed", 6, lambda one: _numbers.problems(one.counters.get("missed_packets", 0))),
        Column("errors", 6, lambda one: _numbers.problems(one.errors)),
        counter("tx pkts", "opackets", rank=2),
        counter("rx pkts", "ipackets", rank=2),
        Column("lost", 6, lambda one: _numbers.problems(one.counters.get("rx_lost_packets", 0)), rank=3),
        Column("queue full", 10, lambda one: _numbers.problems(one.counters.get("queue_full", 0)), rank=4),
        bars("tx pps over time", "tx_pps"),
        bars("rx pps over time", "rx_pps"),
        counter("tx bytes", "obytes", 12, rank=6),
        counter("rx bytes", "ibytes", 12, rank=6),
        *_of_both_modes(snapshot),
    ]


def _of_both_modes(snapshot: Snapshot) -> list[Column[Port]]:
    if len(snapshot.server.modes) < 2:
        return []
    return [
        Column("mode", 9, lambda one: MODES.get(one.mode, one.mode), is_text=True, rank=1),
    ]


def _link(port: Port) -> Cell:
    return Cell("up", Look.GOOD) if port.is_up else Cell("DOWN", Look.BAD)


def _owner(port: Port) -> Cell:
    if port.is_ours:
        return Cell("ours", Look.GOOD)
    return Cell(port.owner) if port.owner else Cell("nobody", Look.DIM)
