"""What the report of a run shows of its flows: flows, open flows, data and errors over time, and totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from allosaur.report import (
    SIDES,
    Chart,
    Check,
    FlowCounters,
    FlowRates,
    Headline,
    LatencyRow,
    Part,
    Section,
    Series,
    StreamLatency,
    Table,
    count,
    latency_headline,
    latency_section,
    number,
    share,
    short,
    text,
    times_table,
    whole,
)
from allosaur.run._part import errors_headline, missed_headline, part_of
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run._verdict import Verdict
from allosaur.run.flows import _hints
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._verdict import ends, undecided_errors

_NOTE = (
    "Offered: flows whose time had come. Not opened in time: those of them that were late. Connected: flows "
    "of which both ends know. Data are the bytes of applications; packets are those of the ports, whatever "
    "they carry."
)
_NOTE_ENDS = (
    "Completed: the program came to its end, and all that it sent was acknowledged. Closed early: the peer "
    "closed while the program waited for data, or had some to deliver. Got no data: however they ended."
)
_NOTE_TIMES = (
    "Connect: from the SYN of a client to its connection. First byte: from the beginning of a flow to its "
    "first data. Whole program: to the end of the program, where it completed."
)


def part(outcome: FlowCounts, verdict: Verdict) -> Part:
    """Return the part of the report."""
    thresholds = Thresholds(one.threshold for one in verdict.thresholds)
    more = checks(outcome, thresholds), _look_at(outcome)
    return part_of("flows", outcome, verdict, headlines(outcome), sections(outcome), *more)


def checks(outcome: FlowCounts, thresholds: Thresholds = NONE) -> list[Check]:
    """Return what a report says must hold, and whether it did, but for what thresholds decide on."""
    counters, plan = outcome.counters, outcome.plan
    opened = counters.client.begun_flows
    found: list[Check] = []
    if not plan.servers_only:
        missed = counters.missed_flows
        text = (
            "the server did not count it" if missed is None else f"{missed:,} of {counters.offered_flows:,}"
        )
        if not thresholds.decide("missed"):
            found.append(Check("flows that were missed", not missed and opened > 0, text))
    failed = ends(outcome, thresholds)
    found.append(Check("flows that completed", not failed, "; ".join(failed) or _completed(counters)))
    wrong = _hints.told_shortly(undecided_errors(counters, thresholds))
    found.append(Check("error counters", not wrong, wrong or "all are zero"))
    if outcome.is_comparable:
        for what, lost, check in (
            ("UDP messages that were lost", counters.lost_messages, "messages"),
            ("bytes of TCP that were lost", None if plan.resetting else counters.lost_bytes, "bytes"),
        ):
            if lost is not None and not thresholds.decide(check):
                found.append(Check(what, lost == 0, f"{lost:,}"))
    return found


def _completed(counters: FlowCounters) -> str:
    if counters.outcomes is None:
        return f"{counters.client.connected_flows:,} connected; the server does not tell how they ended"
    ours = [(side, counters.outcomes.side(side)) for side in SIDES if counters.side(side).begun_flows]
    return ", ".join(f"{one.completed:,} at {side}s" for side, one in ours) or "none"


def sections(outcome: FlowCounts) -> list[Section]:
    """Return the charts and tables."""
    counters = outcome.counters
    data = [_data_chart(outcome, sender, receiver) for sender, receiver in (SIDES, SIDES[::-1])]
    charts = [_flows_chart(outcome), _open_chart(outcome), *data, _errors_chart(outcome)]
    return [
        Section("Flows over time", charts),
        Section("How flows ended", tables=[_ends(counters)], note=_NOTE_ENDS),
        Section("Errors", tables=[_errors(outcome)]),
        Section("Times of flows", tables=[_times(counters)], note=_NOTE_TIMES),
        latency_section("Latency of echo requests", "echo", _latency_rows(outcome.latency)),
        Section("Totals of flows", tables=[_totals(counters)], note=_NOTE),
        Section("Template groups", tables=[_groups(outcome)]),
    ]


def headlines(outcome: FlowCounts) -> list[Headline]:
    """Return the numbers that stand first."""
    counters = outcome.counters
    side = counters.opener
    opened, connected = side.begun_flows, side.connected_flows
    found = [
        Headline("Flows opened" if side is counters.client else "Flows that came", count(opened)),
        Headline(
            "Flows connected", count(connected), f"{share(connected, opened)} of them", connected < opened
        ),
    ]
    if counters.outcomes is not None:
        ours = counters.outcomes.client if side is counters.client else counters.outcomes.server
        note = f"{share(ours.completed, opened)} of them"
        found.append(Headline("Flows completed", count(ours.completed), note, ours.failed() > 0))
    if counters.missed_flows is not None:
        found.append(missed_headline("Not opened in time", counters.missed_flows, counters.offered_flows))
    found.append(errors_headline(counters.error_events))
    lost = counters.lost_messages
    if lost is not None:
        found.append(Headline("UDP messages lost", count(lost), "", lost > 0))
    duration_s = outcome.elapsed_s
    if duration_s:
        both = 8 * (counters.client.tx_data_bytes + counters.server.tx_data_bytes) / duration_s
        note = f"{short(both, 'bps')} of data"
        found.append(Headline("Flows a second, average", short(connected / duration_s), note))
    return found + latency_headline(_latency_rows(outcome.latency))


def _flows_chart(outcome: FlowCounts) -> Chart:
    lines = {
        "offered": "offered_fps",
        "opened": "begun_fps",
        "connected, clients": "client.connected_fps",
        "connected, servers": "server.connected_fps",
    }
    counters, duration_s = outcome.counters, outcome.elapsed_s
    missed = (
        "late ones were not counted"
        if counters.missed_flows is None
        else f"{counters.missed_flows:,} were late"
    )
    average = counters.client.connected_flows / duration_s if duration_s else 0.0
    sentence = (
        f"{counters.offered_flows:,} flows were offered, {counters.client.begun_flows:,} were opened, "
        f"{missed}; clients connected {short(average)} a second on average."
    )
    if not counters.client.begun_flows:
        sentence = (
            f"{counters.server.begun_flows:,} flows came, {counters.server.connected_flows:,} were connected."
        )
    points = whole(outcome.rates, outcome.elapsed_s)
    return _chart(outcome, "flows", "Flows", "per second", sentence, _series(points, lines))


def _open_chart(outcome: FlowCounts) -> Chart:
    lines = {
        "active": "active_flows",
        "established": "established_flows",
    }
    top = max((one.active_flows for one in outcome.rates), default=0)
    sentence = (
        f"Up to {top:,} flows were open at a time. Active ones are opened, established ones are answered."
    )
    drawn = _series(_from_zero(outcome.rates), lines)
    return _chart(outcome, "open", "Open flows", "at a time", sentence, drawn, is_whole=True)


def _data_chart(outcome: FlowCounts, sender: str, receiver: str) -> Chart:
    lines = {
        f"{sender}s sent": f"{sender}.tx_data_bps",
        f"{receiver}s received": f"{receiver}.rx_data_bps",
    }
    duration_s = outcome.elapsed_s
    average = 8 * outcome.counters.side(sender).tx_data_bytes / duration_s if duration_s else 0.0
    sentence = f"The {sender}s' applications sent {short(average, 'bps')} on average."
    # Data go on until the last flow is closed, so only the first interval is not whole.
    title, drawn = f"Data of {sender}s", _series(outcome.rates[1:], lines)
    return _chart(outcome, f"data-{sender}", title, "bits per second", sentence, drawn)


def _errors_chart(outcome: FlowCounts) -> Chart:
    """Return how often something went wrong; a chart without points when nothing did."""
    errors = outcome.counters.error_events
    failed = max((one.failed_flows for one in outcome.rates), default=0)
    rates = _from_zero(outcome.rates) if errors or failed else []
    lines = {
        "errors": "errors",
        "failed flows": "failed_flows",
    }
    sentence = f"{failed:,} flows failed, {errors:,} errors were counted; the tables below have each kind."
    drawn = _series(rates, lines)
    return _chart(outcome, "errors", "Errors so far", "counted", sentence, drawn, is_whole=True)


def _from_zero(rates: Sequence[FlowRates]) -> list[FlowRates]:
    """Return the rates, and before them the start, at which nothing was there yet."""
    return [FlowRates(0.0), *rates] if rates else []


def _chart(
    outcome: FlowCounts,
    name: str,
    title: str,
    unit: str,
    sentence: str,
    series: Sequence[Series],
    is_whole: bool = False,
) -> Chart:
    end_s = _end_s(outcome)
    return Chart(title, unit, series, sentence=sentence, name=name, end_s=end_s, is_whole=is_whole)


def _series(rates: Sequence[FlowRates], lines: Mapping[str, str]) -> list[Series]:
    """Return lines of values, by the names of their attributes.

    Those that are zero all the time are left out, as a side that is not ours.
    """
    drawn = {name: [(one.time_s, float(attrgetter(of)(one))) for one in rates] for name, of in lines.items()}
    told = [name for name, points in drawn.items() if any(value for _, value in points)] or [*lines][:1]
    return [Series(name, [*drawn[name]], is_filled=place == 0) for place, name in enumerate(told)]


def _end_s(outcome: FlowCounts) -> float:
    return outcome.rates[-1].time_s if outcome.rates else 0.0


def _totals(counters: FlowCounters) -> Table:
    rows: list[tuple[str, ...]] = [("offered flows", count(counters.offered_flows), "")]
    if counters.missed_flows:
        rows.append(("flows not opened in time", count(counters.missed_flows), ""))
    for label, values in counters.totals():
        rows.append((label.replace("active flows", "active flows at the end"), *map(count, values)))
    return Table("Totals of both sides", [text(""), number("clients"), number("servers")], rows)


def _errors(outcome: FlowCounts) -> Table:
    rows = [
        (_hints.meaning(name), side + "s", count(number), _hints.hint(name), name)
        for side, name, number in _trouble(outcome)
    ]
    columns = [
        text("what was counted"),
        text("side"),
        number("how often"),
        text("what to do"),
        text("counter"),
    ]
    return Table("Flows that failed, and error counters that are not zero", columns, rows)


def _ends(counters: FlowCounters) -> Table:
    rows: list[tuple[str, ...]] = []
    if counters.outcomes is not None and counters.client.begun_flows + counters.server.begun_flows:
        rows = [(label, *map(count, values)) for label, values in counters.outcomes.rows()]
    return Table("How flows ended", [text(""), number("clients"), number("servers")], rows)


def _times(counters: FlowCounters) -> Table:
    rows = [] if counters.outcomes is None else [*counters.outcomes.timed()]
    return times_table("Times of flows", "flows", rows)


def _groups(outcome: FlowCounts) -> Table:
    columns = [
        text("group"),
        *map(number, ("opened", "connected", "bytes clients sent", "bytes servers sent")),
        text("errors"),
    ]
    rows = [
        (
            name,
            count(one.client.begun_flows),
            count(one.client.connected_flows),
            count(one.client.tx_data_bytes),
            count(one.server.tx_data_bytes),
            ", ".join(dict.fromkeys(_hints.meaning(name) for _, name, _ in one.trouble())) or "none",
        )
        for name, one in outcome.groups.items()
    ]
    return Table("What was counted of each group", columns, rows)


def _trouble(outcome: FlowCounts) -> list[tuple[str, str, int]]:
    expected = ("cut_off",) if outcome.is_cut_off_asked else ()
    return [one for one in outcome.counters.trouble() if one[1] not in expected]


def _look_at(outcome: FlowCounts) -> list[str]:
    """Return what to do about the first kinds of trouble."""
    found = (_hints.hint(name) for _, name, _ in _trouble(outcome))
    return list(dict.fromkeys(hint for hint in found if hint))[:3]


def _latency_rows(latency: Mapping[int, Mapping[str, Any]]) -> list[LatencyRow]:
    return [
        LatencyRow(
            f"port {port}",
            int(one.get("received", 0)),
            StreamLatency(
                float(one["min_us"]),
                float(one["average_us"]),
                float(one["max_us"]),
                float(one["jitter_us"]),
                *(one.get(f"{name}_us") for name in ("p50", "p90", "p99", "p99_9")),
            ),
        )
        for port, one in sorted(latency.items())
        if one.get("received") and "min_us" in one
    ]
