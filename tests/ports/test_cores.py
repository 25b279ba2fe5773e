"""Groups of ports with threads of their own, and several threads that receive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    STLClient,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXSingleBurst,
    STLVmFlowVar,
    STLVmWrFlowVar,
)
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Ether

# Their threads take whole CPUs, pinned or polling.
pytestmark = pytest.mark.alone
COUNTED, MEASURED = 20_000, 300
SETTLE_S = 30.0

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration file."""

    def to_file(text: str) -> Path:
        path = tmp_path / "lab.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def counted(pg_id: int) -> STLStream:
    """Packets of 200 flows, counted as one group."""
    source = STLVmFlowVar("source", min_value=2000, max_value=2199, size=2, op="inc")
    program = STLScVmRaw([source, STLVmWrFlowVar("source", pkt_offset="UDP.sport")])
    packet = Ether() / IP(src="10.0.0.1", dst="10.0.1.1") / UDP(sport=2000, dport=12, chksum=0) / bytes(18)
    burst = STLTXSingleBurst(total_pkts=COUNTED, pps=100_000)
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=program), mode=burst, flow_stats=STLFlowStats(pg_id))


def measured(pg_id: int) -> STLStream:
    """Packets of one flow, whose latency is measured."""
    packet = Ether() / IP(src="10.0.0.9", dst="10.0.1.9") / UDP(sport=77, dport=13) / bytes(40)
    burst = STLTXSingleBurst(total_pkts=MEASURED, pps=1_000)
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=burst, flow_stats=STLFlowLatencyStats(pg_id))


def send(client: STLClient, ports: list[int]) -> dict[Any, Any]:
    """Send both kinds of streams on some ports. Gives the statistics when all has arrived."""
    client.reset()
    for port in ports:
        client.add_streams([counted(10 + port), measured(20 + port)], ports=[port])
    client.clear_stats()
    client.start(ports=ports)
    client.wait_on_traffic(ports=ports)
    until = time.monotonic() + SETTLE_S
    expected = len(ports) * (COUNTED + MEASURED)
    while True:
        stats: dict[Any, Any] = client.get_stats()
        arrived = stats["total"]["ipackets"]
        groups = stats["flow_stats"].items()
        grouped = sum(group["rx_pkts"]["total"] for pg_id, group in groups if isinstance(pg_id, int))
        if arrived >= expected and grouped >= expected:
            return stats
        assert time.monotonic() < until, stats


def check(stats: dict[Any, Any], ports: list[int], peer: Callable[[int], int]) -> None:
    """All that was sent has arrived, at the right ports, in the right groups, and was measured."""
    for port in ports:
        far = peer(port)
        assert stats[port]["opackets"] == stats[far]["ipackets"] == COUNTED + MEASURED
        assert stats[port]["obytes"] == stats[far]["ibytes"]
        for pg_id, packets in [(10 + port, COUNTED), (20 + port, MEASURED)]:
            group = stats["flow_stats"][pg_id]
            assert (group["tx_pkts"][port], group["rx_pkts"][far]) == (packets, packets)
            assert group["rx_bytes"][far] == group["tx_bytes"][port]
        latency = stats["latency"][20 + port]
        assert set(latency["err_cntrs"].values()) == {0}
        assert sum(latency["latency"]["histogram"].values()) == MEASURED
        assert latency["latency"]["total_min"] <= latency["latency"]["average"]


def threads_of(server: LocalServer) -> list[str]:
    """The names of the threads of a server, but the first."""
    tasks = Path(f"/proc/{server.pid}/task").iterdir()
    names = [(task / "comm").read_text().strip() for task in tasks]
    return sorted(name for name in names if name.startswith(("data-", "receive")))


def wait_for_threads(server: LocalServer, expected: list[str]) -> None:
    """Wait until the threads of a server are these: a thread names itself when it first runs."""
    until = time.monotonic() + SETTLE_S
    while (names := threads_of(server)) != sorted(expected):
        assert time.monotonic() < until, names
        time.sleep(0.02)


@pytest.mark.parametrize("receivers", [1, 2, 3])
def test_groups_and_several_receivers_count_as_one(write: Write, receivers: int) -> None:
    config = write(
        "ports: [memory, memory, memory, memory]\n"
        "groups: [{ports: [0, 1], cores: 2}, {ports: [2, 3]}]\n"
        f"receive_threads: {receivers}\n"
    )
    with LocalServer(config=config) as server, server.client() as client:
        more = [f"receive-{number}" for number in range(1, receivers)]
        wait_for_threads(server, ["data-0", "data-1", "data-2", "receive", *more])
        stats = send(client, [0, 2, 3])
        check(stats, [0, 2, 3], lambda port: port ^ 1)
        assert client.get_server_system_info()["dp_core_count"] == 3


@pytest.mark.parametrize("receivers", [1, 2])
def test_what_other_threads_receive_is_captured_too(receivers: int) -> None:
    options = ["--receive-threads", str(receivers)]
    with LocalServer(cores=2, options=options) as server, server.client() as client:
        client.reset()
        client.set_service_mode(ports=[0, 1])
        capture = client.start_capture(rx_ports=[1], limit=1000)["id"]
        client.add_streams(
            STLStream(
                packet=STLPktBuilder(pkt_buffer=bytes(range(60))),
                mode=STLTXSingleBurst(total_pkts=900, pps=10_000),
            ),
            ports=[0],
        )
        client.start(ports=[0], force=True)
        client.wait_on_traffic(ports=[0])
        until = time.monotonic() + SETTLE_S
        while client.get_capture_status()[capture]["count"] < 900:
            assert time.monotonic() < until, client.get_capture_status()
            time.sleep(0.02)
        seen: list[dict[str, Any]] = []
        client.stop_capture(capture, seen)
        assert [packet["binary"][12:] for packet in seen] == [bytes(range(12, 60))] * 900
        assert {packet["port"] for packet in seen} == {1}


