"""What a run of flows counted, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.report._flow_counters import FlowCounters, flow_rates
from allosaur.report._flow_outcomes import Outcomes
from allosaur.report._latency import LATENCY_COLUMNS
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._hints import hint

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
        average = flow_rates(FlowCounters(), counters, elapsed_s)
        sides = (average.client, average.server)
        rows += [
            ["offered rate", _format.rate(average.offered_fps, "flows/s"), ""],
            ["connected rate", *(_format.rate(one.connected_fps, "flows/s") for one in sides)],
            ["data sent, rate", *(_format.rate(one.tx_data_bps, "bps") for one in sides)],
        ]
    return _format.table(["", "clients", "servers"], rows)


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
    rows = []
    for name, one in found.items():
        client, completed = one.client, None if one.outcomes is None else one.outcomes.client.completed
        counts = (client.begun_flows, client.connected_flows, completed, client.active_flows)
        sent = (client.tx_data_bytes, one.server.tx_data_bytes)
        wrong = ", ".join(dict.fromkeys(wrong for _, wrong, _ in one.trouble()))
        rows.append([name, *map(_format.count, (*counts, *sent)), wrong or "none"])
    return _format.table(header, rows)


def latency(found: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the table of what echo requests measured."""
    rows = [
        [f"port {port}", *map(_format.count, (one["sent"], one["received"])), *_times(one, LATENCY_COLUMNS)]
        for port, one in sorted(found.items())
    ]
    return _format.table(["latency", "sent", "received", *LATENCY_COLUMNS], rows)


def fields(outcome: FlowCounts) -> dict[str, Any]:
    """Return what only flows have in the JSON document; docs/commands/run.md describes it."""
    counters = outcome.counters
    average = flow_rates(FlowCounters(), counters, outcome.elapsed_s)
    result = counters_json(counters)
    for side in ("client", "server"):
        rates = average.side(side)
        told = {name: getattr(rates, name) for name in ("connected_fps", "tx_data_bps", "rx_data_bps")}
        result[f"{side}s"] |= {name: round(value, 1) for name, value in told.items()}
    return {
        "profile_id": outcome.plan.profile_id,
        "multiplier": outcome.plan.multiplier,
        "closing_s": round(outcome.closing_s, 3),
        "offered_fps": round(average.offered_fps, 1),
        **result,
        "lost_messages": counters.lost_messages,
        "lost_bytes": counters.lost_bytes,
        "times": {} if counters.outcomes is None else counters.outcomes.times,
        "groups": {name: counters_json(one) for name, one in outcome.groups.items()},
        "latency": {str(port): dict(one) for port, one in sorted(outcome.latency.items())},
    }


def counters_json(counters: FlowCounters) -> dict[str, Any]:
    """Return counters as plain data, each error and each way of failing with what to do about it.

    The sides are `clients` and `servers`: the key `server` of a result is the address of the server.
    """
    values = counters.to_json()
    values |= {f"{side}s": values.pop(side) for side in ("client", "server")}
    values["errors"] = _with_hints("counter", counters.error_list())
    if counters.outcomes is not None:
        values["outcomes"] = {f"{side}s": one for side, one in values["outcomes"].items()}
        values["failures"] = _with_hints("outcome", counters.failures())
    return values


def _with_hints(kind: str, found: Sequence[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [{"side": side, kind: name, "count": count, "hint": hint(name)} for side, name, count in found]
