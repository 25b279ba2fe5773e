"""What a core takes for a flow and for a packet on this machine: measured by the server's own `bench`.

Time counts that the measuring thread ran, so that neighbours on its CPU do not count.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from allosaur.cli._binary import exit_code_of, last_words, server_binary
from allosaur.cli._errors import CommandError, bad_input, explained
from allosaur.cli._shipped import located
from allosaur.cli.flows._measured import Generator
from allosaur.cli.plan._load import SHORTEST_BYTES, Load, of_flows

_SHORT_RESPONSE_BYTES, _LONG_RESPONSE_BYTES = 1, 32 * 1024
_TOO_MANY = 1e6
_UDP_ROUNDS = (1, 10)
_UDP_WARM_S = 0.5
_ENDS = 100_000
_REPEATED = ("constant", "statistics")
_LARGE_BYTES, _IMIX_BYTES = 1518, (7 * 64 + 4 * 594 + 1518) / 12


_OF_MEMORY = ("bytes_per_end", "base_bytes")
_OPTIONAL = ("bytes_per_time_wait_end",)
_OF_TCP = ("short_flow_ns", "short_flow_packets", "packet_of_flow_ns")
_OF_UDP = ("udp_flow_ns", "udp_packet_ns")


@dataclass(frozen=True)
class Costs:
    """Costs in nanoseconds of a core. What was not measured is `None`."""

    short_flow_ns: float | None = None
    """A connection with a request and a response of a byte, both ends."""
    short_flow_packets: float | None = None
    packet_of_flow_ns: float | None = None
    """Each further packet of a connection, both ends."""
    udp_flow_ns: float | None = None
    """A UDP flow of a request and an answer, both ends."""
    udp_packet_ns: float | None = None
    """Each further packet of it, both ends."""
    bytes_per_end: float | None = None
    """Memory of an open end."""
    bytes_per_time_wait_end: float | None = None
    """Of one in TIME-WAIT; without it, as of an open one."""
    base_bytes: float | None = None
    """Memory of a server without flows."""
    packet_ns: Mapping[str, float] = field(default_factory=dict)
    """A packet of 64 bytes, by the case of `bench`; `large` has 1518, `imix` 362 on average."""

    def flow_ns(self, load: Load) -> float:
        """Return what a flow takes of a core, the mean of TCP and UDP."""
        ns = 0.0
        if load.udp_share > 0:
            assert self.udp_flow_ns and self.udp_packet_ns
            ns = load.udp_share * (self.udp_flow_ns + max(load.udp_packets - 2, 0) * self.udp_packet_ns)
        if load.udp_share < 1:
            assert self.short_flow_ns and self.short_flow_packets and self.packet_of_flow_ns
            further = max(load.tcp_packets - self.short_flow_packets, 0)
            ns += (1 - load.udp_share) * (self.short_flow_ns + further * self.packet_of_flow_ns)
        return ns

    def stream_packet_ns(self, load: Load) -> float:
        """Return what a packet of streams takes, by its kind and its length."""
        longer = load.to_servers.bytes - SHORTEST_BYTES
        return sum(
            part * (self.packet_ns[kind] + max(self._byte_ns(kind), 0) * longer)
            for kind, part in load.kinds.items()
        )

    def _byte_ns(self, kind: str) -> float:
        """Return what a further byte takes: constant frames are repeated, all others are written."""
        if kind in _REPEATED:
            return (self.packet_ns["large"] - self.packet_ns["constant"]) / (_LARGE_BYTES - SHORTEST_BYTES)
        return (self.packet_ns["imix"] - self.packet_ns["variable"]) / (_IMIX_BYTES - SHORTEST_BYTES)

    def unit_ns(self, load: Load) -> float:
        """Return what a flow or a packet takes of a core."""
        return self.flow_ns(load) if load.unit == "flow" else self.stream_packet_ns(load)

    def flow_bytes(self, load: Load) -> float:
        """Return the memory of the ends that a flow a second has at a time."""
        open_bytes = self.bytes_per_end or 0.0
        waiting_bytes = self.bytes_per_time_wait_end or open_bytes
        return load.open_ends * open_bytes + load.time_wait_ends * waiting_bytes

    def to_json(self) -> dict[str, Any]:
        """Return the costs as plain data, as `read` takes them."""
        return {name: value for name, value in asdict(self).items() if value not in (None, {})}


def measured(load: Load, rtt_s: float, seconds: float, say: Callable[[str], None]) -> Costs:
    """Measure what this kind of load costs. Raises :class:`CommandError`."""
    if load.unit == "packet":
        return Costs(packet_ns={case: _case_ns(case, seconds, say) for case in _needed(load)})
    found: dict[str, Any] = {}
    if load.udp_share < 1:
        found |= _tcp(rtt_s, seconds, say)
    if load.udp_share > 0:
        found |= _udp(seconds, say)
    say(f"{_ENDS:,} open ends")
    memory, _ = _bench("--flows", str(_ENDS), "--seconds", "0.1")
    costs = Costs(
        bytes_per_end=memory["bytes_per_end"],
        bytes_per_time_wait_end=memory["bytes_per_time_wait_end"],
        base_bytes=memory["bytes_before"],
    )
    return replace(costs, **found)


def _tcp(rtt_s: float, seconds: float, say: Callable[[str], None]) -> dict[str, float]:
    """Measure a short and a long connection; a packet is what makes the difference."""
    flows = []
    for size in (_SHORT_RESPONSE_BYTES, _LONG_RESPONSE_BYTES):
        say(f"connections with responses of {size:,} bytes")
        words = ["--response", str(size), "--rate", str(_TOO_MANY), "--seconds", str(seconds)]
        outcome, share = _bench(*words)
        if not outcome["connections"]:
            raise CommandError("no connection ended in the measured time: give more by -d, such as -d 2s")
        packets = of_flows(Path(located("http")), {"response": size}, rtt_s).packets
        flows.append((outcome["seconds"] * share / outcome["connections"] * 1e9, packets))
    (short_ns, short_packets), (long_ns, long_packets) = flows
    further_ns = max(long_ns - short_ns, 1.0) / (long_packets - short_packets)
    return {"short_flow_ns": short_ns, "short_flow_packets": short_packets, "packet_of_flow_ns": further_ns}


def _udp(seconds: float, say: Callable[[str], None]) -> dict[str, float]:
    """Measure flows of few and of many messages, of which the server has no benchmark of its own."""
    flows = []
    for rounds in _UDP_ROUNDS:
        say(f"UDP flows of {2 * rounds} packets")
        with explained("the costs of UDP cannot be measured"), Generator() as generator:
            generator.start(located("udp_exchange"), _TOO_MANY, rounds=rounds, size=64)
            window = generator.measure(seconds, _UDP_WARM_S)
        if not window.closed:
            raise CommandError("no UDP flow ended in the measured time: give more by -d, such as -d 2s")
        flows.append(window.ran_s / window.closed * 1e9)
    (few, many), (few_ns, many_ns) = _UDP_ROUNDS, flows
    return {"udp_flow_ns": few_ns, "udp_packet_ns": max(many_ns - few_ns, 1.0) / (2 * many - 2 * few)}


def _case_ns(case: str, seconds: float, say: Callable[[str], None]) -> float:
    say(f"packets: {case}")
    outcome, _ = _bench("--case", case, "--seconds", str(seconds))
    return 1e9 / float(outcome["rate_running_pps"] or outcome["rate_pps"])


def _needed(load: Load) -> list[str]:
    repeated = {"constant", "large"} if any(kind in _REPEATED for kind in load.kinds) else set()
    written = {"variable", "imix"} if any(kind not in _REPEATED for kind in load.kinds) else set()
    return sorted({*load.kinds, *repeated, *written})


def _bench(*words: str) -> tuple[dict[str, Any], float]:
    """Run the server's benchmark; return what it says, and the share of the time that its thread ran."""
    command = [server_binary(), "bench", *words]
    before, began_s = getrusage(RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s, after = time.monotonic() - began_s, getrusage(RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise CommandError(f"the benchmark failed: {last_words(done.stderr)}", exit_code_of(done.returncode))
    ran_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome, min(ran_s / took_s, 1.0)


def read(path: Path, load: Load) -> Costs:
    """Read costs from a file: those of `--json` of an earlier plan. Raises :class:`CommandError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise bad_input(
            f"--measured {path}: {reason}; name a file of `allosaur plan PROFILE --json FILE`"
        ) from error
    except ValueError as error:
        raise bad_input(
            f"--measured {path}: no JSON: {error}; write it by `allosaur plan --json FILE`"
        ) from error
    found = value.get("measured", value) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise bad_input(f"--measured {path}: no object; write it by `allosaur plan PROFILE --json FILE`")
    if load.unit == "flow":
        names = [
            *_OF_MEMORY,
            *(name for name in _OPTIONAL if name in found),
            *(_OF_TCP if load.udp_share < 1 else ()),
            *(_OF_UDP if load.udp_share > 0 else ()),
        ]
        _check_numbers(path, {name: found.get(name) for name in names})
    cases = found.get("packet_ns", {})
    if load.unit == "packet":
        if not isinstance(cases, dict):
            raise bad_input(f"--measured {path}: packet_ns: no object; give nanoseconds by case")
        _check_numbers(path, {f"packet_ns.{case}": cases.get(case) for case in _needed(load)})
    return Costs(**{one.name: found[one.name] for one in fields(Costs) if one.name in found})


def _check_numbers(path: Path, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is None:
            raise bad_input(
                f"--measured {path}: {name}: missing; "
                "plan a profile of this kind without --measured to measure it"
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise bad_input(f"--measured {path}: {name}: {value!r} is not a number above zero")


def told(costs: Costs) -> list[str]:
    """Return the costs in words, a line each."""
    lines = []
    if costs.short_flow_ns and costs.short_flow_packets and costs.packet_of_flow_ns:
        lines.append(
            f"a connection of {costs.short_flow_packets:g} packets takes {costs.short_flow_ns / 1e3:.2f} µs "
            f"of a core, both ends; each further packet {costs.packet_of_flow_ns:.0f} ns"
        )
    if costs.udp_flow_ns and costs.udp_packet_ns:
        lines.append(
            f"a UDP flow of 2 packets takes {costs.udp_flow_ns / 1e3:.2f} µs of a core, both ends; each "
            f"further packet {costs.udp_packet_ns:.0f} ns"
        )
    if costs.bytes_per_end:
        waiting = costs.bytes_per_time_wait_end
        also = f", one in TIME-WAIT {waiting:.0f}" if waiting else ""
        lines.append(f"an open end takes {costs.bytes_per_end:.0f} bytes{also}")
    return lines + [f"a packet ({case}) takes {ns:.1f} ns" for case, ns in costs.packet_ns.items()]
