"""What a report shows of streams: what ports sent and received, as headline numbers, charts and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allosaur.report import _over_time, _scale
from allosaur.report._counters import PortCounters, PortRates, total
from allosaur.report._latency import LatencyRow, latency_headline, latency_section
from allosaur.report._model import Chart, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import NOT_COUNTED, count, share, short
from allosaur.report._streams import Direction, StreamCounters, lost_total

_ROWS_MAX = 100
"""Rows of a table of streams. Those that lost most come first."""


@dataclass(frozen=True)
class StreamTraffic:
    """What was measured of a run of streams."""

    counters: Mapping[int, PortCounters]
    """Of each port, over the whole run."""
    rates: Mapping[int, Sequence[PortRates]]
    """Of each port, over time."""
    directions: Sequence[Direction] = ()
    """What each port sent, and what of it was received: the run's own packets."""
    streams: Sequence[StreamCounters] = ()
    """What was counted and measured of single streams."""
    other_packets: Mapping[int, int | None] = field(default_factory=dict)
    """What each port received beside the run's own packets; `None` where nobody can tell them apart."""
    duration_s: float | None = None
    """How long the traffic was sent; without it, until the last sample."""


def stream_sections(traffic: StreamTraffic) -> list[Section]:
    """Return the charts and tables."""
    directions = _directions(traffic)
    charts = _over_time.charts(traffic.rates, directions, traffic.duration_s)
    totals = [_directions_table(traffic, directions), _ports_table(traffic)]
    return [
        Section("Over time", charts.shown, note=charts.note),
        latency_section("Latency of streams", "streams", _latency_rows(traffic.streams)),
        _streams_section(traffic.streams),
        Section("Totals", tables=totals, note=_totals_note(traffic)),
        _sizes_section(traffic.counters),
    ]


def stream_headlines(traffic: StreamTraffic) -> list[Headline]:
    """Return the numbers that stand first."""
    directions, summed = _directions(traffic), total(traffic.counters.values())
    sent = sum(one.sent_packets for one in directions)
    lost, duration_s = lost_total(directions), _duration_s(traffic)
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
    return found + latency_headline(_latency_rows(traffic.streams))


def _directions(traffic: StreamTraffic) -> Sequence[Direction]:
    """Return the directions; without any, what ports in pairs counted."""
    if traffic.directions:
        return traffic.directions
    return [
        _pair(port, one, traffic.counters.get(port ^ 1))
        for port, one in sorted(traffic.counters.items())
        if one.tx_packets
    ]


def _pair(port: int, sender: PortCounters, receiver: PortCounters | None) -> Direction:
    if receiver is None:
        return Direction(port, sender.tx_packets, 0)
    received = receiver.rx_packets
    lost = max(sender.written_packets - received, 0)
    return Direction(port, sender.written_packets, received, {port ^ 1: received}, lost)


def _duration_s(traffic: StreamTraffic) -> float:
    if traffic.duration_s is not None:
        return traffic.duration_s
    return _over_time.last_s(traffic.rates)


def _directions_table(traffic: StreamTraffic, directions: Sequence[Direction]) -> Table:
    columns = [
        text("from"),
        text("received by"),
        *map(number, ("offered", "sent", "received", "lost", "lost", "not sent in time", "twice")),
        text("counted by"),
    ]
    some_lost = any(one.lost_packets for one in directions)
    rows = []
    for one in directions:
        counters = traffic.counters.get(one.port)
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
                "the ports' counters" if traffic.directions and one.ungrouped else "",
            )
        )
    return Table("Packets from port to port", columns, rows)


def _ports_table(traffic: StreamTraffic) -> Table:
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
    for port, one in sorted(traffic.counters.items()):
        others = traffic.other_packets.get(port)
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
    return Table(
        "What each port counted (bytes with frame check sequence)", [text("port"), *map(number, header)], rows
    )


def _totals_note(traffic: StreamTraffic) -> str:
    said = []
    if any(one.ungrouped for one in traffic.directions):
        said.append("Counted by the ports' counters: packets of other programs count, too.")
    if any(traffic.other_packets.values()):
        said.append("Packets of others: what arrived beside the packets of this run.")
    if any(one.rx_overflow_packets for one in traffic.counters.values()):
        said.append("Not taken in time: packets that arrived faster than this machine takes them.")
    if any(one.queue_full for one in traffic.counters.values()):
        said.append(
            "Queue full: how often a port had no room for a packet; it was sent later, or not in time."
        )
    if any(one.tx_lost_packets for one in traffic.counters.values()):
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
    return Section("Streams", tables=[Table("What was counted of each stream", columns, rows)], note=note)


def _sizes_section(counters: Mapping[int, PortCounters]) -> Section:
    """Return the packets by frame size; nothing when all are of one class, which says nothing new."""
    title, summed = "Frame sizes", total(counters.values())
    sent, received = summed.tx_by_size or {}, summed.rx_by_size or {}
    classes = [name for name in {**sent, **received} if sent.get(name) or received.get(name)]
    if len(classes) < 2:
        return Section(title)
    classes.sort(key=lambda name: int(name.split("-")[0]))
    all_sent = sum(sent.values())
    columns = [text("bytes"), *map(number, ("sent", "received", "of all sent"))]
    names = [name.rstrip("-") + (" and more" if name.endswith("-") else "") for name in classes]
    rows = [
        (
            label,
            count(sent.get(name, 0)),
            count(received.get(name, 0)),
            share(sent.get(name, 0), all_sent),
        )
        for label, name in zip(names, classes, strict=True)
    ]
    caption = "Packets of all ports, by frame size with frame check sequence"
    bars = [
        Series(label, [(place + 0.5, float(of.get(name, 0))) for place, name in enumerate(classes)])
        for label, of in (("sent", sent), ("received", received))
    ]
    most = max(range(len(classes)), key=lambda place: sent.get(classes[place], 0))
    chart = Chart(
        *("Packets by frame size", "packets", bars, "bars"),
        f"Most packets sent, {share(sent.get(classes[most], 0), all_sent)}, have {names[most]} bytes.",
        _scale.named_axis(names),
    )
    return Section(title, [chart], [Table(caption, columns, rows)])
