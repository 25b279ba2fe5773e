"""A NAT between two ports: it rewrites addresses, ports and checksums, and everything is still counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from socket import inet_aton
from types import ModuleType
from typing import Any

import pytest
from allosaur import STLVM, STLClient
from allosaur.server import LocalServer
from scapy.all import IP, TCP, UDP, Ether

OUTSIDE = "10.0.1.1"
FORWARDS = {8080: "10.0.0.2:80"}


@pytest.fixture
def nat(network: Any, devices: ModuleType) -> Any:
    return devices.Nat(network, forwards=FORWARDS)


@pytest.fixture
def client(nat: Any) -> Iterator[STLClient]:
    """A client of a server with port 0 inside and port 1 outside, whose streams go to the NAT."""
    with LocalServer(ports=nat.ports) as server, server.client() as client:
        client.reset()
        for port in (0, 1):
            client.set_l2_mode(port=port, dst_mac=nat.mac(port))
        yield client


def to_forwarded(kind: Any, size: int = 60) -> Any:
    packet = Ether() / IP(src="10.0.1.2", dst=OUTSIDE) / kind(sport=5000, dport=8080)
    return packet / bytes(size - len(packet))


def assert_checksums_are_right(packet: Any) -> None:
    kind = TCP if TCP in packet else UDP
    sums = packet[IP].chksum, packet[kind].chksum
    del packet[IP].chksum, packet[kind].chksum
    packet = Ether(bytes(packet))
    assert sums == (packet[IP].chksum, packet[kind].chksum)


def test_groups_and_latency_are_what_the_nat_forwarded(
    nat: Any, client: STLClient, traffic: ModuleType
) -> None:
    there = [
        traffic.counted(1, traffic.udp(60), 8_000, 4_000),
        traffic.counted(2, traffic.udp(900, sport=7), 8_000, 4_000),
        traffic.counted(3, traffic.tcp(60), 2_000, 1_000),
        traffic.measured(4, traffic.udp(100, sport=9), 2_000),
        traffic.measured(5, traffic.udp(99, sport=10), 2_000),
    ]
    back = [
        traffic.counted(6, to_forwarded(UDP), 4_000, 2_000),
        traffic.measured(7, to_forwarded(UDP, 128), 1_000, 500),
    ]
    stats = traffic.run(client, {0: there, 1: back})
    kernel = nat.counters()
    assert kernel["invalid"] == 0
    sent = {1: 8_000, 2: 8_000, 3: 2_000, 4: 2_000, 5: 2_000}
    assert {pg_id: traffic.counts(stats, pg_id) for pg_id in sent} == {
        pg_id: (packets, packets) for pg_id, packets in sent.items()
    }
    assert traffic.counts(stats, 6, 1, 0) == (4_000, 4_000)
    assert traffic.counts(stats, 7, 1, 0) == (1_000, 1_000)
    for pg_id, packets in ((4, 2_000), (5, 2_000), (7, 1_000)):
        assert traffic.errors(stats, pg_id) == {}
        assert sum(stats["latency"][pg_id]["latency"]["histogram"].values()) == packets
    assert (kernel["in0"], kernel["out1"], kernel["forwarded"]) == (22_000, 22_000, 27_000)
    assert (kernel["in1"], kernel["out0"]) == (5_000, 5_000)
    assert (nat.received(0), nat.sent(1), nat.received(1), nat.sent(0)) == (22_000, 22_000, 5_000, 5_000)
    # One connection for each stream, but for the two that go to the forwarded port.
    assert nat.connection_count() == 6


@pytest.mark.parametrize("kind", ["counted", "measured"])
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_what_the_nat_rewrote_has_right_checksums(
    nat: Any, client: STLClient, traffic: ModuleType, kind: str, protocol: str
) -> None:
    client.set_service_mode(ports=[0, 1])
    stream = getattr(traffic, kind)
    for size in (100, 101):
        sending = stream(size, getattr(traffic, protocol)(size), 20, 1_000)
        for packet in traffic.captured(
            client, 1, protocol, lambda sending=sending: traffic.run(client, {0: [sending]}), 20
        ):
            assert (packet[IP].src, packet[IP].dst, len(packet)) == (OUTSIDE, "10.0.1.2", size)
            assert_checksums_are_right(packet)
    layer = UDP if protocol == "udp" else TCP
    sending = stream(1, to_forwarded(layer, 100), 20, 1_000)
    for packet in traffic.captured(client, 0, protocol, lambda: traffic.run(client, {1: [sending]}), 20):
        assert (packet[IP].src, packet[IP].dst, packet[layer].dport) == ("10.0.1.2", "10.0.0.2", 80)
        assert_checksums_are_right(packet)
    assert nat.counters()["invalid"] == 0


def test_every_flow_of_many_is_a_connection(nat: Any, client: STLClient, traffic: ModuleType) -> None:
    # 200 hosts with 25 ports each; what one NAT address cannot tell apart gets another port.
    hosts, ports = 200, 25
    vm = STLVM()
    vm.tuple_var(
        name="who", ip_min="10.0.0.2", ip_max=f"10.0.0.{hosts + 1}", port_min=2000, port_max=1999 + ports
    )
    vm.write(fv_name="who.ip", pkt_offset="IP.src")
    vm.write(fv_name="who.port", pkt_offset="UDP.sport")
    vm.fix_chksum_hw(l3_offset="IP", l4_offset="UDP", l4_type=11)
    flows = hosts * ports
    client.set_service_mode(ports=[0, 1])
    sending = traffic.counted(1, traffic.udp(64), 2 * flows, 10_000, vm=vm)
    capture = client.start_capture(rx_ports=[1], limit=3 * flows, bpf_filter="udp")["id"]
    stats = traffic.run(client, {0: [sending]})
    seen: list[dict[str, Any]] = []
    client.stop_capture(capture, seen)
    assert traffic.counts(stats, 1) == (2 * flows, 2 * flows)
    assert nat.connection_count() == flows
    assert nat.counters()["invalid"] == 0
    # Each flow has one source port outside, for both of its packets, and the NAT says the same.
    # Scapy would take ten seconds to read them: the addresses of IPv4 without options and of UDP.
    outside = [struct.unpack_from("!12x2xB11x4s4xH", packet["binary"]) for packet in seen]
    assert {(first_byte, source) for first_byte, source, _ in outside} == {(0x45, inet_aton(OUTSIDE))}
    source_ports = {port for _, _, port in outside}
    assert len(source_ports) == flows
    assert source_ports == {int(known["reply-dport"]) for known in nat.connections()}


def test_answers_find_their_way_back_to_the_host(nat: Any, client: STLClient, traffic: ModuleType) -> None:
    stats = traffic.run(client, {0: [traffic.counted(1, traffic.udp(60), 100, 1_000)]})
    assert traffic.counts(stats, 1) == (100, 100)
    (known,) = nat.connections()
    assert known["reply-dst"] == OUTSIDE
    answer = Ether() / IP(src="10.0.1.2", dst=OUTSIDE) / UDP(sport=12, dport=int(known["reply-dport"]))
    answers = [
        traffic.counted(2, answer / bytes(40), 100, 1_000),
        traffic.measured(3, answer / bytes(40), 100, 1_000),
        # Nobody asked for this one: it ends at the NAT, which says so.
        traffic.counted(
            4, Ether() / IP(src="10.0.1.2", dst=OUTSIDE) / UDP(sport=13, dport=9) / bytes(40), 50, 500
        ),
    ]
    stats = traffic.run(client, {1: answers})
    assert [traffic.counts(stats, pg_id, 1, 0) for pg_id in (2, 3, 4)] == [(100, 100), (100, 100), (50, 0)]
    assert nat.counters()["to-me"] == 50