def test_a_link_that_is_down_is_down_for_all_receivers() -> None:
    with LocalServer(cores=2, options=["--receive-threads", "3"]) as server, server.client() as client:
        client.reset()
        client.set_port_attr(ports=[1], link_up=False)
        stream = STLStream(
            packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXSingleBurst(total_pkts=1000, pps=10_000)
        )
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], force=True)
        client.wait_on_traffic(ports=[0])
        until = time.monotonic() + SETTLE_S
        while (lost := client.get_xstats(1)["rx_missed_errors"]) < 1000:
            assert time.monotonic() < until, lost
            time.sleep(0.02)
        assert client.get_stats()[1]["ipackets"] == 0
        client.set_port_attr(ports=[1], link_up=True)
        client.start(ports=[0], force=True)
        client.wait_on_traffic(ports=[0])
        until = time.monotonic() + SETTLE_S
        while client.get_stats()[1]["ipackets"] < 1000:
            assert time.monotonic() < until, client.get_stats()
            time.sleep(0.02)


@pytest.fixture
def veth(network: Any) -> Iterator[tuple[str, str]]:
    """A pair of interfaces."""
    yield network.veth()


@pytest.mark.parametrize("receivers", [1, 2])
def test_the_kernel_shares_out_what_arrives(veth: tuple[str, str], receivers: int) -> None:
    ports = [f"af_packet:{name}" for name in veth]
    options = ["--receive-threads", str(receivers), "--poll", "adaptive"]
    with LocalServer(ports=ports, cores=2, options=options) as server, server.client() as client:
        stats = send(client, [0])
        check(stats, [0], lambda port: port ^ 1)
        assert stats[0]["ipackets"] == 0


def test_what_the_kernel_sends_is_not_received(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(None, "ip", "address", "add", "10.77.0.1/24", "dev", near)
    network.run(None, "ip", "neighbor", "add", "10.77.0.2", "lladdr", network.mac(far, other), "dev", near)
    script = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "[s.sendto(bytes(20), ('10.77.0.2', 1000 + n)) for n in range(200)]"
    )
    options = ["--receive-threads", "2"]
    with LocalServer(ports=[near], options=options) as server, server.client() as client:
        network.run(None, sys.executable, "-c", script)
        assert network.received(far, other)[0] >= 200
        time.sleep(0.2)
        assert client.get_stats()[0]["ipackets"] == 0


def refused(*options: str) -> str:
    """What a server says that does not start because of its options."""
    command = [str(find_binary()), "serve", "--rpc-port", "0", "--pub-port", "0", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2, result
    assert "ready" not in result.stdout
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result
    return errors[0]


def test_more_threads_than_cpus_share_them_only_when_told(veth: tuple[str, str]) -> None:
    cpus = len(os.sched_getaffinity(0))
    cores = ["--cores", str(cpus + 1)]
    for options in (["--ports", veth[0]], ["--poll", "busy"], ["--pin", "--ports", veth[0]]):
        error = refused(*options, *cores)
        assert f"{cpus + 1} threads send, and there are {cpus} CPU(s)" in error
        assert f"use at most {cpus}" in error
        assert "--poll adaptive" in error
    for ports, words in [(["memory", "memory"], []), ([veth[0]], ["--poll", "adaptive"])]:
        with LocalServer(ports=ports, cores=cpus + 1, options=words) as server, server.client() as client:
            assert client.get_server_system_info()["dp_core_count"] == cpus + 1


def test_threads_that_are_pinned_stay_on_their_cpus() -> None:
    cpus = os.sched_getaffinity(0)
    with LocalServer(options=["--pin"]) as server:
        tasks = Path(f"/proc/{server.pid}/task").iterdir()
        [data] = [int(task.name) for task in tasks if (task / "comm").read_text().strip() == "data-0"]
        [cpu] = os.sched_getaffinity(data)
        assert cpu in cpus


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ports: [dummy, dummy]\ngroups: [{ports: [0]}]\n", ["2:9: groups", "no group has port 1"]),
        (
            "ports: [dummy, dummy]\ngroups: [{ports: [0, 1]}, {ports: [0]}]\n",
            ["groups[1].ports[0]", "one group"],
        ),
        ("cores: [{cpu}, {cpu}]\n", ["cores[1]", "there already"]),
        (
            "groups: [{{ports: [0], cores: [{cpu}]}}, {{ports: [1], cores: [{cpu}]}}]\n",
            ["groups[1].cores[0]"],
        ),
        ("receive_threads: 17\n", ["1:18: receive_threads", "1 to 16"]),
    ],
)
def test_what_is_wrong_with_groups_is_told_with_its_place(write: Write, text: str, words: list[str]) -> None:
    cpu = min(os.sched_getaffinity(0))
    path = write(text.format(cpu=cpu) if "{cpu}" in text else text)
    error = refused("--config", str(path))
    assert str(path) in error
    for word in words:
        assert word in error
