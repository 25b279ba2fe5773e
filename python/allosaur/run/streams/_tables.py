"""What a run of streams counted, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.report._counters import PortCounters, port_rates
from allosaur.report._latency import LATENCY_COLUMNS
from allosaur.report._streams import StreamCounters, known_sum
from allosaur.run.streams._counts import StreamOutcome, pair_of

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
_RATES = {
    "offered_pps": "offered rate",
    "tx_pps": "sent rate",
    "tx_bps": "",
    "rx_pps": "received rate",
    "rx_bps": "",
}
"""The averages that are told, with their labels: what has none is in the unit of the line before."""
_STREAMS_SHOWN = 20
"""More streams would only scroll away: those that lost most are shown."""
_TIMES = {name: of for name, of in LATENCY_COLUMNS.items() if name != "p90"}
_NAME_WIDTH = 24


def tables(outcome: StreamOutcome) -> list[str]:
    """Return the tables: of ports, and of streams and latency where they tell more."""
    found = [totals(outcome)]
    measured = [one for one in outcome.streams if one.latency is not None]
    elsewhere = any(_is_elsewhere(one) for one in outcome.streams)
    if measured or elsewhere or len(outcome.streams) > len({one.port for one in outcome.streams}):
        found.append(_streams(outcome.streams))
    if measured:
        found.append(_latency(measured))
    return found


def totals(outcome: StreamOutcome) -> str:
    """Return the table of what each port counted, and its average rates."""
    ports = sorted(outcome.counters)
    columns = {f"port {port}": outcome.counters[port] for port in ports}
    if len(ports) > 1:
        columns["total"] = outcome.total
    rows = [
        [label, *(_format.count(getattr(counters, name)) for counters in columns.values())]
        for label, name in _ROWS
    ]
    # What each port lost of its own packets, and received of others.
    of_port = {one.port: one for one in outcome.directions}
    own: dict[str, list[int | None]] = {
        "sent and lost": [of_port[port].lost_packets if port in of_port else None for port in ports],
        "other packets received": [outcome.other_packets[port] for port in ports],
    }
    if outcome.duplicate_packets:
        twice = [of_port[port].duplicate_packets if port in of_port else None for port in ports]
        own = {"sent and lost": own["sent and lost"], "received too often": twice, **own}
    for label, values in own.items():
        total = [known_sum(values)] if len(ports) > 1 else []
        rows.append([label, *map(_format.count, [*values, *total])])
    averages = [_averages(counters, outcome.elapsed_s) for counters in columns.values()]
    for name, label in _RATES.items():
        rows.append([label, *(_format.rate(one[name], name.rpartition("_")[2]) for one in averages)])
    return _format.by_port(list(columns), rows)


def _averages(counters: PortCounters, elapsed_s: float) -> dict[str, float]:
    """Return the averages over the run, of layer 2 with FCS."""
    rates = port_rates(PortCounters(), counters, elapsed_s)
    return {name: getattr(rates, name) for name in _RATES}


def _streams(found: Sequence[StreamCounters]) -> str:
    """Return the table of single streams: those that lost most, if there are many."""
    most = sorted(found, key=lambda one: -(one.lost_packets + one.duplicate_packets))[:_STREAMS_SHOWN]
    kept = {id(one) for one in most}
    columns: dict[str, Callable[[StreamCounters], str]] = {
        "stream": _short,
        "port": lambda one: str(one.port),
        "sent": lambda one: _format.count(one.tx_packets),
        "received": lambda one: _format.count(one.rx_packets),
        "lost": lambda one: _format.count(one.lost_packets),
        "lost %": lambda one: f"{one.lost_percent:.3g}",
    }
    if any(one.duplicate_packets for one in found):
        columns["too often"] = lambda one: _format.count(one.duplicate_packets)
    if any(map(_is_elsewhere, found)):
        columns["at ports"] = lambda one: ", ".join(map(str, sorted(one.rx_by_port)))
    rows = [[value(one) for value in columns.values()] for one in found if id(one) in kept]
    table = _format.table(list(columns), rows)
    more = len(found) - len(rows)
    return f"{table}\nand {more:,} more streams, which lost no more (--json has them all)" if more else table


def _latency(measured: Sequence[StreamCounters]) -> str:
    """Return the table of what was measured of streams."""
    rows = [
        [
            _short(one),
            str(one.port),
            *(_format.microseconds(getattr(one.latency, name)) for name in _TIMES.values()),
            _format.count(one.out_of_order_packets),
            _format.count(one.duplicate_packets),
        ]
        for one in measured
    ]
    return _format.table(["latency", "port", *_TIMES, "out of order", "duplicates"], rows)


def _short(one: StreamCounters) -> str:
    return one.name if len(one.name) <= _NAME_WIDTH else f"{one.name[: _NAME_WIDTH - 1]}…"


def _is_elsewhere(one: StreamCounters) -> bool:
    """Whether packets of a stream arrived at another port than its peer."""
    return bool(set(one.rx_by_port) - {pair_of(one.port)})


def fields(outcome: StreamOutcome) -> dict[str, Any]:
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
    rates = {name: round(value, 1) for name, value in _averages(counters, elapsed_s).items()}
    return {**counters.to_json(), **rates}
