"""What a profile asks of a machine: packets, bytes and open ends of one flow, or of one packet of streams."""

from __future__ import annotations

import base64
import ipaddress
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _profile
from allosaur.cli._binary import exit_code_of, last_words, server_binary
from allosaur.cli._errors import CommandError, bad_input
from allosaur.run.flows._access import load_file

if TYPE_CHECKING:
    from allosaur import ASTFProfile, ASTFProfileLight, STLStream

FCS_BYTES, GAP_BYTES = 4, 20
"""What the wire adds to a frame: layer 2 counts the first, layer 1 both."""
SHORTEST_BYTES = 64
PORTS_OF_ADDRESS = 64_512
"""1024 to 65535."""
_FLOWS = 300
SECONDS = 60.0
"""Of virtual time; flows that live longer count until then."""
_PACKETS_MAX = 500_000
_PATIENCE_S = 60.0
_RANDOM = "random"
_LINKS = ("link_to_server", "link_to_client")


@dataclass(frozen=True)
class Direction:
    """What goes one way for each flow, or each packet of streams."""

    packets: float = 0.0
    bytes: float = 0.0
    """With FCS."""

    def bits(self, layer: int = 2) -> float:
        """Return the bits at layer 1 or 2."""
        return 8 * (self.bytes + (GAP_BYTES * self.packets if layer == 1 else 0))


@dataclass(frozen=True)
class Load:
    """What one unit of a profile asks: a flow, or a packet of streams."""

    unit: str
    """`flow` or `packet`."""
    rate: float
    """Units a second at multiplier 1."""
    to_servers: Direction
    to_clients: Direction = Direction()
    client_ends: float = 0.0
    """Ends at a time for each flow a second: how long one is there, in seconds."""
    server_ends: float = 0.0
    time_wait_ends: float = 0.0
    """The part of both in which an end is in TIME-WAIT, and takes few bytes."""
    client_addresses: int = 0
    udp_share: float = 0.0
    """The part of flows that are UDP."""
    udp_packets: float = 0.0
    """Packets of a flow of UDP, both directions."""
    kinds: Mapping[str, float] = field(default_factory=dict)
    """Of streams: the part of packets that are made in each of the ways that a server's `bench` has."""

    @property
    def heavier(self) -> Direction:
        """The direction that fills a link first."""
        return max(self.to_servers, self.to_clients, key=lambda way: way.bits(1))

    @property
    def packets(self) -> float:
        """Packets of both directions."""
        return self.to_servers.packets + self.to_clients.packets

    @property
    def tcp_packets(self) -> float:
        """Packets of a connection of TCP, both directions."""
        tcp_share = 1 - self.udp_share
        return (self.packets - self.udp_share * self.udp_packets) / tcp_share if tcp_share > 0 else 0.0

    @property
    def ends(self) -> float:
        """Ends at a time for each flow a second, of both sides."""
        return self.client_ends + self.server_ends

    @property
    def open_ends(self) -> float:
        """Those of them that are not in TIME-WAIT."""
        return self.ends - self.time_wait_ends


def of_flows(path: Path, tunables: Mapping[str, Any], rtt_s: float) -> Load:
    """Simulate a stateful profile and return what a flow of it asks. Raises :class:`CommandError`."""
    return simulated(load_file(path, tunables), path, rtt_s)


def simulated(profile: ASTFProfile | ASTFProfileLight, path: Path, rtt_s: float) -> Load:
    """Return what a flow of a profile asks, the mean of all templates at their rates."""
    fields = profile.to_json()
    templates = [template["client_template"] for template in fields["templates"]]
    # A flow that others open has no rate of its own, and its template neither.
    begin = [template for template in templates if template.get("cps")]
    rate = sum(float(template["cps"]) for template in begin)
    if not rate:
        raise bad_input(f"profile {path}: no template opens flows; give one a rate (cps)")
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(fields, file)
        file.flush()
        words = ["sim-stateful", "--profile", file.name, "--rtt", f"{rtt_s!r}"]
        one = _simulate([*words, "--patience", f"{SECONDS!r}"], path)
        addresses = _client_addresses(fields, templates)
        packets = max(sum(one[link]["frames"] for link in _LINKS), 1)
        flows = min(_FLOWS, _PACKETS_MAX * one["client"]["flows"] / packets)
        is_over = all(template.get("limit") and not template.get("cont") for template in begin)
        if is_over or flows < len(begin):
            # So few flows show no steady state: each counts as open as long as the longest.
            return _mean(one, rate, addresses, [one["seconds"]] * 2, 0.0)
        many = ["--duration", f"{SECONDS!r}", "--multiplier", f"{flows / SECONDS / rate!r}"]
        outcome = _simulate([*words, *many, "--patience", "0.000001"], path)
    begun = max(outcome["client"]["flows"], 1)
    # By Little's law: the flows that are there, by those that open in a second.
    sides = [outcome[side] for side in ("client", "server")]
    there_s = [side["left"] / begun * SECONDS for side in sides]
    waiting_s = sum(side["left_in_time_wait"] for side in sides) / begun * SECONDS
    return _mean(outcome, rate, addresses, there_s, waiting_s)


