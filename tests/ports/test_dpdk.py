"""Ports on DPDK's own drivers without hardware, in a server that was built with them."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest
from allosaur import STLClient, STLFlowStats, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Ether

SETTLE_S = 5.0


@pytest.fixture(scope="module")
def dpdk() -> None:
    """Skip where the server was built without DPDK; where it was built with it, it must start."""
    command = [
        str(find_binary()),
        "bench",
        "--case",
        "constant",
        "--seconds",
        "0.01",
        "--ports",
        "vdev:net_null",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "this server was built without" in result.stderr:
        pytest.skip("the server was built without DPDK: install libdpdk-dev and run `make install`")
    assert result.returncode == 0, result.stderr


def burst(packets: int, pps: float, size: int = 60, **options: Any) -> STLStream:
    packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
    packet /= bytes(index & 0xFF for index in range(size - len(packet)))
    mode = STLTXSingleBurst(total_pkts=packets, pps=pps)
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode, **options)


def run(client: STLClient, streams: list[STLStream], ports: list[int]) -> Any:
    client.reset()
    client.add_streams(streams, ports=ports)
    client.start(ports=ports)
    client.wait_on_traffic(ports=ports)


def received(client: STLClient, port: int, packets: int) -> Any:
    """Give the statistics once a port has received so many packets, or when they do not come."""
    until = time.monotonic() + SETTLE_S
    while (stats := client.get_stats())[port]["ipackets"] < packets and time.monotonic() < until:
        time.sleep(0.1)
    return stats


def test_exactly_what_was_asked_for_is_sent(dpdk: None) -> None:
    ports = ["vdev:net_null", "vdev:net_null"]
    with LocalServer(ports=ports, cores=2) as server, server.client() as client:
        streams = [burst(12_345, 100_000, size) for size in (60, 594, 1514)]
        run(client, streams, [0, 1])
        stats = client.get_stats()
        for port in (0, 1):
            assert stats[port]["opackets"] == 3 * 12_345
            assert stats[port]["obytes"] == 12_345 * (64 + 598 + 1518)
            assert stats[port]["ipackets"] == 0, "net_null makes nothing up unless it is told to"


def test_what_goes_into_a_ring_comes_out_of_it(dpdk: None) -> None:
    with LocalServer(ports=["vdev:net_ring", "memory"], cores=2) as server, server.client() as client:
        streams = [burst(3_000, 30_000, 60 + 100 * n, flow_stats=STLFlowStats(n)) for n in range(1, 5)]
        run(client, streams, [0])
        stats = received(client, 0, 12_000)
        assert (stats[0]["opackets"], stats[0]["ipackets"]) == (12_000, 12_000)
        assert stats[0]["obytes"] == stats[0]["ibytes"]
        for n in range(1, 5):
            flow = client.get_pgid_stats([n])["flow_stats"][n]
            assert (flow["tx_pkts"][0], flow["rx_pkts"][0]) == (3_000, 3_000)


def test_the_kernel_counts_what_dpdk_sends(dpdk: None, network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    device = f"vdev:net_af_packet,iface={near},qpairs=2"
    with LocalServer(ports=[device]) as server, server.client() as client:
        run(client, [burst(20_000, 100_000), burst(1_000, 5_000, 1514)], [0])
        assert client.get_stats()[0]["opackets"] == 21_000
        assert network.received(far, other) == (21_000, 20_000 * 60 + 1_000 * 1514)


def test_a_port_says_what_it_is(dpdk: None) -> None:
    with LocalServer(ports=["vdev:net_null,size=60"]) as server, server.client() as client:
        info = client.get_port_info(ports=[0])[0]
        assert info["driver"] == "dpdk"
        assert info["link"] == "UP"
        assert info["hw_mac"] != "00:00:00:00:00:00"


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("vdev:net_nonsense", ["vdev:net_nonsense", "guide of network drivers"]),
        ("pci:0000:7f:1f.7", ["pci:0000:7f:1f.7", "vfio-pci"]),
    ],
)
def test_a_device_that_is_not_there_says_what_to_do(dpdk: None, port: str, words: list[str]) -> None:
    command = [str(find_binary()), "serve", "--ports", port, "--rpc-port", "0", "--pub-port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert all(word in result.stderr for word in words), result.stderr
