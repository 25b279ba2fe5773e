"""The HTML report of streams: what ports sent and received, as headline numbers, charts and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allosaur.report import _over_time
from allosaur.report._chart import charts_html
from allosaur.report._counters import PortCounters, total
from allosaur.report._latency import LatencyRow, latency_headline, latency_section
from allosaur.report._numbers import NOT_COUNTED, count, share, short
from allosaur.report._page import Check, Headline, Page, Section, write_page
from allosaur.report._sampling import PortRates
from allosaur.report._streams import Direction, StreamCounters, lost_total
from allosaur.report._table import Column, bar, number, table, text

_ROWS_MAX = 100
"""Rows of a table of streams. Those that lost most come first."""


@dataclass(frozen=True)
class Report:
    """All that a report shows."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where: shown as a list of names and values."""
    counters: Mapping[int, PortCounters]
    """Of each port, over the whole run."""
    rates: Mapping[int, Sequence[PortRates]]
    """Of each port, over time."""
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    """Commands, one a line."""
    profile: str = ""
    """The profile's source."""
    notes: Sequence[str] = field(default_factory=tuple)
    directions: Sequence[Direction] = ()
    """What each port sent, and what of it was received: the run's own packets."""
    streams: Sequence[StreamCounters] = ()
    """What was counted and measured of single streams."""
    other_packets: Mapping[int, int | None] = field(default_factory=dict)
    """What each port received beside the run's own packets; `None` where nobody can tell them apart."""
    hints: Sequence[str] = ()
    """What to look at when packets were lost."""
    reasons: Sequence[str] = ()
    """Why it failed, one sentence each."""
    duration_s: float | None = None
    """How long the traffic was sent; without it, until the last sample."""


