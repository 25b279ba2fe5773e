"""What the report of a run shows of its flows: flows, open flows, data and errors over time, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from allosaur.report._flow_counters import SIDES, FlowCounters, FlowRates
from allosaur.report._latency import (
    LATENCY_COLUMNS,
    LatencyRow,
    latency_headline,
    latency_section,
    times_table,
)
from allosaur.report._model import Chart, Check, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import count, share, short
from allosaur.report._readings import whole
from allosaur.report._streams import StreamLatency
from allosaur.run._result import errors_headline, missed_headline
from allosaur.run._thresholds import Thresholds
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._hints import hint, meaning, told_shortly
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
_BOTH_SIDES = (text(""), number("clients"), number("servers"))


def checks(outcome: FlowCounts, thresholds: Thresholds) -> list[Check]:
    """Return what a report says must hold, and whether it did, but for what thresholds decide on."""
    counters, plan = outcome.counters, outcome.plan
    found: list[Check] = []
    if not plan.servers_only and not thresholds.decide("missed"):
        missed = counters.missed_flows
        said = "the server did not count it"
        if missed is not None:
            said = f"{missed:,} of {counters.offered_flows:,}"
        found.append(Check("flows that were missed", not missed and counters.client.begun_flows > 0, said))
    failed = ends(outcome, thresholds)
    found.append(Check("flows that completed", not failed, "; ".join(failed) or _completed(counters)))
    wrong = told_shortly(undecided_errors(counters, thresholds))
    found.append(Check("error counters", not wrong, wrong or "all are zero"))
    if outcome.is_comparable:
        lost_bytes = None if plan.resetting else counters.lost_bytes
        for what, lost, check in (
            ("UDP messages that were lost", counters.lost_messages, "messages"),
            ("bytes of TCP that were lost", lost_bytes, "bytes"),
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
    end_s = outcome.rates[-1].time_s if outcome.rates else 0.0
    return [
        Section("Flows over time", [replace(chart, end_s=end_s) for chart in charts]),
        Section("How flows ended", tables=[_ends(counters)], note=_NOTE_ENDS),
        Section("Errors", tables=[_errors(outcome)]),
        Section("Times of flows", tables=[_times(counters)], note=_NOTE_TIMES),
        latency_section("Latency of echo requests", "echo", _latency_rows(outcome)),
        Section("Totals of flows", tables=[_totals(counters)], note=_NOTE),
        Section("Template groups", tables=[_groups(outcome)]),
    ]


def headlines(outcome: FlowCounts) -> Iterator[Headline]:
    """Return the numbers that stand first."""
    counters, duration_s = outcome.counters, outcome.elapsed_s
    side = counters.opener
    opened, connected = side.begun_flows, side.connected_flows
    yield Headline("Flows opened" if side is counters.client else "Flows that came", count(opened))
    note = f"{share(connected, opened)} of them"
    yield Headline("Flows connected", count(connected), note, connected < opened)
    if counters.outcomes is not None:
        ours = counters.outcomes.client if side is counters.client else counters.outcomes.server
        note = f"{share(ours.completed, opened)} of them"
        yield Headline("Flows completed", count(ours.completed), note, ours.failed() > 0)
    if counters.missed_flows is not None:
        yield missed_headline("Not opened in time", counters.missed_flows, counters.offered_flows)
    yield errors_headline(counters.error_events)
    lost = counters.lost_messages
    if lost is not None:
        yield Headline("UDP messages lost", count(lost), "", lost > 0)
    if duration_s:
        both = 8 * (counters.client.tx_data_bytes + counters.server.tx_data_bytes) / duration_s
        note = f"{short(both, 'bps')} of data"
        yield Headline("Flows a second, average", short(connected / duration_s), note)
    yield from latency_headline(_latency_rows(outcome))


def _flows_chart(outcome: FlowCounts) -> Chart:
    lines = {
        "offered": "offered_fps",
        "opened": "begun_fps",
        "connected, clients": "client.connected_fps",
        "connected, servers": "server.connected_fps",
    }
    counters, duration_s = outcome.counters, outcome.elapsed_s
    client, server, missed = counters.client, counters.server, counters.missed_flows
    late = "late ones were not counted" if missed is None else f"{missed:,} were late"
    average = client.connected_flows / duration_s if duration_s else 0.0
    sentence = (
        f"{counters.offered_flows:,} flows were offered, {client.begun_flows:,} were opened, {late}; "
        f"clients connected {short(average)} a second on average."
    )
    if not client.begun_flows:
        sentence = f"{server.begun_flows:,} flows came, {server.connected_flows:,} were connected."
    drawn = _series(whole(outcome.rates, duration_s), lines)
    return Chart("Flows", "per second", drawn, sentence=sentence, name="flows")


def _open_chart(outcome: FlowCounts) -> Chart:
    top = max((one.active_flows for one in outcome.rates), default=0)
    sentence = (
        f"Up to {top:,} flows were open at a time. Active ones are opened, established ones are answered."
    )
    lines = {"active": "active_flows", "established": "established_flows"}
    drawn = _series(_from_zero(outcome.rates), lines)
    return Chart("Open flows", "at a time", drawn, sentence=sentence, name="open", is_whole=True)


def _data_chart(outcome: FlowCounts, sender: str, receiver: str) -> Chart:
    lines = {
        f"{sender}s sent": f"{sender}.tx_data_bps",
        f"{receiver}s received": f"{receiver}.rx_data_bps",
    }
    duration_s = outcome.elapsed_s
    average = 8 * outcome.counters.side(sender).tx_data_bytes / duration_s if duration_s else 0.0
    sentence = f"The {sender}s' applications sent {short(average, 'bps')} on average."
    # Data go on until the last flow is closed, so only the first interval is not whole.
    drawn = _series(outcome.rates[1:], lines)
    return Chart(f"Data of {sender}s", "bits per second", drawn, sentence=sentence, name=f"data-{sender}")


def _errors_chart(outcome: FlowCounts) -> Chart:
    """Return how often something went wrong; a chart without points when nothing did."""
    errors = outcome.counters.error_events
    failed = max((one.failed_flows for one in outcome.rates), default=0)
    rates = _from_zero(outcome.rates) if errors or failed else []
    sentence = f"{failed:,} flows failed, {errors:,} errors were counted; the tables below have each kind."
    drawn = _series(rates, {"errors": "errors", "failed flows": "failed_flows"})
    return Chart("Errors so far", "counted", drawn, sentence=sentence, name="errors", is_whole=True)


def _from_zero(rates: Sequence[FlowRates]) -> list[FlowRates]:
    """Return the rates, and before them the start, at which nothing was there yet."""
    return [FlowRates(0.0), *rates] if rates else []


def _series(rates: Sequence[FlowRates], lines: Mapping[str, str]) -> list[Series]:
    """Return lines of values, by the names of their attributes.

    Those that are zero all the time are left out, as a side that is not ours.
    """
    drawn = {name: [(one.time_s, float(attrgetter(of)(one))) for one in rates] for name, of in lines.items()}
    told = [name for name, points in drawn.items() if any(value for _, value in points)] or [*lines][:1]
    return [Series(name, [*drawn[name]], is_filled=place == 0) for place, name in enumerate(told)]


def _totals(counters: FlowCounters) -> Table:
    rows: list[tuple[str, ...]] = [("offered flows", count(counters.offered_flows), "")]
    if counters.missed_flows:
        rows.append(("flows not opened in time", count(counters.missed_flows), ""))
    for label, values in counters.totals():
        rows.append((label.replace("active flows", "active flows at the end"), *map(count, values)))
    return Table("Totals of both sides", _BOTH_SIDES, rows)


def _errors(outcome: FlowCounts) -> Table:
    rows = [
        (meaning(name), f"{side}s", count(number), hint(name), name) for side, name, number in outcome.trouble
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
    return Table("How flows ended", _BOTH_SIDES, rows)


def _times(counters: FlowCounters) -> Table:
    rows = [] if counters.outcomes is None else [*counters.outcomes.timed()]
    return times_table("Times of flows", "flows", rows)


def _groups(outcome: FlowCounts) -> Table:
    titles = ("opened", "connected", "bytes clients sent", "bytes servers sent")
    rows = []
    for name, one in outcome.groups.items():
        client, sent = one.client, one.server.tx_data_bytes
        wrong = ", ".join(dict.fromkeys(meaning(error) for _, error, _ in one.trouble()))
        counts = map(count, (client.begun_flows, client.connected_flows, client.tx_data_bytes, sent))
        rows.append((name, *counts, wrong or "none"))
    columns = [text("group"), *map(number, titles), text("errors")]
    return Table("What was counted of each group", columns, rows)


def _latency_rows(outcome: FlowCounts) -> list[LatencyRow]:
    return [
        LatencyRow(
            f"port {port}",
            one["received"],
            StreamLatency(**{name: one[name] for name in LATENCY_COLUMNS.values() if name in one}),
        )
        for port, one in sorted(outcome.latency.items())
        if one.get("received") and "min_us" in one
    ]
