"""`allosaur plan`: its arithmetic, what it reads of profiles, its words, and what it refuses."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import _options
from allosaur.cli._errors import CommandError
from allosaur.cli.plan import _check, _costs, _load, _plan

ROOT = Path(__file__).resolve().parents[2]
HTTP = ROOT / "profiles" / "stateful" / "http.py"
needs_server = pytest.mark.usefixtures("binary")

COSTS = _costs.Costs(
    short_flow_ns=6_000.0,
    short_flow_packets=8.0,
    packet_of_flow_ns=500.0,
    udp_flow_ns=3_000.0,
    udp_packet_ns=400.0,
    bytes_per_end=250.0,
    bytes_per_time_wait_end=60.0,
    base_bytes=20e6,
    packet_ns={"constant": 2.0, "large": 2.0, "variable": 16.0, "imix": 30.0},
)
#: Forty packets a flow, and each is there for a second at the client, half of it in TIME-WAIT.
FLOWS = _load.Load("flow", 1.0, _load.Direction(15, 1_200), _load.Direction(25, 35_000), 1.0, 0.0, 0.5, 254)
MACHINE = _plan.Machine(cores=4, memory_bytes=8e9, ports=2, nic_bps=100e9, headroom=0.2)
MEASURED = COSTS.to_json()


def plan(rate: float, load: _load.Load = FLOWS, machine: _plan.Machine = MACHINE) -> _plan.Plan:
    return _plan.made(rate, load, COSTS, machine)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("100gbps", 100e9, "bps"),
        ("2.5GbpsL1", 2.5e9, "bpsl1"),
        ("200 kcps", 200e3, "cps"),
        ("3mpps", 3e6, "pps"),
        ("50cps", 50.0, "cps"),
    ],
)
def test_targets(text: str, value: float, unit: str) -> None:
    assert _options.target(text) == _options.Target(value, unit)


@pytest.mark.parametrize("text", ["", "10", "gbps", "0cps", "10tbps", "-1gbps", "10kcpsl1"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a load above zero; write bits"):
        _options.target(text)


def test_a_target_is_of_the_direction_that_has_more() -> None:
    rates = {text: _plan.rate_of(_options.target(text), FLOWS) for text in ("1kcps", "25kpps", "280mbps")}
    assert list(rates.values()) == [1_000.0, 1_000.0, 1_000.0]
    # Each packet of layer 1 has 20 bytes more.
    assert _plan.rate_of(_options.target("284mbpsl1"), FLOWS) == 1_000.0


def test_what_a_plan_takes() -> None:
    found = plan(100_000)
    # 6 µs, and 32 packets more than the short connection has.
    assert found.unit_ns == 22_000.0
    assert found.busy_cores == pytest.approx(2.2)
    assert (found.cores, found.ports, found.queues) == (3, 2, 3)
    assert (found.open_ends, found.time_wait_ends, found.ends) == (50_000, 50_000, 100_000)
    assert found.memory_bytes == pytest.approx(20e6 + 12.5e6 + 3e6)
    assert found.bits_to_clients == pytest.approx(100_000 * 8 * (35_000 + 25 * 20))


def test_ends_in_time_wait_count_as_open_ones_where_nothing_says_what_they_take() -> None:
    costs = replace(COSTS, bytes_per_time_wait_end=None)
    assert _plan.made(100_000, FLOWS, costs, MACHINE).memory_bytes == pytest.approx(20e6 + 25e6)


def test_cores_are_shared_out_over_pairs_of_ports() -> None:
    found = plan(1_000_000)
    assert (found.cores, found.ports, found.queues) == (28, 6, 10)


def test_what_limits_first() -> None:
    assert plan(1_000).first.name == "cores"
    assert plan(1_000).first.most == pytest.approx(4 * 0.8 * 1e9 / 22_000)
    many = replace(MACHINE, cores=1_000)
    assert plan(1_000, machine=many).first.name == "ports"
    assert plan(1_000, machine=replace(many, ports=4)).first.most == pytest.approx(2 * 100e9 / 284_000)
    long = replace(FLOWS, client_ends=600.0, server_ends=600.0)
    assert plan(1_000, long, many).first.name == "memory"
    narrow = replace(FLOWS, client_addresses=1)
    found = plan(1_000, narrow, replace(many, ports=200))
    assert (found.first.name, found.first.most) == ("client addresses", _load.PORTS_OF_ADDRESS)


def test_udp_costs_what_udp_was_measured_to() -> None:
    udp = replace(FLOWS, to_servers=_load.Direction(3, 200), to_clients=_load.Direction(3, 400))
    assert COSTS.flow_ns(replace(udp, udp_share=1.0, udp_packets=6.0)) == 3_000 + 4 * 400
    # Half of the flows have 2 packets of UDP, so the other half have 10 of TCP.
    mixed = replace(udp, udp_share=0.5, udp_packets=2.0)
    assert mixed.tcp_packets == 10.0
    assert COSTS.flow_ns(mixed) == 0.5 * 3_000 + 0.5 * (6_000 + 2 * 500)


def test_packets_cost_by_their_kind_and_length() -> None:
    short = _load.Load("packet", 1.0, _load.Direction(1, 64), kinds={"constant": 0.5, "variable": 0.5})
    assert COSTS.unit_ns(short) == 9.0
    long = replace(short, to_servers=_load.Direction(1, 64 + 298), kinds={"variable": 1.0})
    assert COSTS.unit_ns(long) == pytest.approx(30.0, rel=0.01)
    found = plan(100e6, short)
    assert (found.ports, found.cores) == (1, 2)
    assert {one.name for one in found.limits} == {"cores", "ports"}


def stream(*instructions: dict[str, Any], counted: bool = False) -> dict[str, Any]:
    return {"vm": {"instructions": list(instructions)}, "flow_stats": {"enabled": counted}}


def test_kinds_of_streams() -> None:
    counting = {"type": "flow_var", "name": "a", "op": "inc"}
    write, fix = {"type": "write_flow_var"}, {"type": "fix_checksum_ipv4"}
    assert _load.kind_of(stream()) == "constant"
    assert _load.kind_of(stream(counted=True)) == "statistics"
    assert _load.kind_of(stream(counting, write, fix)) == "variable"
    assert _load.kind_of(stream(counting, write, fix, counted=True)) == "statistics-variable"
    assert _load.kind_of(stream({**counting, "op": "random"}, write)) == "random"
    assert _load.kind_of(stream(counting, counting, write)) == "random"
    assert _load.kind_of(stream({"type": "flow_var_rand_limit"}, write)) == "random"
    assert _load.kind_of(stream({"type": "tuple_flow_var"}, write)) == "tuple"


def test_the_check_offers_what_a_core_carries() -> None:
    assert _check.rate_to_check(FLOWS, 1e6, 20_000) == _check.CORE_SHARE * 50_000
    assert _check.rate_to_check(FLOWS, 100, 20_000) == 100


def test_a_check_fails_only_where_nobody_else_had_the_cpu() -> None:
    alone = _check.Checked(1_000, 500, 0.3, 0.4, is_carried=False)
    assert alone.is_failed
    assert alone.error == pytest.approx(-0.25)
    assert not replace(alone, waited=0.2).is_failed
    assert not replace(alone, steal=0.2).is_failed
    assert not replace(alone, is_carried=True).is_failed


def written(folder: Path, value: object) -> Path:
    path = folder / "costs.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_costs_come_back_from_a_file(tmp_path: Path) -> None:
    assert _costs.read(written(tmp_path, MEASURED), FLOWS) == COSTS
    assert _costs.read(written(tmp_path, {"command": "plan", "measured": MEASURED}), FLOWS) == COSTS
    # Nobody asks for what this load does not need.
    tcp = {name: value for name, value in MEASURED.items() if "udp" not in name and name != "packet_ns"}
    assert _costs.read(written(tmp_path, tcp), FLOWS).udp_flow_ns is None
    tcp.pop("bytes_per_time_wait_end")
    assert _costs.read(written(tmp_path, tcp), FLOWS).bytes_per_time_wait_end is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "no JSON"),
        ([], "no object"),
        ({"measured": 5}, "no object"),
        ({**MEASURED, "short_flow_ns": None}, "short_flow_ns: missing"),
        ({**MEASURED, "short_flow_ns": "fast"}, "short_flow_ns: 'fast' is not a number above zero"),
        ({**MEASURED, "bytes_per_time_wait_end": "few"}, "bytes_per_time_wait_end: 'few' is not a number"),
        ({**MEASURED, "bytes_per_end": 0}, "bytes_per_end: 0 is not a number above zero"),
        ({**MEASURED, "base_bytes": True}, "base_bytes: True is not a number above zero"),
    ],
)
def test_a_wrong_file_of_costs(value: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        _costs.read(written(tmp_path, value), FLOWS)
    assert caught.value.exit_code == 2


def test_a_wrong_file_of_costs_of_streams(tmp_path: Path) -> None:
    load = _load.Load("packet", 1.0, _load.Direction(1, 64), kinds={"tuple": 1.0})
    with pytest.raises(CommandError, match=r"packet_ns\.tuple: missing"):
        _costs.read(written(tmp_path, MEASURED), load)
    with pytest.raises(CommandError, match="packet_ns: no object"):
        _costs.read(written(tmp_path, {"packet_ns": 5}), load)


@needs_server
def test_a_plan_of_flows(allosaur: Any, tmp_path: Path) -> None:
    costs = written(tmp_path, MEASURED)
    words = ("plan", HTTP, "--target", "10kcps", "--measured", costs, "--cores", 2, "--nic", "10gbps")
    ended = allosaur(*words, "--json")
    assert ended.code == 0, ended
    result = ended.json()
    assert (result["command"], result["ok"], result["unit"], result["check"]) == ("plan", True, "flow", None)
    needed = result["needed"]
    assert needed["rate"] == 10_000
    # Fifteen packets to the server and twenty-five back, each connection a second in TIME-WAIT.
    assert needed["pps"] == pytest.approx(400_000)
    assert needed["time_wait_ends"] == pytest.approx(10_000, rel=0.05)
    assert needed["open_ends"] < 200
    waiting_bytes = needed["time_wait_ends"] * COSTS.bytes_per_time_wait_end
    assert needed["memory_bytes"] == pytest.approx(20e6 + needed["open_ends"] * 250 + waiting_bytes)
    assert needed["cpu_ns"] == pytest.approx(6_000 + 32 * 500)
    assert (needed["cores"], needed["ports"], result["first_limit"]) == (1, 2, "ports")
    assert [one["name"] for one in needed["limits"]][:2] == ["ports", "cores"]
    again = allosaur(*words)
    assert again.code == 0
    for text in ("http at 10.0 kflows/s: 10,000 flows a second, 22.0 µs of a core each.", "pairs of ports"):
        assert text in again.out
    assert again.out.rstrip().endswith("What limits first here: ports.")


@needs_server
def test_a_plan_of_flows_that_are_long(allosaur: Any, tmp_path: Path) -> None:
    """There is one of them, which shows no steady state: it counts as open as long as it lasts."""
    profile = ROOT / "profiles" / "stateful" / "elephants.py"
    costs = written(tmp_path, MEASURED)
    words = ("plan", profile, "-t", "seconds=1", "--target", "1gbps", "--rtt", "20ms", "--measured", costs)
    result = allosaur(*words, "--json").json()
    assert result["needed"]["open_ends"] >= result["needed"]["rate"] * 2


@needs_server
@pytest.mark.parametrize("name", ["two_connections", "application_mix", "shared_port_by_bytes", "http_ipv6"])
def test_a_plan_of_any_profile(name: str, allosaur: Any, tmp_path: Path) -> None:
    costs = written(tmp_path, MEASURED)
    profile = ROOT / "profiles" / "stateful" / f"{name}.py"
    result = allosaur("plan", profile, "--target", "1kcps", "--measured", costs, "--json").json()
    assert result["needed"]["rate"] == 1_000
    assert result["needed"]["pps"] > 1_000


@needs_server
def test_a_plan_is_measured_and_checked(allosaur: Any, tmp_path: Path) -> None:
    """Whatever this machine is: costs are there, and the check says what it found."""
    words = ("plan", ROOT / "profiles" / "stateful" / "udp_exchange.py", "--target", "2kcps", "-d", "200ms")
    ended = allosaur(*words, "-t", "rounds=1", "--check", "--json", tmp_path / "plan.json")
    assert ended.code in (0, 1), ended
    result = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert result["ok"] == (ended.code == 0)
    memory = {"bytes_per_end", "bytes_per_time_wait_end", "base_bytes"}
    assert set(result["measured"]) == {"udp_flow_ns", "udp_packet_ns", *memory}
    check = result["check"]
    assert check["used_cpu"] > 0
    assert check["error"] == pytest.approx(check["predicted_cpu"] / check["used_cpu"] - 1)
    again = allosaur(*words, "-t", "rounds=1", "--measured", tmp_path / "plan.json", "--json")
    assert again.json()["measured"] == result["measured"]


@needs_server
def test_a_plan_of_streams_is_measured_and_checked(allosaur: Any) -> None:
    words = ("plan", ROOT / "profiles" / "imix.py", "--target", "1mpps", "-d", "50ms", "--check", "--json")
    ended = allosaur(*words)
    assert ended.code == 0, ended
    result = ended.json()
    assert set(result["measured"]["packet_ns"]) == {"variable", "imix"}
    assert result["needed"]["pps"] == 1e6
    assert result["check"]["reached"] > 0


@needs_server
def test_what_a_plan_refuses(allosaur: Any, tmp_path: Path) -> None:
    target = ("--target", "1gbps")
    allosaur("plan", HTTP).refused("--target is missing")
    allosaur("plan", HTTP, "--target", "10").refused("--target", "100gbps")
    allosaur("plan", "nothing", *target).refused("nothing", "allosaur profiles")
    allosaur("plan", HTTP, *target, "--headroom", "100%").refused("--headroom", "below 100%")
    allosaur("plan", HTTP, *target, "-d", "0").refused("-d", "1s")
    allosaur("plan", HTTP, *target, "--measured", tmp_path / "none").refused("--measured", "--json FILE")
    allosaur("plan", HTTP, *target, "-t", "nope=1").refused("nope", "response")
    allosaur("plan", ROOT / "profiles" / "imix.py", "--target", "1kcps").refused("--target", "3mpps")