def write_report(
    path: Path, report: Report, more: Sequence[Section] = (), headlines: Sequence[Headline] = ()
) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written.

    `more` sections and `headlines` come after its own.
    """
    page = Page(
        report.title,
        report.verdict,
        report.ok,
        report.facts,
        [*_sections(report), *more],
        [*_headlines(report), *headlines],
        report.reasons,
        report.hints,
        report.checks,
        report.reproduce,
        report.profile,
        report.notes,
    )
    write_page(path, page)


def _sections(report: Report) -> list[Section]:
    directions = _directions(report)
    charts = _over_time.charts(report.rates, directions, report.duration_s)
    parts = [charts_html(charts.shown)]
    return [
        Section("Over time", parts, note=charts.note),
        latency_section("Latency of streams", "streams", _latency_rows(report.streams)),
        _streams_section(report.streams),
        Section(
            "Totals", [_directions_table(report, directions), _ports_table(report)], note=_totals_note(report)
        ),
        Section("Frame sizes", [_sizes_table(report.counters)]),
    ]


def _headlines(report: Report) -> list[Headline]:
    directions, summed = _directions(report), total(report.counters.values())
    sent = sum(one.sent_packets for one in directions)
    lost, duration_s = lost_total(directions), _duration_s(report)
    found = [Headline("Packets sent", count(sent))]
    if lost is None:
        found.append(Headline("Packets received", NOT_COUNTED, "no port receives them"))
    else:
        received = sum(one.received_packets for one in directions)
        found += [
            Headline("Packets received", count(received)),
            Headline(
                "Packets lost",
                count(lost),
                f"{share(lost, sent)} of those sent" if lost else "none at all",
                lost > 0,
            ),
        ]
    twice = sum(one.duplicate_packets for one in directions)
    if twice:
        found.append(Headline("Received twice", count(twice), "more than were sent", is_bad=True))
    if summed.missed_packets is not None:
        missed = summed.missed_packets
        note = f"{share(missed, summed.offered_packets)} of the load" if missed else "the load was reached"
        found.append(Headline("Not sent in time", count(missed), note, missed > 0))
    if duration_s:
        bits = short(8 * summed.tx_bytes / duration_s, "bps")
        found.append(Headline("Rate sent, average", short(sent / duration_s, "pps"), bits))
    return found + latency_headline(_latency_rows(report.streams))


def _directions(report: Report) -> Sequence[Direction]:
    """Return the directions; of a report without them, what ports in pairs counted."""
    if report.directions:
        return report.directions
    return [
        _pair(port, one, report.counters.get(port ^ 1))
        for port, one in sorted(report.counters.items())
        if one.tx_packets
    ]


def _pair(port: int, sender: PortCounters, receiver: PortCounters | None) -> Direction:
    if receiver is None:
        return Direction(port, sender.tx_packets, 0)
    received = receiver.rx_packets
    lost = max(sender.written_packets - received, 0)
    return Direction(port, sender.written_packets, received, {port ^ 1: received}, lost)


def _duration_s(report: Report) -> float:
    if report.duration_s is not None:
        return report.duration_s
    return _over_time.last_s(report.rates)


def _directions_table(report: Report, directions: Sequence[Direction]) -> str:
    columns = [
        text("from"),
        text("received by"),
        *map(number, ("offered", "sent", "received", "lost", "lost", "not sent in time", "twice")),
        text("counted by"),
    ]
    some_lost = any(one.lost_packets for one in directions)
    rows = []
    for one in directions:
        counters = report.counters.get(one.port)
        missed = None if counters is None else counters.missed_packets
        lost = one.lost_packets
        rows.append(
            (
                f"port {one.port}",
                ", ".join(f"port {port}" for port in sorted(one.received_by_port)) or "no port",
                count(one.sent_packets + (missed or 0)) if missed else "",
                count(one.sent_packets),
                count(one.received_packets) if lost is not None else NOT_COUNTED,
                count(lost),
                share(lost, one.sent_packets) if lost is not None and some_lost else "",
                count(missed) if missed else "",
                count(one.duplicate_packets) if one.duplicate_packets else "",
                "the ports' counters" if report.directions and one.ungrouped else "",
            )
        )
    return table("Packets from port to port", columns, rows)


def _ports_table(report: Report) -> str:
    header = (
        "sent",
        "bytes sent",
        "received",
        "bytes received",
        "packets of others",
        "not taken in time",
        "queue full",
        "lost at the port",
        "lost by the link",
    )
    rows = []
    for port, one in sorted(report.counters.items()):
        others = report.other_packets.get(port)
        rows.append(
            (
                f"port {port}",
                *map(count, (one.tx_packets, one.tx_bytes, one.rx_packets, one.rx_bytes)),
                count(others) if others else "",
                count(one.rx_overflow_packets) if one.rx_overflow_packets else "",
                count(one.queue_full),
                count(one.tx_lost_packets) if one.tx_lost_packets else "",
                count(one.rx_lost_packets) if one.rx_lost_packets else "",
            )
        )
    return table(
        "What each port counted (bytes with frame check sequence)", [text("port"), *map(number, header)], rows
    )


def _totals_note(report: Report) -> str:
    said = []
    if any(one.ungrouped for one in report.directions):
        said.append("Counted by the ports' counters: packets of other programs count, too.")
    if any(report.other_packets.values()):
        said.append("Packets of others: what arrived beside the packets of this run.")
    if any(one.rx_overflow_packets for one in report.counters.values()):
        said.append("Not taken in time: packets that arrived faster than this machine takes them.")
    if any(one.queue_full for one in report.counters.values()):
        said.append(
            "Queue full: how often a port had no room for a packet; it was sent later, or not in time."
        )
    if any(one.tx_lost_packets for one in report.counters.values()):
        said.append(
            "Lost at the port: packets that could not leave it, because its interface or the other end "
            "refused them, and that it does not count as sent."
        )
    return " ".join(said)


def _latency_rows(streams: Sequence[StreamCounters]) -> list[LatencyRow]:
    return [
        LatencyRow(f"{one.name}, port {one.port}", one.rx_packets, one.latency)
        for one in streams
        if one.latency is not None and one.rx_packets
    ]


def _streams_section(streams: Sequence[StreamCounters]) -> Section:
    columns = [
        text("stream"),
        text("from"),
        *map(number, ("sent", "received", "lost", "lost", "not sent in time", "twice", "out of order")),
    ]
    some_lost = any(one.lost_packets for one in streams)
    shown = sorted(streams, key=lambda one: -one.lost_percent)[:_ROWS_MAX]
    if len(streams) <= _ROWS_MAX:
        shown = list(streams)
    rows = [
        (
            one.name,
            f"port {one.port}",
            count(one.tx_packets),
            count(one.rx_packets),
            count(one.lost_packets),
            share(one.lost_packets, one.tx_packets) if some_lost else "",
            count(one.missed_packets) if one.missed_packets else "",
            count(one.duplicate_packets) if one.duplicate_packets else "",
            count(one.out_of_order_packets) if one.out_of_order_packets else "",
        )
        for one in shown
    ]
    note = (
        f"{len(shown)} of {len(streams):,} rows: those that lost most." if len(shown) < len(streams) else ""
    )
    return Section("Streams", [table("What was counted of each stream", columns, rows)], note=note)


def _sizes_table(counters: Mapping[int, PortCounters]) -> str:
    """Return the packets by frame size; nothing when all are of one class, which says nothing new."""
    summed = total(counters.values())
    sent, received = summed.tx_by_size or {}, summed.rx_by_size or {}
    classes = [name for name in {**sent, **received} if sent.get(name) or received.get(name)]
    if len(classes) < 2:
        return ""
    all_sent = sum(sent.values())
    columns: list[Column] = [text("bytes"), *map(number, ("sent", "received", "of all sent")), bar()]
    rows = [
        (
            name.rstrip("-") + (" and more" if name.endswith("-") else ""),
            count(sent.get(name, 0)),
            count(received.get(name, 0)),
            share(sent.get(name, 0), all_sent),
            str(sent.get(name, 0) / max(all_sent, 1)),
        )
        for name in sorted(classes, key=lambda name: int(name.split("-")[0]))
    ]
    return table("Packets of all ports, by frame size with frame check sequence", columns, rows)
