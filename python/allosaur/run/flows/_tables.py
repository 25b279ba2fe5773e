"""What a run of flows counted, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.report import LATENCY_COLUMNS, FlowCounters, Outcomes, SideCounters
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._hints import hint, names
from allosaur.run.flows._progress import error_lines

_TIMES = {name: of for name, of in LATENCY_COLUMNS.items() if name != "jitter"}


def tables(outcome: FlowCounts) -> list[str]:
    """Return the tables: of both sides, of times, of template groups, of latency."""
    found = [totals(outcome.counters, outcome.elapsed_s)]
    found += [text] if (text := times(outcome.counters.outcomes)) else []
    found += [groups(outcome.groups)] if outcome.groups else []
    found += [latency(outcome.latency)] if outcome.latency else []
    return found


def totals(counters: FlowCounters, elapsed_s: float | None = None) -> str:
    """Return the table of what both sides counted; with a time also the averages over it."""
    rows = [
        ["offered flows", _format.count(counters.offered_flows), ""],
        ["missed flows", _format.count(counters.missed_flows), ""],
    ]
    rows += [[label, *map(_format.count, values)] for label, values in counters.totals()]
    if elapsed_s:
        rates = [_averages(side, elapsed_s) for side in (counters.client, counters.server)]
        rows += [
            ["offered rate", _format.rate(counters.offered_flows / elapsed_s, "flows/s"), ""],
            ["connected rate", *(_format.rate(one["connected_fps"], "flows/s") for one in rates)],
            ["data sent, rate", *(_format.rate(one["tx_data_bps"], "bps") for one in rates)],
        ]
    return _format.table(["", "clients", "servers"], rows)


def errors(counters: FlowCounters, without: Sequence[str] = ()) -> list[str]:
    """Return what went wrong, with what to do; but what was asked for."""
    return error_lines([one for one in counters.trouble() if one[1] not in without])


def times(outcomes: Outcomes | None) -> str:
    """Return the table of how long the flows of clients took; empty where nobody knows."""
    timed = () if outcomes is None else outcomes.timed()
    rows = [[label, _format.count(flows), *_times(found, _TIMES)] for label, flows, found in timed]
    return _format.table(["time of flows", "flows", *_TIMES], rows) if rows else ""


def _times(found: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    return [_format.microseconds(found.get(name)) for name in columns.values()]


def groups(found: Mapping[str, FlowCounters]) -> str:
    """Return the table of template groups."""
    header = ["group", "opened", "connected", "completed", "active", "clients sent", "servers sent", "errors"]
    rows = [
        [
            name,
            _format.count(one.client.begun_flows),
            _format.count(one.client.connected_flows),
            _format.count(None if one.outcomes is None else one.outcomes.client.completed),
            _format.count(one.client.active_flows),
            _format.count(one.client.tx_data_bytes),
            _format.count(one.server.tx_data_bytes),
            ", ".join(names(one)) or "none",
        ]
        for name, one in found.items()
    ]
    return _format.table(header, rows)


def latency(found: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the table of what echo requests measured."""
    rows = [
        [
            f"port {port}",
            _format.count(one["sent"]),
            _format.count(one["received"]),
            *_times(one, LATENCY_COLUMNS),
        ]
        for port, one in sorted(found.items())
    ]
    return _format.table(["latency", "sent", "received", *LATENCY_COLUMNS], rows)


def fields(outcome: FlowCounts) -> dict[str, Any]:
    """Return what only flows have in the JSON document; docs/commands/run.md describes it."""
    counters, elapsed_s = outcome.counters, outcome.elapsed_s
    result = counters_json(counters)
    for side in ("client", "server"):
        result[f"{side}s"] |= {
            name: round(value, 1) for name, value in _averages(counters.side(side), elapsed_s).items()
        }
    offered = counters.offered_flows / elapsed_s if elapsed_s else 0.0
    return {
        "profile_id": outcome.plan.profile_id,
        "multiplier": outcome.plan.multiplier,
        "closing_s": round(outcome.closing_s, 3),
        "offered_fps": round(offered, 1),
        **result,
        "lost_messages": counters.lost_messages,
        "lost_bytes": counters.lost_bytes,
        "times": {} if counters.outcomes is None else counters.outcomes.times,
        "groups": {name: counters_json(one) for name, one in outcome.groups.items()},
        "latency": {str(port): dict(one) for port, one in sorted(outcome.latency.items())},
    }


def counters_json(counters: FlowCounters) -> dict[str, Any]:
    """Return counters as plain data, each error with what to do about it.

    The sides are `clients` and `servers`: the key `server` of a result is the address of the server.
    """
    values = counters.to_json()
    values |= {f"{side}s": values.pop(side) for side in ("client", "server")}
    values["errors"] = error_objects(counters.error_list())
    if counters.outcomes is not None:
        values["outcomes"] = {f"{side}s": one for side, one in values["outcomes"].items()}
        values["failures"] = failure_objects(counters)
    return values


def failure_objects(counters: FlowCounters) -> list[dict[str, Any]]:
    """Return in which ways flows failed, or were answered badly, with what to do, as plain data."""
    ways = counters.trouble()[: len(counters.trouble()) - len(counters.error_list())]
    return [{"side": side, "outcome": name, "count": count, "hint": hint(name)} for side, name, count in ways]


def error_objects(found: Sequence[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """Return error counters as plain data."""
    return [
        {"side": side, "counter": name, "count": count, "hint": hint(name)} for side, name, count in found
    ]


def _averages(side: SideCounters, elapsed_s: float) -> dict[str, float]:
    if elapsed_s <= 0:
        return {"connected_fps": 0.0, "tx_data_bps": 0.0, "rx_data_bps": 0.0}
    return {
        "connected_fps": side.connected_flows / elapsed_s,
        "tx_data_bps": side.tx_data_bytes * 8 / elapsed_s,
        "rx_data_bps": side.rx_data_bytes * 8 / elapsed_s,
    }
