"""Every example in profiles/: it says how to run it, is short, and sends what it says in the simulator."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.py"))
LINES_MAX = 50
NOT_CHECKED = {"syn_flood": {"TCP"}, "tcp_connects": {"IP", "TCP"}}
"""As their docstrings say: a checksum stays that of the first packet, or is left to the port's hardware."""

Simulate = Callable[..., list[Any]]


@pytest.fixture
def capture(allosaur: Any, binary: str, tmp_path: Path) -> Callable[..., str]:
    """Run a profile in the simulator; give the file with its packets."""

    def run(name: str, *options: object, limit: int = 500) -> str:
        output = tmp_path / f"{name}.pcap"
        ended = allosaur("sim", ROOT / "profiles" / f"{name}.py", "-o", output, "--limit", limit, *options)
        assert ended.code == 0, ended
        return str(output)

    return run


@pytest.fixture
def simulate(capture: Callable[..., str]) -> Simulate:
    """Run a profile in the simulator; give its packets as Scapy reads them."""

    def run(name: str, *options: object, limit: int = 500) -> list[Any]:
        # Scapy reads these headers once their modules are imported.
        import scapy.contrib.gtp
        import scapy.contrib.mpls  # noqa: F401
        from scapy.all import rdpcap

        return list(rdpcap(capture(name, *options, limit=limit)))

    return run


@pytest.fixture
def frames(capture: Callable[..., str]) -> Callable[..., list[tuple[float, bytes]]]:
    """Run a profile in the simulator; give the time and the bytes of each packet."""

    def run(name: str, *options: object, limit: int = 500) -> list[tuple[float, bytes]]:
        from scapy.utils import RawPcapReader

        with RawPcapReader(capture(name, *options, limit=limit)) as packets:
            unit_s = 1e-9 if packets.nano else 1e-6
            return [(stamp.sec + stamp.usec * unit_s, data) for data, stamp in packets]

    return run


def test_there_are_examples() -> None:
    assert len(PROFILES) >= 40


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < LINES_MAX
    description = ast.get_docstring(ast.parse(source)) or ""
    assert f"allosaur run {path.stem}" in description
    assert "It tests" in description


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_an_example_sends_correct_packets(path: Path, simulate: Simulate) -> None:
    packets = simulate(path.stem)
    assert packets
    # Of packets that are equal one is enough.
    distinct = {packet.original: (number, packet) for number, packet in enumerate(packets, start=1)}
    for number, packet in distinct.values():
        wrong = wrong_checksums(packet) - NOT_CHECKED.get(path.stem, set())
        assert not wrong, f"packet {number}: checksum of {wrong} in {packet.summary()}"
        assert length_is_right(packet), f"packet {number}: its IP length is not that of the frame"


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_two_threads_send_what_one_sends(path: Path, frames: Simulate) -> None:
    if path.stem == "unsplit_counter":
        pytest.skip("here each thread counts alone, which test_profiles_more looks at")
    one = frames(path.stem, limit=200)
    two = frames(path.stem, "--cores", 2, limit=200)
    assert Counter(frame for _, frame in one) == Counter(frame for _, frame in two)
    assert [time for time, _ in one] == pytest.approx([time for time, _ in two], abs=5e-6)


def test_three_streams_keep_their_rates(simulate: Simulate) -> None:
    sources = Counter(packet["IP"].src for packet in simulate("three_streams", "-d", 10, limit=5000))
    assert sources == {"16.0.0.1": 100, "16.0.0.2": 200, "16.0.0.3": 400}


def test_the_address_range_counts_up_and_down_and_starts_again(simulate: Simulate) -> None:
    packets = simulate("address_range", limit=600)
    first = IPv4Address("16.0.0.1")
    assert [packet["IP"].src for packet in packets] == [str(first + number % 254) for number in range(600)]
    last = IPv4Address("48.0.0.254")
    assert [packet["IP"].dst for packet in packets] == [str(last - number % 254) for number in range(600)]


def test_imix_has_seven_four_one(simulate: Simulate) -> None:
    sizes = Counter(len(packet) + 4 for packet in simulate("imix", limit=480))
    assert sizes == {64: 280, 594: 160, 1518: 40}


def test_the_burst_chain_has_its_gaps_and_its_end(simulate: Simulate) -> None:
    packets = simulate("burst_chain", limit=5000)
    assert [packet["IP"].src for packet in packets] == ["16.0.0.1"] * 10 + ["16.0.0.2"] * 20
    times_ms = [round(float(packet.time) * 1000, 3) for packet in packets]
    gaps_ms = [round(later - earlier, 1) for earlier, later in itertools.pairwise(times_ms)]
    burst = [1.0, 1.0, 1.0]
    assert gaps_ms[:9] == [10.0] * 9
    assert gaps_ms[10:] == burst + 4 * [250.0, *burst]


