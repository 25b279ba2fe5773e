"""Addresses of ports and pushed packets: arguments, and the real server."""

from __future__ import annotations

import time
from typing import Any

import pytest
from allosaur import STLClient, STLError, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.api import ARP, IP, UDP, Ether
from allosaur.server import LocalServer


@pytest.fixture
def live(live_server: LocalServer) -> Any:
    with live_server.client() as connected:
        connected.reset(ports=[0, 1])
        yield connected


def received(client: STLClient, packets: int) -> int:
    """What port 1 received, once that many are there."""
    deadline = time.monotonic() + 10
    while (count := client.get_stats(ports=[1])[1]["ipackets"]) < packets and time.monotonic() < deadline:
        time.sleep(0.01)
    return int(count)


def test_the_destination_of_a_port(live: STLClient) -> None:
    live.set_l2_mode(0, "02:00:00:00:00:aa")
    assert live.get_port_attr(0)["dst_mac"] == "02:00:00:00:00:aa"


def test_ipv6_and_vlan_of_a_port(live: STLClient) -> None:
    live.conf_ipv6(0, True, "2001:db8::1")
    live.conf_ipv6(0, True)
    live.conf_ipv6(0, False)
    live.set_vlan(ports=[0], vlan=[100, 200])
    live.set_vlan(ports=[0], vlan=7)
    live.clear_vlan(ports=[0])
    live.set_vxlan(ports=[0], vni=100, local="192.0.2.1", remote="192.0.2.2", inner_mac="02:00:00:00:00:02")
    live.set_vxlan(ports=[0])


def test_pushed_packets_arrive(live: STLClient) -> None:
    request = Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="192.0.2.1", pdst="192.0.2.2")
    live.push_packets(request, ports=[0])
    live.push_packets([Ether() / IP() / UDP(), bytes(60), bytes(1514)], ports=[0], ipg_usec=10)
    assert received(live, 4) == 4
    assert live.get_stats()[0]["opackets"] == 4


def test_packets_are_pushed_beside_traffic(live: STLClient) -> None:
    burst = STLTXSingleBurst(total_pkts=20_000, pps=200_000)
    live.add_streams(STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=burst), ports=[0])
    live.start(ports=[0])
    live.push_packets([bytes(60)] * 10, ports=[0])
    live.wait_on_traffic(ports=[0])
    assert received(live, 20_010) == 20_010


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.set_l2_mode(0, "02:00"), ["dst_mac", "02:00:00:00:00:01"]),
        (lambda c: c.conf_ipv6(0, True, "192.0.2.1"), ["src_ipv6", "2001:db8::1"]),
        (lambda c: c.set_vlan([0], [1, 2, 3]), ["vlan", "one or two"]),
        (lambda c: c.set_vlan([0], 4096), ["vlan", "1 to 4095"]),
        (lambda c: c.push_packets([], [0]), ["pkts", "at least one"]),
        (lambda c: c.push_packets(bytes(13), [0]), ["13 bytes", "14 to 9238"]),
        (lambda c: c.push_packets([bytes(60)] * 3, [0], ipg_usec=500_000), ["ipg_usec", "1 s"]),
    ],
)
def test_wrong_arguments_are_named(client: STLClient, call: Any, words: list[str]) -> None:
    client.acquire(ports=[0])
    with pytest.raises(STLError) as error:
        call(client)
    assert all(word in str(error.value) for word in words), error.value
