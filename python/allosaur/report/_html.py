"""The HTML report of streams: what ports sent and received, as plots and tables.

What lives here: the data that such a report shows, and its sections. What does not: the page around them
(`_page`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allosaur.report._counters import PortCounters
from allosaur.report._page import COLOURS, Check, Page, Section, layout, line, number, table, write_page
from allosaur.report._sampling import PortRates
from allosaur.report._streams import Direction, StreamCounters


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


def write_report(path: Path, report: Report, more: Sequence[Section] = ()) -> None:
    """Write the report to `path`, replacing what is there, with `more` sections after its own.

    Raises `OSError` when it cannot be written.
    """
    sizes = _sizes_table(report.counters)
    sections = [
        Section("Rate over time", "rate", _rate_sentence(report.rates), _rate_figure(report.rates)),
        Section(
            "Packet sizes",
            "sizes",
            _size_sentence(report.counters),
            _size_figure(report.counters),
            [sizes] if sizes else [],
        ),
        Section("Totals", tables=[_totals_table(report.counters)]),
        *more,
    ]
    page = Page(
        report.title,
        report.verdict,
        report.ok,
        report.facts,
        sections,
        report.checks,
        report.reproduce,
        report.profile,
        report.notes,
    )
    write_page(path, page)


def _rate_figure(rates: Mapping[int, Sequence[PortRates]]) -> dict[str, Any]:
    traces = []
    for index, (port, series) in enumerate(sorted(rates.items())):
        for dash, (word, value) in enumerate((("sent", "tx_pps"), ("received", "rx_pps"))):
            times = [point.time_s for point in series]
            packets = [getattr(point, value) for point in series]
            # A port is a colour; sent and received are different dashes.
            traces.append(line(f"port {port} {word}", times, packets, index, dash))
    return {"data": traces, "layout": layout("seconds since the start", "packets per second")}


def _size_figure(counters: Mapping[int, PortCounters]) -> dict[str, Any]:
    traces = []
    classes = _size_classes(counters)
    for index, (port, one) in enumerate(sorted(counters.items())):
        colour = COLOURS[index % len(COLOURS)]
        for word, sizes, shape in (("sent", one.tx_by_size, ""), ("received", one.rx_by_size, "/")):
            if sizes is None:
                continue
            traces.append(
                {
                    "type": "bar",
                    "name": f"port {port} {word}",
                    "x": classes,
                    "y": [sizes.get(name, 0) for name in classes],
                    "marker": {"color": colour, "pattern": {"shape": shape}},
                }
            )
    shape_of = layout("frame size in bytes, with FCS", "packets")
    return {
        "data": traces,
        "layout": {**shape_of, "barmode": "group", "xaxis": {**shape_of["xaxis"], "type": "category"}},
    }


def _size_classes(counters: Mapping[int, PortCounters]) -> list[str]:
    seen: dict[str, None] = {}
    for one in counters.values():
        for sizes in (one.tx_by_size, one.rx_by_size):
            seen.update(dict.fromkeys(name for name, packets in (sizes or {}).items() if packets))
    return sorted(seen, key=lambda name: int(name.split("-")[0]))


def _rate_sentence(rates: Mapping[int, Sequence[PortRates]]) -> str:
    parts = []
    for port, series in sorted(rates.items()):
        if series:
            sent, received = max(p.tx_pps for p in series), max(p.rx_pps for p in series)
            parts.append(
                f"port {port} sent up to {sent:,.0f} and received up to {received:,.0f} packets per second"
            )
    return "Rate over time: " + ("; ".join(parts) or "nothing was measured") + "."


def _size_sentence(counters: Mapping[int, PortCounters]) -> str:
    if not _size_classes(counters):
        return "Packet sizes: this server does not count them."
    return "Packets by frame size, sent beside received. The table below has the same numbers."


def _totals_table(counters: Mapping[int, PortCounters]) -> str:
    header = ("port", "offered", "sent", "bytes sent", "received", "bytes received", "missed", "queue full")
    rows = [
        (
            str(port),
            *(
                number(value)
                for value in (
                    one.offered_packets,
                    one.tx_packets,
                    one.tx_bytes,
                    one.rx_packets,
                    one.rx_bytes,
                    one.missed_packets,
                    one.queue_full,
                )
            ),
        )
        for port, one in sorted(counters.items())
    ]
    return table("Totals (packets; bytes with FCS)", header, rows)


def _sizes_table(counters: Mapping[int, PortCounters]) -> str:
    classes = _size_classes(counters)
    if not classes:
        return ""
    rows = []
    for port, one in sorted(counters.items()):
        for word, sizes in (("sent", one.tx_by_size), ("received", one.rx_by_size)):
            rows.append((f"{port} {word}", *(number((sizes or {}).get(name, 0)) for name in classes)))
    return table("Packets by frame size in bytes", ("port", *classes), rows)
