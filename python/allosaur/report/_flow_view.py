"""What a report shows of flows: flows, open flows, data and errors over time, and the totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allosaur.report._flow_counters import SIDES, FlowCounters, FlowRates
from allosaur.report._flow_outcomes import TIMES, was_timed
from allosaur.report._latency import LatencyRow, latency_headline, latency_section, times_table
from allosaur.report._model import Chart, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import count, share, short
from allosaur.report._over_time import whole
from allosaur.report._streams import StreamLatency

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


@dataclass(frozen=True)
class FlowTraffic:
    """What was measured of a run of flows."""

    counters: FlowCounters
    rates: Sequence[FlowRates]
    """Over time."""
    groups: Mapping[str, FlowCounters] = field(default_factory=dict)
    latency: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Of each port, in microseconds."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """What to do about error counters, by name."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What error counters count, in plain words, by name."""
    expected: Sequence[str] = ()
    """Ways to end that the user asked for, such as `cut_off`."""
    duration_s: float | None = None
    """How long flows were opened; without it, until the last sample."""


def flow_sections(traffic: FlowTraffic) -> list[Section]:
    """Return the charts and tables."""
    counters = traffic.counters
    data = [_data_chart(traffic, sender, receiver) for sender, receiver in (SIDES, SIDES[::-1])]
    charts = [_flows_chart(traffic), _open_chart(traffic), *data, _errors_chart(traffic)]
    return [
        Section("Flows over time", charts),
        Section("How flows ended", tables=[_ends(counters)], note=_NOTE_ENDS),
        Section("Errors", tables=[_errors(traffic)]),
        Section("Times of flows", tables=[_times(counters)], note=_NOTE_TIMES),
        latency_section("Latency of echo requests", "echo", _latency_rows(traffic.latency)),
        Section("Totals of flows", tables=[_totals(counters)], note=_NOTE),
        Section("Template groups", tables=[_groups(traffic)]),
    ]


def flow_headlines(traffic: FlowTraffic) -> list[Headline]:
    """Return the numbers that stand first."""
    counters = traffic.counters
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
    duration_s = _duration_s(traffic)
    if duration_s:
        both = 8 * (counters.client.tx_data_bytes + counters.server.tx_data_bytes) / duration_s
        note = f"{short(both, 'bps')} of data"
        found.append(Headline("Flows a second, average", short(connected / duration_s), note))
    return found + latency_headline(_latency_rows(traffic.latency))


def _flows_chart(traffic: FlowTraffic) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("offered", lambda one: one.offered_fps),
        ("opened", lambda one: one.begun_fps),
        ("connected, clients", lambda one: one.client.connected_fps),
        ("connected, servers", lambda one: one.server.connected_fps),
    ]
    counters, duration_s = traffic.counters, _duration_s(traffic)
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
    points = whole(traffic.rates, traffic.duration_s)
    return _chart(traffic, "flows", "Flows", "per second", sentence, _series(points, lines))


def _open_chart(traffic: FlowTraffic) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("active", lambda one: one.active_flows),
        ("established", lambda one: one.established_flows),
    ]
    top = max((one.active_flows for one in traffic.rates), default=0)
    sentence = (
        f"Up to {top:,} flows were open at a time. Active ones are opened, established ones are answered."
    )
    drawn = _series(_from_zero(traffic.rates), lines)
    return _chart(traffic, "open", "Open flows", "at a time", sentence, drawn, is_whole=True)


def _data_chart(traffic: FlowTraffic, sender: str, receiver: str) -> Chart:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        (f"{sender}s sent", lambda one: one.side(sender).tx_data_bps),
        (f"{receiver}s received", lambda one: one.side(receiver).rx_data_bps),
    ]
    duration_s = _duration_s(traffic)
    average = 8 * traffic.counters.side(sender).tx_data_bytes / duration_s if duration_s else 0.0
    sentence = f"The {sender}s' applications sent {short(average, 'bps')} on average."
    # Data go on until the last flow is closed, so only the first interval is not whole.
    title, drawn = f"Data of {sender}s", _series(traffic.rates[1:], lines)
    return _chart(traffic, f"data-{sender}", title, "bits per second", sentence, drawn)


