"""What the examples in profiles/ send, beside being correct: what each docstring promises."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

PROFILES = Path(__file__).resolve().parents[2] / "profiles"
Simulate = Callable[..., list[Any]]


@pytest.fixture
def simulate(allosaur: Any, binary: str, tmp_path: Path) -> Simulate:
    """Run a profile in the simulator; give its packets as Scapy reads them."""

    def run(name: str, *options: object, limit: int = 500) -> list[Any]:
        import scapy.contrib.gtp
        import scapy.contrib.mpls  # noqa: F401
        from scapy.all import rdpcap

        output = tmp_path / f"{name}.pcap"
        ended = allosaur("sim", PROFILES / f"{name}.py", "-o", output, "--limit", limit, *options)
        assert ended.code == 0, ended
        return list(rdpcap(str(output)))

    return run


def sources(packets: list[Any]) -> list[str]:
    return [packet["IP"].src for packet in packets]


def gaps_us(packets: list[Any]) -> list[float]:
    times = [float(packet.time) * 1e6 for packet in packets]
    return [round(later - earlier) for earlier, later in itertools.pairwise(times)]


def test_bursts_end_by_themselves(simulate: Simulate) -> None:
    assert len(simulate("single_burst", "-t", "packets=77", limit=5000)) == 77
    growing = simulate("growing_bursts", "-t", "steps=4,first=3", limit=5000)
    assert list(Counter(sources(growing)).values()) == [3, 6, 12, 24]
    assert [gap for gap in gaps_us(growing) if gap > 1000] == [10_000] * 3


def test_silences_grow(simulate: Simulate) -> None:
    packets = simulate("silence_in_a_chain", "-t", "steps=3,first_ms=20", limit=5000)
    assert len(packets) == 20
    assert [gap for gap in gaps_us(packets) if gap > 1000] == pytest.approx([20_000, 40_000, 80_000], abs=1)


def test_the_two_directions_mirror_each_other(simulate: Simulate) -> None:
    there, back = (simulate("two_directions", "--direction", side, limit=50) for side in (0, 1))
    assert [(packet["IP"].src, packet["UDP"].sport) for packet in there] == [
        (packet["IP"].dst, packet["UDP"].dport) for packet in back
    ]


def test_bandwidths_are_what_they_say(simulate: Simulate) -> None:
    packets = simulate("bandwidth_shares", "-d", 2, limit=100_000)
    sent = Counter()  # type: Counter[int]
    for packet in packets:
        sent[packet["UDP"].dport] += len(packet) + 4 + (20 if packet["UDP"].dport == 80 else 0)
    assert sent[5060] == 100 * 218
    assert sent[554] * 8 / 2 == pytest.approx(4e6, rel=0.01)
    assert sent[80] * 8 / 2 == pytest.approx(2e6, rel=0.01)


def test_macs_are_the_ports_or_the_packets(simulate: Simulate) -> None:
    own, theirs = ("18:18:18:18:18:18", "10:10:10:10:10:10"), ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
    assert [(packet.src, packet.dst) for packet in simulate("own_macs", limit=4)] == [
        own,
        (theirs[0], own[1]),
        (own[0], theirs[1]),
        theirs,
    ]
    hosts = [packet.src for packet in simulate("mac_range", "-t", "hosts=300,step=2", limit=302)]
    assert hosts[:2] == ["02:00:01:00:00:00", "02:00:01:00:00:02"]
    assert hosts[299:] == ["02:00:01:00:02:56", *hosts[:2]]


def test_tags_and_labels_count(simulate: Simulate) -> None:
    pairs = [
        (packet["Dot1AD"].vlan, packet["Dot1Q"].vlan)
        for packet in simulate("qinq", "-t", "customers=3,providers=2", limit=7)
    ]
    assert pairs == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (1, 1)]
    labels = [packet["MPLS"].payload for packet in simulate("mpls", "-t", "services=3", limit=4)]
    assert [(label.label, label.s, label.ttl) for label in labels] == [
        (number, 1, 64) for number in (1000, 1001, 1002, 1000)
    ]


@pytest.mark.parametrize(
    ("name", "header", "field", "tunable"),
    [
        ("vxlan", "VXLAN", "vni", "networks"),
        ("gre", "GRE", "key", "tunnels"),
        ("gtpu", "GTP_U_Header", "teid", "users"),
    ],
)
def test_tunnels_count_and_what_is_inside_too(
    simulate: Simulate, name: str, header: str, field: str, tunable: str
) -> None:
    from scapy.all import GRE, IP, VXLAN
    from scapy.contrib.gtp import GTP_U_Header

    kind = {"VXLAN": VXLAN, "GRE": GRE, "GTP_U_Header": GTP_U_Header}[header]
    packets = simulate(name, "-t", f"{tunable}=4", limit=5)
    assert [getattr(packet[kind], field) for packet in packets] == [1, 2, 3, 4, 1]
    inner = [packet.getlayer(IP, nb=2).src for packet in packets]
    assert len(set(inner)) == (4 if name == "gtpu" else 5)
    assert len({packet[IP].src for packet in packets}) == 1


def test_six_in_four(simulate: Simulate) -> None:
    packets = simulate("ipv6_in_ipv4", limit=100)
    assert len({packet["IPv6"].src for packet in packets}) == 100
    assert {packet["IP"].proto for packet in packets} == {41}


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_fragments_make_the_datagram_again(simulate: Simulate, order: str) -> None:
    packets = simulate("fragments", "-t", f"rounds=2,order={order}")
    offsets = [packet["IP"].frag * 8 for packet in packets]
    pieces = sorted(set(offsets), reverse=order == "backward")
    assert offsets == pieces * 2
    last = max(packets, key=lambda packet: packet["IP"].frag)
    assert last["IP"].frag * 8 + last["IP"].len - 20 == 4008


def test_each_query_has_its_number(simulate: Simulate) -> None:
    packets = simulate("dns_queries", "-t", "name=a.example", limit=50)
    assert [packet["DNS"].id for packet in packets] == list(range(50))
    assert packets[0]["DNS"].qd[0].qname == b"a.example."
    assert len(set(sources(packets))) > 40


def test_flows_repeat(simulate: Simulate) -> None:
    for name, option in (("repeating_random", "flows=20"), ("cached_packets", "packets=20")):
        clients = sources(simulate(name, "-t", option, limit=60))
        assert clients == clients[:20] * 3
        assert len(set(clients)) > 15
    flows = simulate("tcp_ports", "-t", "flows=10", limit=20)
    assert len({(packet["TCP"].sport, packet["TCP"].dport) for packet in flows}) == 10


def test_the_odometer_turns(simulate: Simulate) -> None:
    expected = [f"16.0.{net}.{host}" for net in (0, 17, 64, 200) for host in (1, 2, 3)]
    assert sources(simulate("odometer", "-t", "hosts=3", limit=13)) == [*expected, expected[0]]


def test_sizes(simulate: Simulate) -> None:
    def sizes(name: str, *options: object, limit: int) -> list[int]:
        return [len(packet) + 4 for packet in simulate(name, *options, limit=limit)]

    assert sizes("rfc2544_sizes", limit=8) == [64, 128, 256, 512, 1024, 1280, 1518, 64]
    assert sizes("jumbo_frames", limit=4) == [9018, 64, 9018, 64]
    assert Counter(sizes("imix_ipv6", limit=480)) == {78: 280, 594: 160, 1518: 40}
    assert set(sizes("line_rate", "-t", "size=200", limit=5)) == {200}
    assert set(sizes("argparse_tunables", "-t", "size=300", limit=5)) == {300}


def test_every_host_is_announced_once(simulate: Simulate) -> None:
    packets = simulate("gratuitous_arp", "-t", "hosts=260", limit=5000)
    assert len(packets) == 260
    for number, packet in enumerate(packets, start=1):
        arp = packet["ARP"]
        assert arp.psrc == arp.pdst == str(IPv4Address("16.0.0.0") + number)
        assert arp.hwsrc == packet.src == f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def test_every_stream_sends(simulate: Simulate) -> None:
    packets = simulate("many_streams", "-t", "count=300", limit=600)
    assert set(Counter(sources(packets)).values()) == {2}
    assert len({float(packet.time) for packet in packets[:300]}) == 300


def test_groups_have_their_macs(simulate: Simulate) -> None:
    for packet in simulate("multicast", limit=20):
        octets = [int(octet) for octet in packet["IP"].dst.split(".")]
        assert packet.dst == "01:00:5e:" + ":".join(f"{octet:02x}" for octet in octets[1:])


def test_classes_and_hops(simulate: Simulate) -> None:
    marks = Counter(packet["IP"].tos >> 2 for packet in simulate("dscp_classes", limit=70))
    assert marks == dict.fromkeys((0, 8, 10, 18, 26, 34, 46), 10)
    hops = [(packet["IP"].ttl, packet["UDP"].dport) for packet in simulate("ttl_walk", limit=31)]
    assert hops == [(ttl, 33434 + ttl) for ttl in (*range(1, 31), 1)]


def test_every_host_is_pinged(simulate: Simulate) -> None:
    packets = simulate("ping_sweep", "-t", "first=48.0.0.5,last=48.0.0.7", limit=4)
    assert [packet["IP"].dst for packet in packets] == ["48.0.0.5", "48.0.0.6", "48.0.0.7", "48.0.0.5"]


def test_noise_differs_and_is_the_same_each_time(simulate: Simulate) -> None:
    first, again = simulate("random_payload", limit=100), simulate("random_payload", limit=100)
    assert len({bytes(packet) for packet in first}) == 100
    assert [bytes(packet) for packet in first] == [bytes(packet) for packet in again]


def test_captures(simulate: Simulate) -> None:
    from scapy.all import rdpcap

    recorded = rdpcap(str(PROFILES / "captures" / "dns.pcap"))
    assert {bytes(packet)[14:] for packet in simulate("capture_packet", limit=3)} == {bytes(recorded[0])[14:]}
    for direction, side in ((0, recorded[::2]), (1, recorded[1::2])):
        sent = simulate("capture_replay", "-t", "rounds=2", "--direction", direction)
        assert [bytes(packet)[14:] for packet in sent] == [bytes(packet)[14:] for packet in side] * 2
    clients = Counter(sources(simulate("capture_new_clients", "-t", "rounds=30")))
    assert len(clients) == 30
    assert set(clients.values()) == {2}


def test_each_client_uses_its_ports_in_turn(simulate: Simulate) -> None:
    flows = [
        (packet["IP"].src, packet["UDP"].sport)
        for packet in simulate("client_ports", "-t", "clients=3,ports=2", limit=7)
    ]
    expected = [(f"16.0.0.{client}", port) for port in (1025, 1026) for client in (1, 2, 3)]
    assert flows == [*expected, expected[0]]


def test_only_the_bits_of_the_mask_change(simulate: Simulate) -> None:
    tags = [packet["Dot1Q"] for packet in simulate("masked_bits", "-t", "vlan=300", limit=9)]
    assert [(tag.prio, tag.vlan) for tag in tags] == [(at % 8, 300) for at in range(9)]


def test_counted_streams_send_alike(simulate: Simulate) -> None:
    ports = Counter(packet["UDP"].dport for packet in simulate("counted_streams", "-t", "count=4", limit=40))
    assert ports == dict.fromkeys(range(5000, 5004), 10)


def test_an_unsplit_counter_is_whole_on_each_thread(simulate: Simulate) -> None:
    pairs = [
        (packet["IP"].src, packet["IP"].dst) for packet in simulate("unsplit_counter", "--cores", 3, limit=20)
    ]
    assert pairs == [(f"16.0.0.{1 + at}", f"48.0.0.{1 + at // 3 % 7}") for at in range(20)]


def test_connects_and_pings_of_many(simulate: Simulate) -> None:
    connects = simulate("tcp_connects", "-t", "clients=2", limit=4)
    assert [(packet["IP"].src, packet["TCP"].sport) for packet in connects] == [
        (f"16.0.0.{client}", port) for port in (1025, 1026) for client in (1, 2)
    ]
    assert len({packet["TCP"].chksum for packet in connects}) > 1
    pings = simulate("icmpv6_echo", "-t", "hosts=3", limit=4)
    assert [packet["IPv6"].dst[-1] for packet in pings] == ["1", "2", "3", "1"]
    assert [packet["ICMPv6 Echo Request"].seq for packet in pings] == [0, 1, 2, 3]


def test_timed_packets_keep_their_rate_beside_the_load(simulate: Simulate) -> None:
    for rate, background in (("1", 100), ("2", 200)):
        packets = simulate("latency_streams", "-m", rate, limit=2 * background)
        ports = Counter(packet["UDP"].dport for packet in packets)
        # A thousand a second are timed, whatever the load is.
        assert ports[13] == 2
        assert {len(packet) for packet in packets} == {124}


def test_each_pinned_stream_sends_alike(simulate: Simulate) -> None:
    packets = simulate("pinned_cores", "--cores", 3, "-t", "cores=3", limit=60)
    assert Counter(packet["UDP"].sport for packet in packets) == {1000: 20, 1001: 20, 1002: 20}
