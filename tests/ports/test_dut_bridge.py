"""A Linux bridge between ports: what it floods, what it has learned, and which VLANs it lets through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.server import LocalServer
from scapy.all import Dot1Q, Ether


@contextmanager
def client_on(bridge: Any) -> Iterator[STLClient]:
    with LocalServer(ports=bridge.ports) as server, server.client() as client:
        client.reset()
        yield client


def received(stats: Any, pg_id: int) -> Mapping[int, int]:
    """The ports that received packets of a group, and how many."""
    return {
        port: count
        for port, count in stats["flow_stats"][pg_id]["rx_pkts"].items()
        if port != "total" and count
    }


def tagged(packet: Any, vlan: int) -> Any:
    return Ether() / Dot1Q(vlan=vlan) / packet.payload


def test_a_bridge_floods_until_it_knows_who_is_where(
    network: Any, devices: ModuleType, traffic: ModuleType
) -> None:
    bridge = devices.Bridge(network, links=3)
    macs = [network.mac(None, port) for port in bridge.ports]
    with client_on(bridge) as client:
        client.set_l2_mode(port=0, dst_mac=macs[2])
        streams = [
            traffic.counted(1, traffic.udp(60), 2_000, 4_000),
            traffic.measured(2, traffic.udp(80), 500),
        ]
        stats = traffic.run(client, {0: streams})
        # Nobody has heard of the receiver: each packet goes to all but its sender.
        assert [received(stats, pg_id) for pg_id in (1, 2)] == [{1: 2_000, 2: 2_000}, {1: 500, 2: 500}]
        assert [bridge.where(mac) for mac in macs] == [0, None, None]
        # Each copy of a measured packet is one too many.
        assert traffic.errors(stats, 2)["dup"] == 500
        client.set_l2_mode(port=2, dst_mac=macs[0])
        stats = traffic.run(client, {2: [traffic.counted(3, traffic.udp(60), 10, 1_000)]})
        assert received(stats, 3) == {0: 10}
        assert [bridge.where(mac) for mac in macs] == [0, None, 2]
        stats = traffic.run(client, {0: streams})
        assert [received(stats, pg_id) for pg_id in (1, 2)] == [{2: 2_000}, {2: 500}]
        assert traffic.errors(stats, 2) == {}
        assert stats[1]["ipackets"] == 0
    assert [bridge.received(link) for link in range(3)] == [5_000, 0, 10]
    assert [bridge.sent(link) for link in range(3)] == [10, 2_500, 5_000]
    assert [bridge.lost(link) for link in range(3)] == [0, 0, 0]


def test_both_directions_and_all_lengths_pass_a_bridge(
    network: Any, devices: ModuleType, traffic: ModuleType
) -> None:
    bridge = devices.Bridge(network)
    with client_on(bridge) as client:
        # Each port's frames go to the other one: what a cable would do.
        streams = {
            port: [
                traffic.counted(1 + port, traffic.udp(60), 5_000, 5_000),
                traffic.counted(3 + port, traffic.udp(1514), 2_000, 2_000),
                traffic.counted(5 + port, tagged(traffic.udp(1514), 100), 1_000, 1_000),
                traffic.measured(7 + port, traffic.udp(512), 1_000),
            ]
            for port in (0, 1)
        }
        stats = traffic.run(client, streams)
        for port in (0, 1):
            sent = [traffic.counts(stats, pg_id + port, port, 1 - port) for pg_id in (1, 3, 5, 7)]
            assert sent == [(5_000, 5_000), (2_000, 2_000), (1_000, 1_000), (1_000, 1_000)]
            assert traffic.errors(stats, 7 + port) == {}
            assert bridge.received(port) == stats[port]["opackets"] == 9_000
            assert bridge.sent(port) == stats[port]["ipackets"] == 9_000
            assert stats[port]["obytes"] == stats[1 - port]["ibytes"]


def test_a_bridge_that_filters_keeps_vlans_apart(
    network: Any, devices: ModuleType, traffic: ModuleType
) -> None:
    if not devices.vlan_filtering_works(network):
        pytest.skip("this kernel's bridges do not filter VLANs: it lacks CONFIG_BRIDGE_VLAN_FILTERING")
    bridge = devices.Bridge(network, links=3, vlans={0: [10, 20, 30], 1: [10], 2: [20]})
    with client_on(bridge) as client:
        client.set_l2_mode(port=0, dst_mac="ff:ff:ff:ff:ff:ff")
        streams = [
            traffic.counted(vlan, tagged(traffic.udp(60), vlan), 1_000, 1_000) for vlan in (10, 20, 30, 40)
        ]
        stats = traffic.run(client, {0: [*streams, traffic.counted(50, traffic.udp(60), 1_000, 1_000)]})
        assert [received(stats, vlan) for vlan in (10, 20, 30, 40, 50)] == [
            {1: 1_000},
            {2: 1_000},
            {},
            {},
            {},
        ]
    assert bridge.received(0) == 5_000
    assert [bridge.sent(link) for link in (1, 2)] == [1_000, 1_000]
