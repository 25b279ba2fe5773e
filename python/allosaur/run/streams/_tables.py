"""What a run of streams counted, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.report import LATENCY_COLUMNS, PortCounters, StreamCounters, known_sum
from allosaur.run.streams._counts import StreamCounts
from allosaur.run.streams._directions import pair_of

_ROWS = (
    ("offered packets", "offered_packets"),
    ("sent packets", "tx_packets"),
    ("sent bytes", "tx_bytes"),
    ("received packets", "rx_packets"),
    ("received bytes", "rx_bytes"),
    ("missed packets", "missed_packets"),
    ("queue full", "queue_full"),
    ("lost at the port", "tx_lost_packets"),
    ("lost by the link", "rx_lost_packets"),
)
_STREAMS_SHOWN = 20
"""More streams would only scroll away: those that lost most are shown."""
_TIMES = {name: of for name, of in LATENCY_COLUMNS.items() if name != "p90"}
_NAME_WIDTH = 24


def tables(outcome: StreamCounts) -> list[str]:
    """Return the tables: of ports, and of streams and latency where they tell more."""
    found = [totals(outcome)]
    if _are_worth_a_table(outcome):
        found.append(streams(outcome.streams))
    if any(one.latency for one in outcome.streams):
        found.append(latency(outcome.streams))
    return found


def totals(outcome: StreamCounts) -> str:
    """Return the table of what each port counted, and its average rates."""
    columns = [(f"port {port}", counters) for port, counters in sorted(outcome.counters.items())]
    if len(columns) > 1:
        columns.append(("total", outcome.total))
    rows = [
        [label, *(_format.count(getattr(counters, name)) for _, counters in columns)] for label, name in _ROWS
    ]
    rows += _own_rows(outcome, len(columns) > 1)
    rows += [
        [
            label,
            *(_format.rate(_average(counters, kind, outcome.elapsed_s), unit) for _, counters in columns),
        ]
        for label, kind, unit in _RATES
    ]
    return _format.by_port([name for name, _ in columns], rows)


def _own_rows(outcome: StreamCounts, has_total: bool) -> list[list[str]]:
    """Return the rows of what each port lost of its own packets, and received of others."""
    of_port = {one.port: one for one in outcome.directions}
    lost = {port: of_port[port].lost_packets if port in of_port else None for port in outcome.counters}
    rows = [("sent and lost", lost), ("other packets received", outcome.other_packets)]
    if outcome.duplicate_packets:
        twice = {port: one.duplicate_packets for port, one in of_port.items()}
        rows.insert(1, ("received too often", {port: twice.get(port) for port in outcome.counters}))
    found = []
    for label, by_port in rows:
        values = [by_port[port] for port in sorted(outcome.counters)]
        total = [known_sum(values)] if has_total else []
        found.append([label, *(_format.count(value) for value in [*values, *total])])
    return found


_RATES = (
    ("offered rate", "offered_pps", "pps"),
    ("sent rate", "tx_pps", "pps"),
    ("", "tx_bps", "bps"),
    ("received rate", "rx_pps", "pps"),
    ("", "rx_bps", "bps"),
)


def streams(found: Sequence[StreamCounters]) -> str:
    """Return the table of single streams: those that lost most, if there are many."""
    shown = sorted(found, key=lambda one: -(one.lost_packets + one.duplicate_packets))[:_STREAMS_SHOWN]
    kept = {id(one) for one in shown}
    columns: list[tuple[str, Callable[[StreamCounters], str]]] = [
        ("port", lambda one: str(one.port)),
        ("sent", lambda one: _format.count(one.tx_packets)),
        ("received", lambda one: _format.count(one.rx_packets)),
        ("lost", lambda one: _format.count(one.lost_packets)),
        ("lost %", lambda one: f"{one.lost_percent:.3g}"),
    ]
    if any(one.duplicate_packets for one in found):
        columns.append(("too often", lambda one: _format.count(one.duplicate_packets)))
    if any(set(one.rx_by_port) - {pair_of(one.port)} for one in found):
        columns.append(("at ports", lambda one: ", ".join(map(str, sorted(one.rx_by_port)))))
    rows = [[_short(one), *(value(one) for _, value in columns)] for one in found if id(one) in kept]
    table = _format.table(["stream", *(title for title, _ in columns)], rows)
    more = len(found) - len(shown)
    return f"{table}\nand {more:,} more streams, which lost no more (--json has them all)" if more else table


def latency(found: Sequence[StreamCounters]) -> str:
    """Return the table of what was measured of streams."""
    measured = [(one, one.latency) for one in found if one.latency is not None]
    rows = [
        [
            _short(one),
            str(one.port),
            *(_format.microseconds(getattr(times, name)) for name in _TIMES.values()),
            _format.count(one.out_of_order_packets),
            _format.count(one.duplicate_packets),
        ]
        for one, times in measured
    ]
    header = ["latency", "port", *_TIMES, "out of order", "duplicates"]
    return _format.table(header, rows)


def _short(one: StreamCounters) -> str:
    return one.name if len(one.name) <= _NAME_WIDTH else f"{one.name[: _NAME_WIDTH - 1]}…"


def _are_worth_a_table(outcome: StreamCounts) -> bool:
    """Whether the streams tell more than the ports do."""
    by_port = {one.port for one in outcome.streams}
    elsewhere = any(set(one.rx_by_port) - {pair_of(one.port)} for one in outcome.streams)
    return len(outcome.streams) > len(by_port) or elsewhere or any(one.latency for one in outcome.streams)


def fields(outcome: StreamCounts) -> dict[str, Any]:
    """Return what only streams have in the JSON document; docs/commands/run.md describes it."""
    other = outcome.other_packets
    return {
        "multiplier": outcome.plan.multiplier,
        "ports": {
            str(port): {**_with_rates(one, outcome.elapsed_s), "other_packets": other[port]}
            for port, one in sorted(outcome.counters.items())
        },
        "total": _with_rates(outcome.total, outcome.elapsed_s),
        "counted_by": outcome.counted_by,
        "directions": [one.to_json() for one in outcome.directions],
        "streams": [one.to_json() for one in outcome.streams],
        "lost_packets": outcome.lost_packets,
        "duplicate_packets": outcome.duplicate_packets,
        "missed_packets": outcome.missed_packets,
    }


def _with_rates(counters: PortCounters, elapsed_s: float) -> dict[str, Any]:
    rates = {kind: round(_average(counters, kind, elapsed_s), 1) for _, kind, _ in _RATES}
    return {**counters.to_json(), **rates}


def _average(counters: PortCounters, kind: str, elapsed_s: float) -> float:
    """Return an average over the run, of layer 2 with FCS."""
    amount = {
        "offered_pps": counters.offered_packets,
        "tx_pps": counters.tx_packets,
        "tx_bps": counters.tx_bytes * 8,
        "rx_pps": counters.rx_packets,
        "rx_bps": counters.rx_bytes * 8,
    }[kind]
    return amount / elapsed_s if elapsed_s > 0 else 0.0