def _errors_chart(traffic: FlowTraffic) -> Chart:
    """Return how often something went wrong; a chart without points when nothing did."""
    errors = traffic.counters.error_events
    failed = max((one.failed_flows for one in traffic.rates), default=0)
    rates = _from_zero(traffic.rates) if errors or failed else []
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("errors", lambda one: one.errors),
        ("failed flows", lambda one: one.failed_flows),
    ]
    sentence = f"{failed:,} flows failed, {errors:,} errors were counted; the tables below have each kind."
    drawn = _series(rates, lines)
    return _chart(traffic, "errors", "Errors so far", "counted", sentence, drawn, is_whole=True)


def _from_zero(rates: Sequence[FlowRates]) -> list[FlowRates]:
    """Return the rates, and before them the start, at which nothing was there yet."""
    return [FlowRates(0.0), *rates] if rates else []


def _chart(
    traffic: FlowTraffic,
    name: str,
    title: str,
    unit: str,
    sentence: str,
    series: Sequence[Series],
    is_whole: bool = False,
) -> Chart:
    end_s = _end_s(traffic)
    return Chart(title, unit, series, sentence=sentence, name=name, end_s=end_s, is_whole=is_whole)


def _series(
    rates: Sequence[FlowRates], lines: Sequence[tuple[str, Callable[[FlowRates], float]]]
) -> list[Series]:
    """Return lines of values; those that are zero all the time are left out, as a side that is not ours."""
    drawn = [(name, [(one.time_s, float(value(one))) for one in rates]) for name, value in lines]
    told = [(name, points) for name, points in drawn if any(value for _, value in points)] or drawn[:1]
    return [Series(name, [*points], is_filled=place == 0) for place, (name, points) in enumerate(told)]


def _duration_s(traffic: FlowTraffic) -> float:
    return _end_s(traffic) if traffic.duration_s is None else traffic.duration_s


def _end_s(traffic: FlowTraffic) -> float:
    return traffic.rates[-1].time_s if traffic.rates else 0.0


def _totals(counters: FlowCounters) -> Table:
    rows: list[tuple[str, ...]] = [("offered flows", count(counters.offered_flows), "")]
    if counters.missed_flows:
        rows.append(("flows not opened in time", count(counters.missed_flows), ""))
    for label, values in counters.totals():
        rows.append((label.replace("active flows", "active flows at the end"), *map(count, values)))
    return Table("Totals of both sides", [text(""), number("clients"), number("servers")], rows)


def _errors(traffic: FlowTraffic) -> Table:
    rows = [
        (traffic.meanings.get(name, name), side + "s", count(number), traffic.hints.get(name, ""), name)
        for side, name, number in _trouble(traffic)
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
    found = {} if counters.outcomes is None else counters.outcomes.times
    rows = [
        (label, int(found[name]["count"]), found[name])
        for name, label in TIMES.items()
        if name in found and was_timed(found[name])
    ]
    return times_table("Times of flows", "flows", rows)


def _groups(traffic: FlowTraffic) -> Table:
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
            ", ".join(dict.fromkeys(traffic.meanings.get(name, name) for _, name, _ in one.trouble()))
            or "none",
        )
        for name, one in traffic.groups.items()
    ]
    return Table("What was counted of each group", columns, rows)


def _trouble(traffic: FlowTraffic) -> list[tuple[str, str, int]]:
    return [one for one in traffic.counters.trouble() if one[1] not in traffic.expected]


def flow_hints(traffic: FlowTraffic) -> list[str]:
    """Return what to do about the first kinds of trouble."""
    found = (traffic.hints.get(name, "") for _, name, _ in _trouble(traffic))
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
