"""Two linked ports of a real server: one is a host, the other asks it; and a DHCP server of the test."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    VLAN,
    PacketBuffer,
    STLClient,
    STLError,
    STLServiceARP,
    STLServiceDHCP,
    STLServiceICMP,
    STLServiceIPv6ND,
)
from allosaur.api import ARP, ICMP, IP, UDP, Ether, ICMPv6EchoRequest, ICMPv6ND_NS, IPv6
from allosaur.server import LocalServer
from allosaur.services._arp import ServiceFilterARP
from allosaur.services._dhcp import ServiceFilterDHCP
from allosaur.services._icmp import ServiceFilterICMP
from allosaur.services._icmpv6 import ServiceFilterIPv6
from allosaur.services._nd import ServiceFilterIPv6NDP

_spec = importlib.util.spec_from_file_location("hosts", Path(__file__).with_name("hosts.py"))
assert _spec is not None
assert _spec.loader is not None
hosts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hosts)

MINE, THEIRS, THEIRS6 = "192.0.2.1", "192.0.2.2", "2001:db8::2"


@pytest.fixture
def live(live_server: LocalServer) -> Iterator[STLClient]:
    with live_server.client() as connected:
        connected.reset()
        connected.set_service_mode()
        yield connected


@pytest.fixture
def linked(live: STLClient) -> STLClient:
    """Both ports have an address, and know each other."""
    live._layers.configure("set_l3", [1], src_addr=THEIRS, dst_addr=MINE)
    live.set_l3_mode(0, MINE, THEIRS)
    live.resolve([1])
    return live


def test_ports_find_each_other(linked: STLClient) -> None:
    assert linked.get_resolved_ports() == [0, 1]
    macs = [linked.get_port(port).src_mac for port in (0, 1)]
    assert [linked.get_port_attr(port)["dst_mac"] for port in (1, 0)] == macs


def test_a_gateway_in_a_vlan(live: STLClient) -> None:
    live.set_vlan([0, 1], [100, 200])
    live._layers.configure("set_l3", [1], src_addr=THEIRS, dst_addr=MINE)
    live.set_l3_mode(0, MINE, THEIRS, vlan=[100, 200])
    assert live.get_port(0).is_resolved
    (record,) = live.ping_ip(0, THEIRS, count=1)
    assert record["status"] == "success"
    # In another VLAN there is nobody.
    context = live.create_service_ctx(0)
    arp = STLServiceARP(context, THEIRS, MINE, vlan=7, timeout_sec=0.2)
    context.run(arp)
    assert not arp.get_record()


def test_ping(linked: STLClient) -> None:
    records = linked.ping_ip(0, THEIRS, pkt_size=1500, count=3, interval_sec=0)
    assert [(one["status"], one["src_ip"], one["ttl"]) for one in records] == [("success", THEIRS, 64)] * 3
    assert {one.pkt_size for one in records} == {1500}
    assert all(one["rtt"] > 0 for one in records)
    (silent,) = linked.ping_ip(0, "192.0.2.77", count=1, timeout_sec=0.2)
    assert silent["status"] == "timeout"


def test_ping_and_neighbors_over_ipv6(live: STLClient) -> None:
    live.conf_ipv6(0, True)
    live.conf_ipv6(1, True, THEIRS6)
    (record,) = live.ping_ip(0, THEIRS6, count=1)
    assert (record["status"], record["src_ip"]) == ("success", THEIRS6)
    context = live.create_service_ctx(0)
    nd = STLServiceIPv6ND(context, dst_ip=THEIRS6)
    context.run(nd)
    assert nd.get_record().dst_mac == live.get_port(1).src_mac
    nodes = live.scan6([0], timeout=0.3)[0]
    assert [(node["type"], node["mac"]) for node in nodes] == [("Host", live.get_port(1).src_mac)]


def test_services_side_by_side(linked: STLClient) -> None:
    context = linked.create_service_ctx(port=0)
    arps = [STLServiceARP(context, THEIRS, f"192.0.2.{number}") for number in range(100, 120)]
    pings = [STLServiceICMP(context, THEIRS) for _ in range(20)]
    context.run([*arps, *pings], pps=5000)
    assert all(arp.get_record() for arp in arps)
    assert {ping.get_record()["status"] for ping in pings if ping.get_record()} == {"success"}
    assert linked.get_capture_status() == {}


def test_a_host_is_silent_outside_service_mode(live_server: LocalServer) -> None:
    with live_server.client() as client:
        client.reset()
        with pytest.raises(STLError, match="service mode"):
            client.ping_ip(0, THEIRS)


@contextmanager
def dhcp_server(server: LocalServer, port: int) -> Iterator[Any]:
    """A DHCP server on a port, as another user: it hears by the receive queue, and pushes its answers."""
    leases = hosts.DhcpServer()
    done = threading.Event()
    ready = threading.Event()

    def serve() -> None:
        with STLClient(
            username="dhcp", server=server.host, sync_port=server.rpc_port, async_port=server.pub_port
        ) as client:
            client.acquire([port])
            client.set_service_mode([port])
            client.set_rx_queue([port], size=100)
            ready.set()
            while not done.wait(0.002):
                for packet in client.get_rx_queue_pkts(port):
                    for answer in leases.answers(packet["binary"]):
                        client.push_packets(PacketBuffer(answer), ports=[port])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(10)
        yield leases
    finally:
        done.set()
        thread.join()


def test_leases_of_a_dhcp_server(live_server: LocalServer) -> None:
    with live_server.client() as client, dhcp_server(live_server, port=1) as server:
        client.reset([0])
        client.set_service_mode([0])
        context = client.create_service_ctx(port=0)
        clients = [STLServiceDHCP(mac=f"02:00:00:00:01:{number:02x}") for number in range(5)]
        context.run(clients)
        leases = [one.get_record() for one in clients]
        assert sorted(lease.client_ip for lease in leases if lease) == [
            f"198.51.100.{number}" for number in range(10, 15)
        ]
        assert all(lease.subnet == "255.255.255.0" for lease in leases if lease)
        context.run(clients)
        assert [one.state for one in clients] == ["INIT"] * 5
        assert eventually_empty(server)


def eventually_empty(server: Any) -> bool:
    waiting = threading.Event()
    for _ in range(1000):
        if not server.leases:
            return True
        waiting.wait(0.01)
    return False


def test_what_is_known_of_a_port_in_words(linked: STLClient) -> None:
    linked.set_vlan([0], [100, 200])
    linked.conf_ipv6(0, True)
    linked.set_rx_queue([0], size=5)
    info = linked.get_port_attr(0)
    theirs = linked.get_port(1).src_mac
    assert (info["layer_mode"], info["src_ipv4"], info["dest"], info["arp"]) == ("IPv4", MINE, THEIRS, theirs)
    assert (info["vlan"], info["rx_queue"], info["service"]) == ("100/200 (QinQ)", "[0 / 5]", True)
    assert info["ipv6"].startswith("fe80::")
    other = linked.get_port_attr(1)
    assert (other["vlan"], other["ipv6"], other["rx_queue"]) == ("-", "off", "off")


@pytest.mark.parametrize("vlan", [None, 7, [100, 200]])
def test_the_filters_of_services_see_through_tags(live: STLClient, vlan: Any) -> None:
    payloads: dict[type[Any], Any] = {
        ServiceFilterARP: ARP(pdst=MINE),
        ServiceFilterICMP: IP() / ICMP(),
        ServiceFilterIPv6NDP: IPv6() / ICMPv6ND_NS(),
        ServiceFilterIPv6: IPv6() / ICMPv6EchoRequest(),
        ServiceFilterDHCP: IP() / UDP(sport=67, dport=68) / bytes(20),
    }
    other = IP() / UDP(dport=1) / bytes(20)
    for kind, payload in payloads.items():
        capture = live.start_capture(rx_ports=[1], bpf_filter=kind().get_bpf_filter())["id"]
        head = Ether(src=hosts.MAC, dst=hosts.MAC)
        frames = [PacketBuffer(VLAN(vlan).embed(head.copy() / one)) for one in (other, payload, other)]
        live.push_packets([*frames, frames[1]], ports=[0])
        packets: list[Any] = []
        deadline = time.monotonic() + 5
        while len(packets) < 2 and time.monotonic() < deadline:
            fetched: list[Any] = []
            live.fetch_capture_packets(capture, fetched)
            packets += fetched
        assert [packet["binary"][: len(frames[1].buffer)] for packet in packets] == [frames[1].buffer] * 2, (
            kind
        )
        live.stop_capture(capture)
