"""What the report of a run shows of its streams: headline numbers, charts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allosaur.report._counters import PortCounters
from allosaur.report._latency import LatencyRow, latency_headline, latency_section
from allosaur.report._model import Chart, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import NOT_COUNTED, count, share, short
from allosaur.report._scale import named_axis
from allosaur.report._streams import StreamCounters
from allosaur.run._result import missed_headline
from allosaur.run.streams import _over_time
from allosaur.run.streams._counts import StreamOutcome

_ROWS_MAX = 100
"""Rows of a table of streams. Those that lost most come first."""
_OF_OTHERS = "Packets of others: what arrived beside the packets of this run."
_NOT_TAKEN = "Not taken in time: packets that arrived faster than this machine takes them."
_QUEUE_FULL = "Queue full: how often a port had no room for a packet; it was sent later, or not in time."
_LOST_AT_PORT = (
    "Lost at the port: packets that could not leave it, because its interface or the other end refused them, "
    "and that it does not count as sent."
)


def sections(outcome: StreamOutcome) -> list[Section]:
    """Return the charts and tables."""
    charts, note = _over_time.charts(outcome.rates, outcome.directions, outcome.elapsed_s)
    notes = [note] if note else []
    if any(outcome.other_packets.values()):
        notes.append("The charts are of the ports' counters: packets of others count, too.")
    totals = [_directions_table(outcome), _ports_table(outcome)]
    return [
        Section("Over time", charts, note=" ".join(notes)),
        latency_section("Latency of streams", "streams", _latency_rows(outcome.streams)),
        _streams_section(outcome.streams),
        Section("Totals", tables=totals, note=" ".join(_notes(outcome))),
        _sizes_section(outcome.total),
    ]


def headlines(outcome: StreamOutcome) -> Iterator[Headline]:
    """Return the numbers that stand first."""
    directions, summed = outcome.directions, outcome.total
    sent = sum(one.sent_packets for one in directions)
    lost, duration_s = outcome.lost_packets, outcome.elapsed_s
    yield Headline("Packets sent", count(sent))
    if lost is None:
        yield Headline("Packets received", NOT_COUNTED, "no port receives them")
    else:
        yield Headline("Packets received", count(sum(one.received_packets for one in directions)))
        note = f"{share(lost, sent)} of those sent" if lost else "none at all"
        yield Headline("Packets lost", count(lost), note, lost > 0)
    if twice := outcome.duplicate_packets:
        yield Headline("Received twice", count(twice), "more than were sent", is_bad=True)
    if summed.missed_packets is not None:
        yield missed_headline("Not sent in time", summed.missed_packets, summed.offered_packets)
    if duration_s:
        bits = short(8 * summed.tx_bytes / duration_s, "bps")
        yield Headline("Rate sent, average", short(sent / duration_s, "pps"), bits)
    yield from latency_headline(_latency_rows(outcome.streams))


def _directions_table(outcome: StreamOutcome) -> Table:
    titles = ("offered", "sent", "received", "lost", "lost", "not sent in time", "twice")
    columns = [text("from"), text("received by"), *map(number, titles), text("counted by")]
    some_lost = any(one.lost_packets for one in outcome.directions)
    rows = []
    for one in outcome.directions:
        counters, lost = outcome.counters.get(one.port), one.lost_packets
        missed = None if counters is None else counters.missed_packets
        rows.append(
            (
                f"port {one.port}",
                ", ".join(f"port {port}" for port in sorted(one.received_by_port)) or "no port",
                count(one.sent_packets + missed) if missed else "",
                count(one.sent_packets),
                count(one.received_packets) if lost is not None else NOT_COUNTED,
                count(lost),
                share(lost, one.sent_packets) if lost is not None and some_lost else "",
                _some(missed),
                _some(one.duplicate_packets),
                "the ports' counters" if one.ungrouped else "",
            )
        )
    return Table("Packets from port to port", columns, rows)


def _ports_table(outcome: StreamOutcome) -> Table:
    titles = ("sent", "bytes sent", "received", "bytes received", "packets of others", "not taken in time")
    columns = map(number, (*titles, "queue full", "lost at the port", "lost by the link"))
    rows = [
        (
            f"port {port}",
            *map(count, (one.tx_packets, one.tx_bytes, one.rx_packets, one.rx_bytes)),
            *map(_some, (outcome.other_packets.get(port), one.rx_overflow_packets)),
            count(one.queue_full),
            *map(_some, (one.tx_lost_packets, one.rx_lost_packets)),
        )
        for port, one in sorted(outcome.counters.items())
    ]
    return Table("What each port counted (bytes with frame check sequence)", [text("port"), *columns], rows)


def _some(value: int | None) -> str:
    """Return a count, and nothing instead of a zero."""
    return count(value) if value else ""


def _notes(outcome: StreamOutcome) -> Iterator[str]:
    """Return what is to be said below the totals."""
    counters = outcome.counters.values()
    if outcome.counted_by == "ports":
        yield "Counted by the ports' counters: packets of other programs count, too."
    if any(outcome.other_packets.values()):
        yield _OF_OTHERS
    if any(one.rx_overflow_packets for one in counters):
        yield _NOT_TAKEN
    if any(one.queue_full for one in counters):
        yield _QUEUE_FULL
    if any(one.tx_lost_packets for one in counters):
        yield _LOST_AT_PORT


def _latency_rows(streams: Sequence[StreamCounters]) -> list[LatencyRow]:
    return [
        LatencyRow(f"{one.name}, port {one.port}", one.rx_packets, one.latency)
        for one in streams
        if one.latency is not None and one.rx_packets
    ]


def _streams_section(streams: Sequence[StreamCounters]) -> Section:
    titles = ("sent", "received", "lost", "lost", "not sent in time", "twice", "out of order")
    some_lost = any(one.lost_packets for one in streams)
    shown, note = list(streams), ""
    if len(streams) > _ROWS_MAX:
        shown = sorted(streams, key=lambda one: -one.lost_percent)[:_ROWS_MAX]
        note = f"{len(shown)} of {len(streams):,} rows: those that lost most."
    rows = [
        (
            one.name,
            f"port {one.port}",
            *map(count, (one.tx_packets, one.rx_packets, one.lost_packets)),
            share(one.lost_packets, one.tx_packets) if some_lost else "",
            *map(_some, (one.missed_packets, one.duplicate_packets, one.out_of_order_packets)),
        )
        for one in shown
    ]
    columns = [text("stream"), text("from"), *map(number, titles)]
    return Section("Streams", tables=[Table("What was counted of each stream", columns, rows)], note=note)


def _sizes_section(summed: PortCounters) -> Section:
    """Return the packets by frame size; nothing when all are of one class, which says nothing new."""
    title = "Frame sizes"
    sent, received = summed.tx_by_size or {}, summed.rx_by_size or {}
    classes = [name for name in {**sent, **received} if sent.get(name) or received.get(name)]
    if len(classes) < 2:
        return Section(title)
    classes.sort(key=lambda name: int(name.split("-")[0]))
    all_sent = sum(sent.values())
    columns = [text("bytes"), *map(number, ("sent", "received", "of all sent"))]
    names = [name.rstrip("-") + (" and more" if name.endswith("-") else "") for name in classes]
    rows = [
        (label, *(count(of.get(name, 0)) for of in (sent, received)), share(sent.get(name, 0), all_sent))
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
        named_axis(names),
    )
    return Section(title, [chart], [Table(caption, columns, rows)])
