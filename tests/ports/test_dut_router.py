"""A Linux router between two ports: what we count equals what its kernel forwarded, dropped and answered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from allosaur import STLClient, STLServiceIPv6ND
from allosaur.server import LocalServer
from scapy.all import ICMP, IP, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPerror, IPv6, TCPerror, UDPerror

V6 = {"source": "2001:db8::2", "to": "2001:db8:1::2"}
BACK = {"source": "10.0.1.2", "to": "10.0.0.2"}
BACK_V6 = {"source": V6["to"], "to": V6["source"]}


@pytest.fixture
def router(network: Any, devices: ModuleType) -> Any:
    """A router of IPv4, which sends nothing of its own."""
    return devices.Router(network)


@pytest.fixture
def router_of_both(network: Any, devices: ModuleType) -> Any:
    return devices.Router(network, ipv6=True)


@contextlib.contextmanager
def client_on(router: Any) -> Iterator[STLClient]:
    """A client of a server on both sides of the router, whose streams go to it."""
    with LocalServer(ports=router.ports) as server, server.client() as client:
        client.reset()
        for port in (0, 1):
            client.set_l2_mode(port=port, dst_mac=router.mac(port))
        yield client


@pytest.fixture
def client(router: Any) -> Iterator[STLClient]:
    with client_on(router) as client:
        yield client


def test_groups_and_latency_are_what_the_router_forwarded(router_of_both: Any, traffic: ModuleType) -> None:
    router = router_of_both
    there = [
        traffic.counted(1, traffic.udp(60), 8_000, 4_000),
        traffic.counted(2, traffic.udp(600), 8_000, 4_000),
        traffic.counted(3, traffic.tcp(1514), 2_000, 1_000),
        traffic.counted(4, traffic.udp(80, **V6), 8_000, 4_000),
        traffic.measured(5, traffic.udp(100), 2_000),
        traffic.measured(6, traffic.udp(100, **V6), 2_000),
    ]
    back = [
        traffic.counted(7, traffic.udp(60, **BACK), 8_000, 4_000),
        traffic.measured(8, traffic.udp(128, **BACK_V6), 1_000, 500),
    ]
    with client_on(router) as client:
        stats = traffic.run(client, {0: there, 1: back})
    sent = {1: 8_000, 2: 8_000, 3: 2_000, 4: 8_000, 5: 2_000, 6: 2_000}
    assert {pg_id: traffic.counts(stats, pg_id) for pg_id in sent} == {
        pg_id: (packets, packets) for pg_id, packets in sent.items()
    }
    assert traffic.counts(stats, 7, 1, 0) == (8_000, 8_000)
    assert traffic.counts(stats, 8, 1, 0) == (1_000, 1_000)
    for pg_id, packets in ((5, 2_000), (6, 2_000), (8, 1_000)):
        assert traffic.errors(stats, pg_id) == {}
        latency = stats["latency"][pg_id]["latency"]
        assert sum(latency["histogram"].values()) == packets
        assert latency["total_min"] <= latency["p50"] <= latency["p99"] <= latency["total_max"] + 1
    kernel = router.counters()
    assert (kernel["in0"], kernel["out1"]) == (30_000, 30_000)
    assert (kernel["in1"], kernel["out0"]) == (9_000, 9_000)
    assert (
        kernel["forwarded"] == router.protocol()["ForwDatagrams"] + router.protocol("Ip6")["OutForwDatagrams"]
    )
    assert [router.lost(link) for link in (0, 1)] == [0, 0]
    assert stats["total"]["opackets"] == kernel["in0"] + kernel["in1"]


def test_what_the_router_drops_is_missing_from_its_group_and_from_no_other(
    router: Any, client: STLClient, traffic: ModuleType
) -> None:
    router.rules(
        "table inet firewall {\n counter refused { }\n chain pass {\n type filter hook forward priority 0;\n"
        ' udp dport 12 udp sport 7 counter name "refused" drop\n }\n}\n'
    )
    streams = [
        traffic.counted(1, traffic.udp(60), 4_000, 2_000),
        traffic.counted(2, traffic.udp(60, sport=7), 3_000, 1_500),
        traffic.counted(3, traffic.udp(60, ttl=1), 2_000, 1_000),
        traffic.counted(4, traffic.udp(60, to="198.51.100.1"), 1_000, 500),
        traffic.measured(5, traffic.udp(60, sport=7), 500),
        traffic.measured(6, traffic.udp(60), 500),
    ]
    stats = traffic.run(client, {0: streams})
    received = {pg_id: traffic.counts(stats, pg_id)[1] for pg_id in range(1, 7)}
    assert received == {1: 4_000, 2: 0, 3: 0, 4: 0, 5: 0, 6: 500}
    assert traffic.errors(stats, 6) == {}
    kernel, ip = router.counters(), router.protocol()
    assert kernel["in0"] == stats[0]["opackets"] == 11_000
    assert kernel["refused"] == 3_500
    assert ip["InHdrErrors"] == 2_000
    assert ip["InReceives"] - ip["ForwDatagrams"] - ip["InHdrErrors"] == 1_000
    assert kernel["out1"] == received[1] + received[6] == stats[1]["ipackets"]
    # The sender hears of some packets that were too old, or had nowhere to go.
    assert 0 < router.protocol("Icmp")["OutMsgs"] == kernel["out0"] == stats[0]["ipackets"]


def test_a_full_wire_behind_the_router_loses_what_we_say_it_lost(
    router: Any, client: STLClient, traffic: ModuleType
) -> None:
    # 2 Mbit/s, and a queue of 20 kB, for 8 Mbit/s of load.
    limit = ["rate", "2mbit", "burst", "10kb", "limit", "20kb"]
    router.run("tc", "qdisc", "add", "dev", router.far(1), "root", "tbf", *limit)
    streams = [
        traffic.counted(1, traffic.udp(1000), 500, 500),
        traffic.measured(2, traffic.udp(1000), 500, 430),
    ]
    stats = traffic.run(client, {0: streams})
    forwarded = router.sent(1)
    received = [traffic.counts(stats, pg_id)[1] for pg_id in (1, 2)]
    assert router.counters()["in0"] == 1_000
    assert 100 < forwarded < 600
    assert sum(received) == forwarded == stats[1]["ipackets"]
    # Of the last ones nobody can know whether they still come.
    assert 100 < traffic.errors(stats, 2)["dropped"] <= 500 - received[1]


def test_the_gateway_is_found_by_arp_and_answers(
    network: Any, devices: ModuleType, traffic: ModuleType
) -> None:
    router = devices.Router(network, ipv6=True, neighbors=False)
    with LocalServer(ports=router.ports) as server, server.client() as client:
        client.reset()
        with client.service_mode([0, 1]):
            for port in (0, 1):
                client.set_l3_mode(port, f"10.0.{port}.2", f"10.0.{port}.1")
            assert [client.get_port_info(ports=[port])[0]["arp"] for port in (0, 1)] == [
                router.mac(0),
                router.mac(1),
            ]
            (pong,) = client.ping_ip(0, "10.0.0.1", count=1)
            assert (pong["status"], pong["src_ip"], pong["ttl"]) == ("success", "10.0.0.1", 64)
            # Through the router to our other port, which it finds by ARP; that one answers.
            (pong,) = client.ping_ip(0, "10.0.1.2", count=1)
            assert (pong["status"], pong["src_ip"]) == ("success", "10.0.1.2")
            assert pong["ttl"] == 63
        # The router asks who our port is, and is answered, before the first packet leaves it.
        router.run("ip", "neighbor", "flush", "all")
        stats = traffic.run(client, {0: [traffic.counted(1, traffic.udp(60), 500, 1_000)]})
        assert traffic.counts(stats, 1)[0] == 500
        neighbors = router.run("ip", "-4", "neighbor", "show", "dev", router.far(1))
        assert network.mac(None, router.ports[1]) in neighbors
        # Until the answer the kernel keeps as many packets as it likes, and drops the rest.
        assert traffic.counts(stats, 1)[1] == router.counters()["out1"] - 1 > 400


def test_neighbors_of_ipv6_find_each_other(network: Any, devices: ModuleType, traffic: ModuleType) -> None:
    router = devices.Router(network, ipv6=True, neighbors=False)
    with LocalServer(ports=router.ports) as server, server.client() as client:
        client.reset()
        with client.service_mode([0, 1]):
            for port in (0, 1):
                client.conf_ipv6(port, True, f"2001:db8:{port}::2")
            context = client.create_service_ctx(0)
            discovery = STLServiceIPv6ND(context, dst_ip="2001:db8::1", src_ip="2001:db8::2")
            context.run(discovery)
            assert discovery.get_record().dst_mac == router.mac(0)
            client.set_l2_mode(port=0, dst_mac=discovery.get_record().dst_mac)
            (pong,) = client.ping_ip(0, "2001:db8::1", count=1)
            assert (pong["status"], pong["src_ip"]) == ("success", "2001:db8::1")
            nodes = client.scan6([0], timeout=1)[0]
            assert router.mac(0) in [node["mac"] for node in nodes]
        stats = traffic.run(client, {0: [traffic.counted(1, traffic.udp(80, **V6), 500, 1_000)]})
        neighbors = router.run("ip", "-6", "neighbor", "show", V6["to"])
        assert network.mac(None, router.ports[1]) in neighbors
        assert traffic.counts(stats, 1)[1] > 400


def test_errors_of_the_router_are_seen_in_service_mode(router_of_both: Any, traffic: ModuleType) -> None:
    router = router_of_both
    # The wire behind the router takes shorter packets than the one before it.
    router.run("ip", "link", "set", router.far(1), "mtu", "1400")
    with client_on(router) as client:
        client.set_service_mode(ports=[0])

        def errors_for(packet: Any, bpf_filter: str) -> Any:
            def send() -> None:
                client.push_packets([bytes(packet)], ports=[0])

            return traffic.captured(client, 0, bpf_filter, send, 1)[0]

        error = errors_for(traffic.udp(60, to="198.51.100.1"), "icmp")
        assert (error[ICMP].type, error[ICMP].code) == (3, 0)
        error = errors_for(traffic.udp(1414, ttl=1), "icmp")
        assert (error[ICMP].type, error[IP].src) == (11, "10.0.0.1")
        assert (error[IPerror].dst, error[UDPerror].dport) == ("10.0.1.2", 12)
        error = errors_for(traffic.udp(1415, flags="DF"), "icmp")
        assert (error[ICMP].type, error[ICMP].code, error[ICMP].nexthopmtu) == (3, 4, 1400)
        error = errors_for(traffic.udp(80, hlim=1, **V6), "icmp6 and ip6[40] = 3")
        assert error[IPv6].src == "2001:db8::1"
        assert ICMPv6TimeExceeded in error
        error = errors_for(traffic.udp(1415, **V6), "icmp6 and ip6[40] = 2")
        assert error[ICMPv6PacketTooBig].mtu == 1400
        reset = errors_for(traffic.tcp(60, to="10.0.0.1"), "tcp")
        assert reset.sprintf("%TCP.flags%") == "RA"
        assert TCPerror not in reset
    kernel = router.counters()
    assert kernel["in0"] == 6
    assert kernel["out1"] == 0


def test_what_the_router_cuts_arrives_in_pieces(router: Any, client: STLClient, traffic: ModuleType) -> None:
    router.run("ip", "link", "set", router.far(1), "mtu", "1000")
    stats = traffic.run(client, {0: [traffic.counted(1, traffic.udp(1514), 500, 1_000)]})
    # Each piece has the sign of its packet: one packet became two.
    assert traffic.counts(stats, 1) == (500, 1_000)
    assert router.protocol()["FragOKs"] == 500
    assert router.counters()["in0"] == 500
    assert router.sent(1) == 1_000 == stats[1]["ipackets"]
