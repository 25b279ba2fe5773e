"""The HTML report of stateful traffic: flows, open flows, data and errors over time, and the totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allosaur.report._chart import Chart, Line, charts_html, over_time
from allosaur.report._flow_counters import SIDES, FlowCounters
from allosaur.report._flow_outcomes import TIMES, was_timed
from allosaur.report._flow_sampling import FlowRates
from allosaur.report._latency import LatencyRow, latency_headline, latency_section
from allosaur.report._numbers import count, microseconds, share, short
from allosaur.report._over_time import END_SHARE
from allosaur.report._page import Check, Headline, Page, Section, write_page
from allosaur.report._streams import StreamLatency
from allosaur.report._table import number, table, text

_NOTE = (
    "Offered: flows whose time had come. Not opened in time: those of them that were late. Connected: flows "
    "of which both ends know. Data are the bytes of applications; packets are those of the ports, whatever "
    "they carry."
)
_NOTE_ENDS = (
    "Completed: the program came to its end, and all that it sent was acknowledged. Closed early: the peer "
    "closed while the program waited for data, or had some to deliver. Got no data: however they ended."
)
_TIMES = {
    "min": "min_us",
    "average": "average_us",
    "p50": "p50_us",
    "p90": "p90_us",
    "p99": "p99_us",
    "p99.9": "p99_9_us",
    "max": "max_us",
}
_NOTE_TIMES = (
    "Connect: from the SYN of a client to its connection. First byte: from the beginning of a flow to its "
    "first data. Whole program: to the end of the program, where it completed."
)


@dataclass(frozen=True)
class FlowReport:
    """All that a report of flows shows."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where."""
    counters: FlowCounters
    rates: Sequence[FlowRates]
    """Over time."""
    groups: Mapping[str, FlowCounters] = field(default_factory=dict)
    latency: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Of each port, in microseconds."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to do about error counters, by name."""
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    profile: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What error counters count, in plain words, by name."""
    reasons: Sequence[str] = ()
    """Why it failed, one sentence each."""
    expected: Sequence[str] = ()
    """Ways to end that the user asked for, such as `cut_off`."""
    duration_s: float | None = None
    """How long flows were opened; without it, until the last sample."""
    notes: Sequence[str] = ()


def write_flow_report(path: Path, report: FlowReport) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    page = Page(
        report.title,
        report.verdict,
        report.ok,
        report.facts,
        flow_sections(report),
        flow_headlines(report),
        report.reasons,
        _look_at(report),
        report.checks,
        report.reproduce,
        report.profile,
        report.notes,
    )
    write_page(path, page)


def flow_sections(report: FlowReport) -> list[Section]:
    """Return the sections of such a report, for a page that shows other things, too."""
    data = [_data_chart(report, sender, receiver) for sender, receiver in (SIDES, SIDES[::-1])]
    charts = [_flows_chart(report), _open_chart(report), *data, _errors_chart(report)]
    return [
        Section("Flows over time", [charts_html(charts)]),
        Section("How flows ended", [_ends(report.counters)], note=_NOTE_ENDS),
        Section("Errors", [_errors(report)]),
        Section("Times of flows", [_times(report.counters)], note=_NOTE_TIMES),
        latency_section("Latency of echo requests", "echo", _latency_rows(report.latency)),
        Section("Totals of flows", [_totals(report.counters)], note=_NOTE),
        Section("Template groups", [_groups(report)]),
    ]


def flow_headlines(report: FlowReport) -> list[Headline]:
    """Return the headline numbers, for a page that shows other things, too."""
    counters = report.counters
    side = counters.client if counters.client.begun_flows else counters.server
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
        missed = counters.missed_flows
        note = f"{share(missed, counters.offered_flows)} of the load" if missed else "the load was reached"
        found.append(Headline("Not opened in time", count(missed), note, missed > 0))
    errors = counters.error_events
    found.append(
        Headline("Errors counted", count(errors), "" if errors else "all counters are zero", errors > 0)
    )
    lost = counters.lost_messages
    if lost is not None:
        found.append(Headline("UDP messages lost", count(lost), "", lost > 0))
    duration_s = _duration_s(report)
    if duration_s:
        both = 8 * (counters.client.tx_data_bytes + counters.server.tx_data_bytes) / duration_s
        note = f"{short(both, 'bps')} of data"
        found.append(Headline("Flows a second, average", short(connected / duration_s), note))
    return found + latency_headline(_latency_rows(report.latency))


def whole(rates: Sequence[FlowRates], duration_s: float | None) -> list[FlowRates]:
    """Return the rates of the intervals that lie wholly within the time in which flows are opened.

    Of an interval in which that time begins or ends, the rate would look like another load.
    """
    inside = []
    earlier_s = 0.0
    for one in rates:
        if duration_s is None or one.time_s <= duration_s - END_SHARE * (one.time_s - earlier_s):
            inside.append(one)
        earlier_s = one.time_s
    return inside[1:]


def _flows_chart(report: FlowReport) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("offered", lambda one: one.offered_fps),
        ("opened", lambda one: one.begun_fps),
        ("connected, clients", lambda one: one.client.connected_fps),
        ("connected, servers", lambda one: one.server.connected_fps),
    ]
    counters, duration_s = report.counters, _duration_s(report)
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
    points = whole(report.rates, report.duration_s)
    return over_time("flows", "Flows", "per second", sentence, _lines(points, lines), _end_s(report))


def _open_chart(report: FlowReport) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("active", lambda one: one.active_flows),
        ("established", lambda one: one.established_flows),
    ]
    top = max((one.active_flows for one in report.rates), default=0)
    sentence = (
        f"Up to {top:,} flows were open at a time. Active ones are opened, established ones are answered."
    )
    drawn = _lines(_from_zero(report.rates), lines)
    return over_time("open", "Open flows", "at a time", sentence, drawn, _end_s(report), is_whole=True)


def _data_chart(report: FlowReport, sender: str, receiver: str) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        (f"{sender}s sent", lambda one: one.side(sender).tx_data_bps),
        (f"{receiver}s received", lambda one: one.side(receiver).rx_data_bps),
    ]
    duration_s = _duration_s(report)
    average = 8 * report.counters.side(sender).tx_data_bytes / duration_s if duration_s else 0.0
    sentence = f"The {sender}s' applications sent {short(average, 'bps')} on average."
    # Data go on until the last flow is closed, so only the first interval is not whole.
    title, drawn = f"Data of {sender}s", _lines(report.rates[1:], lines)
    return over_time(f"data-{sender}", title, "bits per second", sentence, drawn, _end_s(report))


def _errors_chart(report: FlowReport) -> Chart:
    """Return how often something went wrong; a chart without points when nothing did."""
    errors = report.counters.error_events
    failed = max((one.failed_flows for one in report.rates), default=0)
    rates = _from_zero(report.rates) if errors or failed else []
    lines = _lines(
        rates, [("errors", lambda one: one.errors), ("failed flows", lambda one: one.failed_flows)]
    )
    sentence = f"{failed:,} flows failed, {errors:,} errors were counted; the tables below have each kind."
    return over_time("errors", "Errors so far", "counted", sentence, lines, _end_s(report), is_whole=True)


def _from_zero(rates: Sequence[FlowRates]) -> list[FlowRates]:
    """Return the rates, and before them the start, at which nothing was there yet."""
    return [FlowRates(0.0), *rates] if rates else []


def _lines(
    rates: Sequence[FlowRates], lines: Sequence[tuple[str, Callable[[FlowRates], float]]]
) -> list[Line]:
    """Return lines of values; those that are zero all the time are left out, as a side that is not ours."""
    drawn = [(name, [(one.time_s, float(value(one))) for one in rates]) for name, value in lines]
    told = [(name, points) for name, points in drawn if any(value for _, value in points)] or drawn[:1]
    return [
        Line(name, [*points], place, place, is_filled=place == 0) for place, (name, points) in enumerate(told)
    ]


def _duration_s(report: FlowReport) -> float:
    return _end_s(report) if report.duration_s is None else report.duration_s


def _end_s(report: FlowReport) -> float:
    return report.rates[-1].time_s if report.rates else 0.0


def _totals(counters: FlowCounters) -> str:
    rows: list[tuple[str, ...]] = [("offered flows", count(counters.offered_flows), "")]
    if counters.missed_flows:
        rows.append(("flows not opened in time", count(counters.missed_flows), ""))
    for label, values in counters.totals():
        rows.append((label.replace("active flows", "active flows at the end"), *map(count, values)))
    return table("Totals of both sides", [text(""), number("clients"), number("servers")], rows)


def _errors(report: FlowReport) -> str:
    rows = [
        (report.meanings.get(name, name), side + "s", count(number), report.hints.get(name, ""), name)
        for side, name, number in _trouble(report)
    ]
    columns = [
        text("what was counted"),
        text("side"),
        number("how often"),
        text("what to do"),
        text("counter"),
    ]
    return table("Flows that failed, and error counters that are not zero", columns, rows)


def _ends(counters: FlowCounters) -> str:
    rows: list[tuple[str, ...]] = []
    if counters.outcomes is not None and counters.client.begun_flows + counters.server.begun_flows:
        rows = [(label, *map(count, values)) for label, values in counters.outcomes.rows()]
    return table("How flows ended", [text(""), number("clients"), number("servers")], rows)


def _times(counters: FlowCounters) -> str:
    found = {} if counters.outcomes is None else counters.outcomes.times
    rows = [
        (
            label,
            count(int(found[name]["count"])),
            *(microseconds(float(found[name][key])) for key in _TIMES.values()),
        )
        for name, label in TIMES.items()
        if name in found and was_timed(found[name])
    ]
    return table("Times of flows", [text(""), number("flows"), *map(number, _TIMES)], rows)


def _groups(report: FlowReport) -> str:
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
            ", ".join(dict.fromkeys(report.meanings.get(name, name) for _, name, _ in one.trouble()))
            or "none",
        )
        for name, one in report.groups.items()
    ]
    return table("What was counted of each group", columns, rows)


def _trouble(report: FlowReport) -> list[tuple[str, str, int]]:
    return [one for one in report.counters.trouble() if one[1] not in report.expected]


def _look_at(report: FlowReport) -> list[str]:
    found = (report.hints.get(name, "") for _, name, _ in _trouble(report))
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