def _mean(
    outcome: Mapping[str, Any], rate: float, addresses: int, there_s: Sequence[float], waiting_s: float
) -> Load:
    flows = outcome["client"]["flows"]
    if not flows:
        raise bad_input(
            "the profile opened no flow in a minute of virtual time; give it a rate of flows (cps)"
        )
    ways = [
        Direction(link["frames"] / flows, (link["bytes"] + FCS_BYTES * link["frames"]) / flows)
        for link in (outcome[name] for name in _LINKS)
    ]
    sides = [
        {row["name"]: row["value"] for row in outcome[side]["counters"]} for side in ("client", "server")
    ]
    udp_flows = sides[0]["udps_connects"]
    udp_packets = sum(side["udps_sndpkt"] for side in sides) / udp_flows if udp_flows else 0.0
    return Load(
        "flow",
        *(rate, ways[0], ways[1], there_s[0], there_s[1], waiting_s, addresses),
        udp_share=udp_flows / flows,
        udp_packets=udp_packets,
    )


def _simulate(words: list[str], path: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [server_binary(), *words], capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise bad_input(
            f"profile {path}: a flow of it takes more than {_PATIENCE_S:g} s to simulate; "
            "plan with less data a flow"
        ) from None
    if not done.stdout:
        raise CommandError(f"profile {path}: {last_words(done.stderr)}", exit_code_of(done.returncode))
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def _client_addresses(fields: Mapping[str, Any], templates: Iterable[Mapping[str, Any]]) -> int:
    """Count the addresses that clients have."""
    pools = fields["ip_gen_dist_list"]
    used = {template["ip_gen"]["dist_client"]["index"] for template in templates}
    ends = [(pools[index]["ip_start"], pools[index]["ip_end"]) for index in used]
    return sum(int(ipaddress.ip_address(last)) - int(ipaddress.ip_address(first)) + 1 for first, last in ends)


def of_streams(path: Path, tunables: Mapping[str, Any], nic_bps: float) -> Load:
    """Return what a packet of a profile of streams asks, the mean of all streams at their rates."""
    streams: list[STLStream] = list(_profile.load(path, 0, 0, tunables).get_streams())
    rows = [(kind_of(fields), _length(fields), fields) for fields in (stream.to_json() for stream in streams)]
    rates = [_rate_pps(fields["mode"]["rate"], length, nic_bps) for _, length, fields in rows]
    rate = sum(rates)
    kinds: dict[str, float] = {}
    mean_bytes = 0.0
    for (kind, length, _), one in zip(rows, rates, strict=True):
        kinds[kind] = kinds.get(kind, 0.0) + one / rate
        mean_bytes += length * one / rate
    return Load("packet", rate, Direction(1.0, mean_bytes), kinds=kinds)


def kind_of(stream: Mapping[str, Any]) -> str:
    """Return the case of the server's `bench` that makes packets as a stream does."""
    instructions = stream.get("vm", {}).get("instructions", [])
    kinds = [one["type"] for one in instructions]
    variables = [one for one in instructions if one["type"].startswith("flow_var")]
    if "tuple_flow_var" in kinds:
        return "tuple"
    if len(variables) > 1 or any(one.get("op") == _RANDOM or one["type"] != "flow_var" for one in variables):
        return "random"
    counted = stream["flow_stats"].get("enabled", False)
    if variables or instructions:
        return "statistics-variable" if counted else "variable"
    return "statistics" if counted else "constant"


def _length(stream: Mapping[str, Any]) -> int:
    """Return the bytes of a packet with FCS."""
    return max(len(base64.b64decode(stream["packet"]["binary"])) + FCS_BYTES, SHORTEST_BYTES)


def _rate_pps(rate: Mapping[str, Any], length: int, nic_bps: float) -> float:
    value, line = float(rate["value"]), 8 * (length + GAP_BYTES)
    by_type = {
        "pps": value,
        "bps_L1": value / line,
        "bps_L2": value / (8 * length),
        "percentage": value / 100 * nic_bps / line,
    }
    return by_type[rate["type"]]
