"""`allosaur stats`: what traffic counts, while it runs and after it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from allosaur.cli import _answer, _format
from allosaur.cli._access import check_ports, refuse_options, remote_client_of_any_mode
from allosaur.cli._answer import Answer
from allosaur.cli._errors import explained
from allosaur.cli.flows import _commands
from allosaur.report import PortCounters

if TYPE_CHECKING:
    from allosaur import STLClient

_COUNTERS = (
    ("sent packets", "tx_packets"),
    ("sent bytes", "tx_bytes"),
    ("received packets", "rx_packets"),
    ("received bytes", "rx_bytes"),
    ("missed packets", "missed_packets"),
)
_RATES = (
    ("sending", "tx_pps", "pps"),
    ("", "tx_bps", "bps"),
    ("receiving", "rx_pps", "pps"),
    ("", "rx_bps", "bps"),
)
_NO_GROUPS = "No packet group is counted: streams need flow_stats."
_NO_LATENCY = "No latency is measured: streams need flow_stats=STLFlowLatencyStats(...)."


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur stats` says; return the exit code."""
    with remote_client_of_any_mode(options) as client:
        if client.get_mode() == "ASTF":
            refuse_options(options, "streams", "ports")
            return _answer.give(options, _commands.stats(client, options))
        refuse_options(options, "stateful profiles", "pid", "counters", "flows")
        ports = list(client.ports) if options.ports is None else options.ports
        check_ports(client, ports)
        with explained("cannot read the counters"):
            stats: Mapping[Any, Any] = client.get_stats(ports=ports)
        return _answer.give(options, _of_streams(client, options, ports, stats))


def _of_streams(
    client: STLClient, options: argparse.Namespace, ports: list[int], stats: Mapping[Any, Any]
) -> Answer:
    counters = {port: PortCounters.from_stats(stats[port]) for port in ports}
    rows = [["state", *(_state(client, port) for port in ports)]]
    for label, name in _COUNTERS:
        rows.append([label, *(_format.count(getattr(counters[port], name)) for port in ports)])
    for label, name, unit in _RATES:
        rows.append([label, *(_format.rate(float(stats[port].get(name, 0)), unit) for port in ports)])
    parts = [_format.table(["", *(f"port {port}" for port in ports)], rows)]
    result: dict[str, Any] = {
        "ports": {
            str(port): {
                "state": _state(client, port),
                **counters[port].to_json(),
                **{name: float(stats[port].get(name, 0)) for _, name, _ in _RATES},
            }
            for port in ports
        }
    }
    if options.groups:
        result["groups"] = groups = {
            str(number): {name: one[name].get("total", 0) for name in ("tx_pkts", "rx_pkts")}
            for number, one in stats.get("flow_stats", {}).items()
            if isinstance(number, int)
        }
        parts.append(_groups(groups) if groups else _NO_GROUPS)
    if options.latency:
        result["latency"] = latency = {
            str(number): {**one["latency"], **one["err_cntrs"]}
            for number, one in stats.get("latency", {}).items()
            if isinstance(number, int)
        }
        parts.append(_latency(latency) if latency else _NO_LATENCY)
    return Answer("\n\n".join(parts), result)


def _state(client: STLClient, port: int) -> str:
    words = {"TX": "sends", "PCAP_TX": "sends a capture", "PAUSE": "paused", "STREAMS": "has streams"}
    return words.get(client.ports[port].state, "idle")


def _groups(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        [number, *(_format.count(int(one[name])) for name in ("tx_pkts", "rx_pkts"))]
        for number, one in found.items()
    ]
    return _format.table(["group", "sent", "received"], rows)


def _latency(found: Mapping[str, Mapping[str, Any]]) -> str:
    times = ("total_min", "average", "total_max", "jitter")
    rows = [
        [
            number,
            *(_format.seconds(float(one.get(name, 0)) * 1e-6) for name in times),
            _format.count(int(one.get("dropped", 0))),
        ]
        for number, one in found.items()
    ]
    return _format.table(["latency of group", "least", "average", "most", "jitter", "lost"], rows)
