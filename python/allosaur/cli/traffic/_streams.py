"""Streams of ports."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _answer, _format, _gateways, _profile
from allosaur.cli._access import check_ports, names, refuse_running, remote_client, take
from allosaur.cli._answer import Answer
from allosaur.cli._arguments import refuse_options_of_flows
from allosaur.cli._errors import EXIT_USAGE, CommandError, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._modes import PORT_STATES
from allosaur.cli._options import FOREVER
from allosaur.cli.traffic._kind import Said, Started, Traffic, how_long
from allosaur.report._counters import PortCounters

if TYPE_CHECKING:
    from allosaur import STLClient, STLProfile

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


class Streams(Traffic):
    """Streams. Their units are ports, by number."""

    title = "streams"
    own_options = ("ports",)
    no_units = "No port has streams."

    def __init__(self, options: argparse.Namespace, client: STLClient | None = None) -> None:
        super().__init__(options)
        self._known = client
        self._profiles: Mapping[int, STLProfile] = {}

    @property
    def _client(self) -> STLClient:
        assert self._known is not None, "it is connected"
        return self._known

    def load(self) -> None:
        refuse_options_of_flows(self.options)
        path = Path(self.options.profile)
        ports = [0] if self.options.ports is None else self.options.ports
        tunables = _profile.merged(self.options.tunable)
        self._profiles = {port: _profile.load(path, port % 2, port, tunables) for port in ports}

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        with remote_client(self.options) as self._known:
            yield

    def start(self, interrupt: Interrupt) -> Started:
        client, options, ports = self._client, self.options, list(self._profiles)
        check_ports(client, ports)
        refuse_running(client, ports, options.force)
        take(client, ports, options.force)
        with explained("cannot clear the ports"):
            client.stop(ports=_all_profiles(ports))
            client.remove_all_streams(ports=_all_profiles(ports))
        for port, profile in self._profiles.items():
            with explained(f"profile {options.profile}, port {port}", EXIT_USAGE):
                client.add_streams(profile.get_streams(), ports=[port])
        _gateways.wait(client, _gateways.of_streams(client, ports), interrupt, options.force)
        with explained("the traffic did not start", EXIT_USAGE):
            client.start(ports, options.multiplier, force=options.force, duration=options.duration)
        return Started(
            f"{_answer.listed(ports, 'Port')} send{'s' if len(ports) == 1 else ''}, {how_long(options)}",
            {
                "ports": ports,
                "multiplier": options.multiplier,
                "duration_asked_s": None if options.duration == FOREVER else options.duration,
            },
        )

    def running(self) -> list[int]:
        return self._named(self._client.get_active_ports(owned=False))

    def loaded(self) -> list[int]:
        return self._named([number for number, port in self._client.ports.items() if port.state != "IDLE"])

    def _named(self, ports: Sequence[int]) -> list[int]:
        """Return these ports, whoever owns them; with `--ports` those of them that it names."""
        wanted = self.options.ports
        if wanted is None:
            return list(ports)
        check_ports(self._client, wanted)
        return [port for port in wanted if port in ports]

    def own(self, units: Sequence[int]) -> None:
        take(self._client, sorted(units), self.options.force)

    def stop(self, units: Sequence[int]) -> Said:
        with explained("cannot stop the traffic"):
            if units:
                self._client.stop(ports=_all_profiles(units))
        return Said("")

    def remove(self, units: Sequence[int]) -> Said:
        with explained("cannot remove the streams"):
            if units:
                self._client.remove_all_streams(ports=_all_profiles(units))
        return Said(f"Removed the streams of {self.listed(units)}.")

    def set_rate(self, units: Sequence[int]) -> Said:
        rate = self.options.multiplier
        with explained("cannot change the rate", EXIT_USAGE):
            self._client.update(ports=list(units), mult=rate, force=self.options.force)
        return Said(f"{_answer.listed(units, 'Port')}: now at {rate}.", {"multiplier": rate})

    def listed(self, units: Sequence[int]) -> str:
        return _answer.listed(units, "port")

    def refuse_to_remove(self, running: Sequence[int]) -> CommandError:
        return CommandError(f"port {names(running)} sends; stop it first: `allosaur stop --clear`")

    def client(self) -> STLClient | None:
        return self._known

    def stats(self) -> Answer:
        client, options = self._client, self.options
        ports = list(client.ports) if options.ports is None else options.ports
        check_ports(client, ports)
        with explained("cannot read the counters"):
            found: Mapping[Any, Any] = client.get_stats(ports=ports, only_given=True)
        counters = {port: PortCounters.from_stats(found[port]) for port in ports}
        states = {port: PORT_STATES.get(client.ports[port].state, "idle") for port in ports}
        rates = {port: {name: float(found[port].get(name, 0)) for _, name, _ in _RATES} for port in ports}
        rows = [["state", *states.values()]]
        for label, name in _COUNTERS:
            rows.append([label, *(_format.count(getattr(counters[port], name)) for port in ports)])
        for label, name, unit in _RATES:
            rows.append([label, *(_format.rate(rates[port][name], unit) for port in ports)])
        parts = [_format.by_port([f"port {port}" for port in ports], rows)]
        result: dict[str, Any] = {
            "ports": {
                str(port): {"state": states[port], **counters[port].to_json(), **rates[port]}
                for port in ports
            }
        }
        if options.groups:
            groups = _by_number(found, "flow_stats", _sums)
            parts.append(_groups(groups) if groups else _NO_GROUPS)
            result["groups"] = groups
        if options.latency:
            latency = _by_number(found, "latency", lambda one: {**one["latency"], **one["err_cntrs"]})
            parts.append(_latency(latency) if latency else _NO_LATENCY)
            result["latency"] = latency
        return Answer("\n\n".join(parts), result)


def _all_profiles(ports: Sequence[int]) -> list[str]:
    return [f"{port}.*" for port in ports]


def _by_number(
    found: Mapping[Any, Any], what: str, read: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return what is counted of each packet group, by its number as text."""
    return {str(number): read(one) for number, one in found.get(what, {}).items() if isinstance(number, int)}


def _sums(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: group[name].get("total", 0) for name in ("tx_pkts", "rx_pkts")}


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
