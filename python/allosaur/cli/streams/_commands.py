"""What `allosaur start`, `stop`, `update`, `stats` and `clear` do with streams."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _answer, _format, _gateways, _profile
from allosaur.cli._access import check_ports, names, refuse_running, remote_client, take
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_USAGE, CommandError, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli.streams._ports import chosen, loaded_ports, refuse_options_of_flows, sending_ports
from allosaur.report import PortCounters

if TYPE_CHECKING:
    from allosaur import STLClient

_COUNTERS = (
    ("sent packets", "tx_packets"),
    ("sent bytes", "tx_bytes"),
    ("received packets", "rx_packets"),
    ("received bytes", "rx_bytes"),
    ("missed packets", "missed_packets"),
    ("lost at the port", "tx_lost_packets"),
)
_RATES = (
    ("sending", "tx_pps", "pps"),
    ("", "tx_bps", "bps"),
    ("receiving", "rx_pps", "pps"),
    ("", "rx_bps", "bps"),
)
_NO_GROUPS = "No packet group is counted: streams need flow_stats."
_NO_LATENCY = "No latency is measured: streams need flow_stats=STLFlowLatencyStats(...)."


def start(options: argparse.Namespace) -> Answer:
    """Start a profile, and come back."""
    refuse_options_of_flows(options)
    path = Path(options.profile)
    ports = [0] if options.ports is None else options.ports
    tunables = _profile.merged(options.tunable)
    profiles = {port: _profile.load(path, port % 2, port, tunables) for port in ports}
    with Interrupt() as interrupt, remote_client(options) as client:
        check_ports(client, ports)
        refuse_running(client, ports, options.force)
        take(client, ports, options.force)
        with explained("cannot clear the ports"):
            client.stop(ports=[f"{port}.*" for port in ports])
            client.remove_all_streams(ports=[f"{port}.*" for port in ports])
        for port, profile in profiles.items():
            with explained(f"profile {path}, port {port}", EXIT_USAGE):
                client.add_streams(profile.get_streams(), ports=[port])
        _gateways.wait(client, _gateways.of_streams(client, ports), interrupt, options.force)
        with explained("the traffic did not start", EXIT_USAGE):
            client.start(ports, options.multiplier, force=options.force, duration=options.duration)
    how_long = "until it is stopped" if options.duration == FOREVER else f"for {options.duration:g} s"
    again = _answer.where(options)
    text = (
        f"{_answer.listed(ports, 'Port')} send{'s' if len(ports) == 1 else ''}, {how_long}.\n"
        f"  allosaur stats{again}    shows what is counted\n"
        f"  allosaur stop{again}     stops it"
    )
    return Answer(
        text,
        {
            "profile": options.profile,
            "ports": ports,
            "multiplier": options.multiplier,
            "duration_asked_s": None if options.duration == FOREVER else options.duration,
        },
    )


def stop(client: STLClient, options: argparse.Namespace) -> Answer:
    """Stop what sends."""
    running = chosen(client, options, sending_ports)
    cleared = chosen(client, options, loaded_ports) if options.clear else []
    both = sorted({*running, *cleared})
    if both:
        take(client, both, options.force)
    if running:
        with explained("cannot stop the traffic"):
            client.stop(ports=[f"{port}.*" for port in running])
    if cleared:
        with explained("cannot remove the streams"):
            client.remove_all_streams(ports=[f"{port}.*" for port in cleared])
    text = f"Stopped {_answer.listed(running, 'port')}." if running else "Nothing ran."
    if options.clear:
        text += f" Removed the streams of {_answer.listed(cleared, 'port')}." if cleared else ""
    return Answer(text, {"stopped": running, "cleared": cleared})


def update(client: STLClient, options: argparse.Namespace) -> Answer:
    """Change the rate of what sends."""
    running = chosen(client, options, sending_ports)
    if not running:
        raise CommandError("nothing runs; start a profile with `allosaur start PROFILE`")
    take(client, running, options.force)
    with explained("cannot change the rate", EXIT_USAGE):
        client.update(ports=running, mult=options.multiplier, force=options.force)
    word = _answer.listed(running, "Port")
    return Answer(
        f"{word}: now at {options.multiplier}.", {"updated": running, "multiplier": options.multiplier}
    )


def clear(client: STLClient, options: argparse.Namespace) -> Answer:
    """Take streams off the server."""
    running = chosen(client, options, sending_ports)
    if running:
        raise CommandError(f"port {names(running)} sends; stop it first: `allosaur stop --clear`")
    cleared = chosen(client, options, loaded_ports)
    if cleared:
        take(client, cleared, options.force)
        with explained("cannot remove the streams"):
            client.remove_all_streams(ports=[f"{port}.*" for port in cleared])
    text = f"Removed the streams of {_answer.listed(cleared, 'port')}." if cleared else "No port has streams."
    return Answer(text, {"cleared": cleared})


def stats(client: STLClient, options: argparse.Namespace) -> Answer:
    """Tell what ports count."""
    ports = list(client.ports) if options.ports is None else options.ports
    check_ports(client, ports)
    with explained("cannot read the counters"):
        found: Mapping[Any, Any] = client.get_stats(ports=ports, only_given=True)
    counters = {port: PortCounters.from_stats(found[port]) for port in ports}
    rows = [["state", *(_state(client, port) for port in ports)]]
    for label, name in _COUNTERS:
        rows.append([label, *(_format.count(getattr(counters[port], name)) for port in ports)])
    for label, name, unit in _RATES:
        rows.append([label, *(_format.rate(float(found[port].get(name, 0)), unit) for port in ports)])
    parts = [_format.by_port([f"port {port}" for port in ports], rows)]
    result: dict[str, Any] = {
        "ports": {
            str(port): {
                "state": _state(client, port),
                **counters[port].to_json(),
                **{name: float(found[port].get(name, 0)) for _, name, _ in _RATES},
            }
            for port in ports
        }
    }
    if options.groups:
        result["groups"] = groups = {
            str(number): {name: one[name].get("total", 0) for name in ("tx_pkts", "rx_pkts")}
            for number, one in found.get("flow_stats", {}).items()
            if isinstance(number, int)
        }
        parts.append(_groups(groups) if groups else _NO_GROUPS)
    if options.latency:
        result["latency"] = latency = {
            str(number): {**one["latency"], **one["err_cntrs"]}
            for number, one in found.get("latency", {}).items()
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
    return _format.table(["latency of group", "min", "average", "max", "jitter", "lost"], rows)