def test_the_multi_burst_takes_its_tunables(simulate: Simulate) -> None:
    packets = simulate("multi_burst", "-t", "burst=7,count=3,gap_us=1000", limit=5000)
    assert len(packets) == 21


def test_the_burst_loop_runs_its_rounds_and_ends(simulate: Simulate) -> None:
    sizes = [len(packet) + 4 for packet in simulate("burst_loop", "-t", "rounds=2", limit=5000)]
    round_ = [64] + [1518] * 10 + [64] * 5
    assert sizes[:16] == round_
    assert len(sizes) % 16 == 0
    assert sizes == round_ * (len(sizes) // 16)


def test_the_syn_flood_is_random_and_the_same_each_time(simulate: Simulate) -> None:
    first, second = simulate("syn_flood", limit=300), simulate("syn_flood", limit=300)
    assert [bytes(packet) for packet in first] == [bytes(packet) for packet in second]
    sources = {packet["IP"].src for packet in first}
    assert len(sources) > 250
    assert all(
        IPv4Address("16.0.0.0") <= IPv4Address(source) <= IPv4Address("18.0.0.254") for source in sources
    )
    assert all(packet["TCP"].flags == "S" and 1025 <= packet["TCP"].sport <= 65000 for packet in first)
    other = simulate("syn_flood", "-t", "seed=7", limit=300)
    assert [bytes(packet) for packet in other] != [bytes(packet) for packet in first]


def test_vlan_tags_count_and_keep_the_priority(simulate: Simulate) -> None:
    packets = simulate("vlan", "-t", "first=100,last=102,priority=5", limit=6)
    assert [packet["Dot1Q"].vlan for packet in packets] == [100, 101, 102, 100, 101, 102]
    assert {packet["Dot1Q"].prio for packet in packets} == {5}


def test_ipv6_flows_are_all_different(simulate: Simulate) -> None:
    packets = simulate("ipv6", limit=1000)
    flows = {(packet["IPv6"].src, packet["IPv6"].dst) for packet in packets}
    assert len(flows) == 1000
    assert packets[1]["IPv6"].src == str(IPv6Address("2001:db8:1::2"))


def test_service_ports_walk_through_the_list(simulate: Simulate) -> None:
    ports = [53, 67, 123, 161, 443, 500, 514]
    assert [packet["UDP"].dport for packet in simulate("service_ports", limit=14)] == ports * 2


@pytest.mark.parametrize(
    ("order", "expected"), [("inc", [64, 65, 66, 67]), ("dec", [1518, 1517, 1516, 1515])]
)
def test_packet_sizes_go_through_all(simulate: Simulate, order: str, expected: list[int]) -> None:
    packets = simulate("packet_sizes", "-t", f"order={order}", limit=1455)
    sizes = [len(packet) + 4 for packet in packets]
    assert sizes[:4] == expected
    assert sorted(sizes) == list(range(64, 1519))


def layers(packet: Any, *names: str) -> list[Any]:
    """The headers of these kinds, outside in; nothing behind the header of a fragment."""
    found = []
    for layer in packet.iterpayloads():
        if layer.name in names:
            found.append(layer)
        if layer.name == "IP" and (layer.frag or layer.flags.MF):
            break
    return found


def wrong_checksums(packet: Any) -> set[str]:
    """The layers over which Scapy's sum is not zero; a UDP checksum of zero means none."""
    from scapy.layers.inet import in4_chksum
    from scapy.layers.inet6 import in6_chksum
    from scapy.utils import checksum

    numbers = {"TCP": 6, "UDP": 17, "ICMPv6 Echo Request": 58}
    wrong = set()
    for layer in layers(packet, "IP", "ICMP", *numbers):
        below, data = layer.underlayer, layer.original
        if layer.name == "IP":
            total = checksum(data[: layer.ihl * 4])
        elif layer.name == "ICMP":
            total = checksum(data)
        elif layer.name == "UDP" and layer.chksum == 0:
            continue
        else:
            sum_of = in6_chksum if below.name == "IPv6" else in4_chksum
            total = sum_of(numbers[layer.name], below, data)
        if total != 0:
            wrong.add(layer.name)
    return wrong


def length_is_right(packet: Any) -> bool:
    """Whether the IP lengths fit the frame: they are equal, or the frame was padded to the smallest."""
    spare = []
    for layer in layers(packet, "IP", "IPv6"):
        length = layer.len if layer.name == "IP" else layer.plen + 40
        spare.append(len(layer.original) - length)
    return all(bytes_left == 0 or (len(packet) == 60 and bytes_left > 0) for bytes_left in spare)
