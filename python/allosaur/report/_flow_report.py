"""The HTML report of stateful traffic: flows, bits and errors over time, and the totals.

What does not live here: the page around it (`_page`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allosaur.report._flow_counters import SIDES, FlowCounters
from allosaur.report._flow_sampling import FlowRates
from allosaur.report._page import Check, Page, Section, layout, line, number, table, write_page

_TIME = "seconds since the start"
_ROWS = (
    ("begun flows", "begun_flows"),
    ("connected flows", "connected_flows"),
    ("closed flows", "closed_flows"),
    ("active flows at the end", "active_flows"),
    ("data bytes sent", "tx_data_bytes"),
    ("data bytes received", "rx_data_bytes"),
    ("UDP messages sent", "tx_messages"),
    ("UDP messages received", "rx_messages"),
    ("packets sent", "tx_packets"),
    ("packets received", "rx_packets"),
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
    """What to do about counters of errors, by name."""
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    profile: str = ""


def write_flow_report(path: Path, report: FlowReport) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    notes = [
        "Offered: flows whose time had come. Missed: those of them that were not begun in time. "
        "Connected: flows of which both ends knew.",
        "Data are the bytes of applications; packets are those of the ports, whatever they carry.",
    ]
    page = Page(
        report.title,
        report.verdict,
        report.ok,
        report.facts,
        flow_sections(report),
        report.checks,
        report.reproduce,
        report.profile,
        notes,
    )
    write_page(path, page)


def flow_sections(report: FlowReport) -> list[Section]:
    """Return the sections of such a report, for a page that shows other things, too."""
    tables = [_totals(report.counters), _errors(report)]
    return [
        _flows_section(report),
        _open_section(report),
        _bits_section(report),
        Section("Totals of flows", tables=[one for one in tables if one]),
        *([Section("Template groups", tables=[_groups(report)])] if report.groups else []),
        *([Section("Latency", tables=[_latency(report)])] if report.latency else []),
    ]


def _flows_section(report: FlowReport) -> Section:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("offered", lambda one: one.offered_fps),
        ("begun", lambda one: one.begun_fps),
        ("connected, clients", lambda one: one.client.connected_fps),
        ("connected, servers", lambda one: one.server.connected_fps),
    ]
    counters, top = report.counters, max((one.client.connected_fps for one in report.rates), default=0.0)
    missed = "not counted" if counters.missed_flows is None else f"{counters.missed_flows:,} were missed"
    sentence = (
        f"Flows a second: {counters.offered_flows:,} were offered in all, "
        f"{counters.client.begun_flows:,} began, {missed}; clients connected up to {top:,.0f} a second."
    )
    return Section("Flows over time", "flows", sentence, _figure(report.rates, lines, "flows per second"))


def _open_section(report: FlowReport) -> Section:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = [
        ("active", lambda one: one.active_flows),
        ("established", lambda one: one.established_flows),
    ]
    top = max((one.active_flows for one in report.rates), default=0)
    sentence = f"Open flows: up to {top:,} at a time. Active ones have begun, established ones are answered."
    return Section("Open flows", "open", sentence, _figure(report.rates, lines, "flows"))


def _bits_section(report: FlowReport) -> Section:
    lines: list[tuple[str, Callable[[FlowRates], float]]] = []
    sentences = []
    for side in SIDES:
        for word, name in (("sent", "tx_data_bps"), ("received", "rx_data_bps")):
            lines.append(
                (f"{side}s {word}", lambda one, side=side, name=name: getattr(one.side(side), name))  # type: ignore[misc]
            )
        top = max((one.side(side).tx_data_bps for one in report.rates), default=0.0)
        sentences.append(f"{side}s sent up to {top / 1e6:,.1f} Mbps")
    sentence = f"Bits per second of data: {'; '.join(sentences)}."
    return Section("Bits over time", "bits", sentence, _figure(report.rates, lines, "bits per second"))


def _figure(
    rates: Sequence[FlowRates], lines: Sequence[tuple[str, Callable[[FlowRates], float]]], unit: str
) -> dict[str, Any]:
    times = [one.time_s for one in rates]
    traces = [
        line(name, times, [value(one) for one in rates], place, place % 2)
        for place, (name, value) in enumerate(lines)
    ]
    return {"data": traces, "layout": layout(_TIME, unit)}


def _totals(counters: FlowCounters) -> str:
    rows: list[tuple[str, ...]] = [
        ("offered flows", number(counters.offered_flows), ""),
        ("missed flows", number(counters.missed_flows), ""),
    ]
    for label, name in _ROWS:
        rows.append((label, *(number(getattr(counters.side(side), name)) for side in SIDES)))
    return table("Totals (bytes without headers; packets of the ports)", ("", "clients", "servers"), rows)


def _errors(report: FlowReport) -> str:
    rows = [
        (name, side, number(count), report.hints.get(name, ""))
        for side, name, count in report.counters.error_list()
    ]
    return table("Counters of errors", ("counter", "side", "count", "what to do"), rows) if rows else ""


def _groups(report: FlowReport) -> str:
    header = ("group", "begun", "connected", "clients sent", "servers sent", "errors")
    rows = [
        (
            name,
            number(one.client.begun_flows),
            number(one.client.connected_flows),
            f"{one.client.tx_data_bytes:,} B",
            f"{one.server.tx_data_bytes:,} B",
            ", ".join(dict.fromkeys(name for _, name, _ in one.error_list())) or "none",
        )
        for name, one in report.groups.items()
    ]
    return table("Template groups", header, rows)


def _latency(report: FlowReport) -> str:
    columns = {
        "sent": "sent",
        "received": "received",
        "least": "min_us",
        "median": "p50_us",
        "average": "average_us",
        "99 %": "p99_us",
        "most": "max_us",
        "jitter": "jitter_us",
    }
    rows = [
        (f"port {port}", *(f"{one[name]:,.0f}" if name in one else "" for name in columns.values()))
        for port, one in report.latency.items()
    ]
    return table(
        "Echo requests and their times (µs)",
        ("", *columns),
        rows,
    )
