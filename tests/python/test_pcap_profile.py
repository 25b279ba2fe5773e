"""Profiles from captures: the chain of streams, its gaps and rounds, both sides, and every bad file."""

from __future__ import annotations

import itertools
import re
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLArgumentError, STLError, STLPktBuilder, STLProfile, STLProfileError
from allosaur.api import IP, STLVM, UDP, Dot1Q, Ether, IPv6
from allosaur.streams._pcap_profile import CaptureTimeWarning

ETHERNET, COOKED = 1, 113
CLIENT, SERVER = b"\x02" * 6, b"\x04" * 6
TIMES_US = (0, 100, 100, 1100, 5100)
"""When the packets of the capture were sent; the second and third are the server's."""


def frame(number: int, from_server: bool = False) -> bytes:
    source, target = (SERVER, CLIENT) if from_server else (CLIENT, SERVER)
    addresses = bytes([10, 0, 0, 2 if from_server else 1, 10, 0, 0, 1 if from_server else 2])
    return target + source + b"\x08\x00" + bytes(12) + addresses + bytes([number]) * 30


FRAMES = [frame(number, from_server=number in (1, 2)) for number in range(len(TIMES_US))]


def pcap(
    times_us: tuple[int, ...] = TIMES_US, link: int = ETHERNET, order: str = "<", ns: bool = False
) -> bytes:
    magic, scale = (0xA1B23C4D, 1000) if ns else (0xA1B2C3D4, 1)
    data = struct.pack(f"{order}I2HiIII", magic, 2, 4, 0, 0, 65535, link)
    for time_us, packet in zip(times_us, FRAMES, strict=False):
        whole, rest = divmod(1_700_000_000_000_000 + time_us, 1_000_000)
        data += struct.pack(f"{order}4I", whole, rest * scale, len(packet), len(packet)) + packet
    return data


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(order: str = "<", resolution: int = 6, link: int = ETHERNET) -> bytes:
    """Times count from 1970 in units of 10^-resolution, or 2^-n with the highest bit set."""
    data = block(order, 0x0A0D0D0A, struct.pack(f"{order}I2Hq", 0x1A2B3C4D, 1, 0, -1))
    data += block(order, 5, bytes(8))
    data += block(order, 1, struct.pack(f"{order}2HI2HB3x2H", link, 0, 0, 9, 1, resolution, 0, 0))
    units_per_s = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    for time_us, packet in zip(TIMES_US, FRAMES, strict=True):
        units = time_us * units_per_s // 1_000_000
        head = struct.pack(f"{order}5I", 0, units >> 32, units & 0xFFFFFFFF, len(packet), len(packet))
        data += block(order, 6, head + packet)
    return data


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    (tmp_path / "one.pcap").write_bytes(pcap())
    return tmp_path / "one.pcap"


def chain(profile: STLProfile) -> list[tuple[Any, ...]]:
    """Name, what follows, gap and rounds of each stream."""
    streams = profile.to_json()
    return [(one["name"], one["next"], one["isg"], one["action_count"]) for one in streams]


def gaps(profile: STLProfile) -> list[float]:
    return [one["isg"] for one in profile.to_json()]


def test_each_packet_starts_the_next(capture: Path) -> None:
    profile = STLProfile.load_pcap(capture)
    assert chain(profile) == [
        (1, 2, 0, 0),
        (2, 3, 100, 0),
        (3, 4, 0, 0),
        (4, 5, 1000, 0),
        (5, 1, 4000, 1),
    ]
    assert [stream.get_pkt() for stream in profile.get_streams()] == FRAMES
    for number, stream in enumerate(profile.to_json()):
        assert stream["self_start"] is (number == 0)
        assert stream["mode"]["rate"] == {"type": "percentage", "value": 100}
        assert (stream["mode"]["type"], stream["mode"]["total_pkts"]) == ("single_burst", 1)
        assert stream["flags"] == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"speedup": 2}, [0, 50, 0, 500, 2000]),
        ({"ipg_usec": 10}, [10] * 5),
        ({"ipg_usec": 10, "speedup": 4}, [2.5] * 5),
        ({"min_ipg_usec": 200}, [200, 200, 200, 1000, 4000]),
        ({"min_ipg_usec": 200, "speedup": 10}, [200, 200, 200, 200, 400]),
        ({"min_ipg_usec": 20, "ipg_usec": 10}, [20] * 5),
    ],
)
def test_gaps(capture: Path, options: dict[str, Any], expected: list[float]) -> None:
    assert gaps(STLProfile.load_pcap(capture, **options)) == expected


@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_only_the_last_packet_counts_the_rounds(capture: Path, rounds: int) -> None:
    streams = STLProfile.load_pcap(capture, loop_count=rounds).to_json()
    assert [stream["action_count"] for stream in streams] == [0, 0, 0, 0, rounds]


@pytest.mark.parametrize(("source", "target", "flags"), [(True, False, 1), (False, True, 2), (True, True, 3)])
def test_whose_mac_addresses(capture: Path, source: bool, target: bool, flags: int) -> None:
    streams = STLProfile.load_pcap(capture, src_mac_pcap=source, dst_mac_pcap=target).to_json()
    assert {stream["flags"] for stream in streams} == {flags}


def test_a_program_for_every_packet(capture: Path) -> None:
    vm = STLVM()
    vm.var("client", "10.0.0.1", "10.0.0.9", size=4, op="inc")
    vm.write("client", "IP.src")
    for stream in STLProfile.load_pcap(capture, vm=vm).to_json():
        assert stream["vm"]["instructions"][-1]["pkt_offset"] == 26


def test_a_hook_sees_and_changes_every_packet(capture: Path) -> None:
    seen = []

    def hook(data: bytes) -> bytes:
        seen.append(data)
        return data + b"more"

    profile = STLProfile.load_pcap(capture, packet_hook=hook)
    assert seen == FRAMES
    assert [stream.get_pkt() for stream in profile.get_streams()] == [packet + b"more" for packet in FRAMES]


@pytest.mark.parametrize("mode", ["MAC", "IP"])
def test_the_two_sides_stay_together(capture: Path, mode: str) -> None:
    client, server = STLProfile.load_pcap(capture, split_mode=mode, loop_count=3)
    assert chain(client) == [(1, 2, 1000, 0), (2, 3, 1100, 0), (3, 1, 4000, 3)]
    rest = "delay_stream"
    assert chain(server) == [(1, 2, 1100, 0), (rest, 1, 5000, 3), (2, rest, 0, 0)]
    assert [stream.is_dummy() for stream in server.get_streams()] == [False, True, False]
    assert sum(gaps(client)) == sum(gaps(server))
    assert [stream.get_pkt() for stream in client.get_streams()] == [FRAMES[at] for at in (0, 3, 4)]


def test_a_fixed_gap_holds_for_both_sides_together(capture: Path) -> None:
    client, server = STLProfile.load_pcap(capture, ipg_usec=10, split_mode="IP")
    assert gaps(client) == [20, 30, 10]
    assert gaps(server) == [30, 20, 10]


def test_ipv6_and_tags_are_told_apart_by_address(tmp_path: Path) -> None:
    path = tmp_path / "six.pcap"
    data = pcap(())
    for source, target in (("::1", "::2"), ("::2", "::1"), ("::1", "::2")):
        packet = bytes(Ether() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / IPv6(src=source, dst=target) / UDP())
        data += struct.pack("<4I", 0, 0, len(packet), len(packet)) + packet
    path.write_bytes(data)
    first, second = STLProfile.load_pcap(path, split_mode="IP")
    assert [len(side.get_streams()) for side in (first, second)] == [2, 1]


@pytest.mark.parametrize(
    "data",
    [
        pcap(order=">"),
        pcap(ns=True),
        pcap(ns=True, order=">"),
        pcapng(),
        pcapng(order=">"),
        pcapng(resolution=9),
        pcapng(resolution=0x80 | 32),
    ],
    ids=["big", "nanoseconds", "big nanoseconds", "ng", "ng big", "ng nanoseconds", "ng power of two"],
)
def test_every_kind_of_file_gives_the_same(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "kind.cap"
    path.write_bytes(data)
    profile = STLProfile.load(path)
    assert gaps(profile) == pytest.approx([0, 100, 0, 1000, 4000], abs=0.01)
    assert [stream.get_pkt() for stream in profile.get_streams()] == FRAMES


def test_pcapng_packets_without_a_time_follow_at_once(tmp_path: Path) -> None:
    simple = block("<", 3, struct.pack("<I", len(FRAMES[0])) + FRAMES[0])
    head = struct.pack("<2H4I", 0, 0, 0, 6000, len(FRAMES[1]), len(FRAMES[1]))
    (tmp_path / "x.pcapng").write_bytes(pcapng() + simple + block("<", 2, head + FRAMES[1]))
    assert gaps(STLProfile.load(tmp_path / "x.pcapng"))[-2:] == [0, 900]


def erf(padding: int = 0) -> bytes:
    """Times are in 2^-32 seconds; each frame has its FCS."""
    data = b""
    for number, (time_us, packet) in enumerate(zip(TIMES_US, FRAMES, strict=True)):
        wire = len(packet) + 4
        time = (1_700_000_000 << 32) + time_us * 4295
        head = struct.pack(">BB3H", 2, 4 | number % 2, 18 + wire + padding, 0, wire)
        data += struct.pack("<Q", time) + head + bytes(2) + packet + b"\xfc" * 4 + bytes(padding)
    return data


@pytest.mark.parametrize("padding", [0, 6])
def test_an_erf_capture_is_a_profile_too(tmp_path: Path, padding: int) -> None:
    (tmp_path / "x.erf").write_bytes(erf(padding))
    (tmp_path / "x.pcap").write_bytes(pcap())
    found, expected = (STLProfile.load(tmp_path / f"x.{kind}") for kind in ("erf", "pcap"))
    assert [round(gap) for gap in gaps(found)] == gaps(expected)
    packets = [[stream["packet"] for stream in profile.to_json()] for profile in (found, expected)]
    assert packets[0] == packets[1]


@pytest.mark.parametrize(
    ("times_us", "expected"),
    [
        # Out of order: the times behind hold, and the whole takes no longer.
        ((0, 5000, 3000, 4000, 9000), [0, 5000, 0, 0, 4000]),
        ((500, 100, 300), [0, 0, 0]),
        # A clock that was set back: the gaps behind hold.
        ((9_000_000, 9_001_000, 500_000, 501_000, 503_000), [0, 1000, 0, 1000, 2000]),
    ],
)
def test_times_that_go_back_stretch_nothing_and_are_told(
    tmp_path: Path, times_us: tuple[int, ...], expected: list[float]
) -> None:
    (tmp_path / "x.pcap").write_bytes(pcap(times_us))
    with pytest.warns(CaptureTimeWarning, match=r"[23] packets were recorded before"):
        assert gaps(STLProfile.load(tmp_path / "x.pcap")) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gaps(STLProfile.load(tmp_path / "x.pcap", ipg_usec=7)) == [7] * len(times_us)


def cut_captures() -> dict[str, bytes]:
    """Files in which the third packet was cut to 40 of its 64 bytes."""
    lengths = [len(packet) for packet in FRAMES]
    files = {"pcap": b"", "pcapng": b""}
    files["pcap"] = struct.pack("<I2HiIII", 0xA1B2C3D4, 2, 4, 0, 0, 40, ETHERNET)
    files["pcapng"] = block("<", 0x0A0D0D0A, struct.pack("<I2Hq", 0x1A2B3C4D, 1, 0, -1))
    files["pcapng"] += block("<", 1, struct.pack("<2HI", ETHERNET, 0, 0))
    files["pcapng simple"] = files["pcapng"]
    for number, packet in enumerate(FRAMES):
        kept = packet[:40] if number == 2 else packet
        files["pcap"] += struct.pack("<4I", 0, number, len(kept), lengths[number]) + kept
        head = struct.pack("<5I", 0, 0, number, len(kept), lengths[number])
        files["pcapng"] += block("<", 6, head + kept)
        files["pcapng simple"] += block("<", 3, struct.pack("<I", lengths[number]) + kept)
    return files


@pytest.mark.parametrize("kind", cut_captures())
def test_a_capture_that_was_cut_is_refused_unless_it_is_mended(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind.split()[0]}"
    path.write_bytes(cut_captures()[kind])
    length = len(FRAMES[2])
    words = f"of 5 packets 1 lack bytes, packet 3 has 40 of {length}; capture whole packets"
    with pytest.raises(STLProfileError, match=re.escape(words)):
        STLProfile.load(path)
    mended = STLProfile.load_pcap(path, packet_hook=lambda data: data.ljust(length, b"\0"))
    assert {stream.get_pkt_len(count_crc=False) for stream in mended.get_streams()} == {length}
    # The first packet alone is whole.
    assert STLPktBuilder(pkt=str(path)).get_pkt_len() == length


def test_a_template_from_a_cut_packet_is_refused(tmp_path: Path) -> None:
    packet = FRAMES[0]
    head = struct.pack("<I2HiIII", 0xA1B2C3D4, 2, 4, 0, 0, 20, ETHERNET)
    record = struct.pack("<4I", 0, 0, 20, len(packet)) + packet[:20]
    (tmp_path / "x.pcap").write_bytes(head + record)
    with pytest.raises(STLError, match="packet 1 has 20 of"):
        STLPktBuilder(pkt=str(tmp_path / "x.pcap"))


def test_streams_of_a_capture_follow_the_multiplier(capture: Path) -> None:
    assert all(stream["scale_isg"] for stream in STLProfile.load_pcap(capture).to_json())
    for side in STLProfile.load_pcap(capture, split_mode="MAC"):
        assert all(stream["scale_isg"] for stream in side.to_json())


def test_load_takes_the_same_options_and_the_direction(capture: Path) -> None:
    assert gaps(STLProfile.load(capture, ipg_usec=3)) == [3] * 5
    assert gaps(STLProfile.load(capture, tunables=["--speedup", "2"])) == [0, 50, 0, 500, 2000]
    for direction in (0, 1):
        side = STLProfile.load(capture, direction=direction, split_mode="MAC")
        assert side.to_json() == STLProfile.load_pcap(capture, split_mode="MAC")[direction].to_json()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty: give a pcap, pcapng or ERF file"),
        (b"not a capture at all", "is not a pcap, pcapng or ERF file"),
        (erf()[:-1], "is truncated: it ends within packet 5"),
        (erf() + bytes(20), r"is damaged: packet 6 is no Ethernet record \(type 2\)"),
        (pcap()[:20], "is truncated: it ends within packet 1"),
        (pcap(()), "has no packet: give one with at least one"),
        (pcap()[:-1], "is truncated: it ends within packet 5"),
        (pcap() + bytes(15), "is truncated: it ends within packet 6"),
        (pcap(link=COOKED), r"has link type 113: give one of an Ethernet interface \(1\)"),
        (pcap(()) + struct.pack("<4I", 0, 0, 1 << 30, 60), "is damaged: packet 1 has 1073741824 bytes"),
        (
            pcap(()) + struct.pack("<4I", 0, 0, 13, 13) + bytes(13),
            "packet 1 has 13 bytes: a packet has 14 to",
        ),
        (
            pcap() + struct.pack("<4I", 0, 0, 9239, 9239) + bytes(9239),
            "packet 6 has 9239 bytes: a packet has",
        ),
        (pcapng()[:-1], "is truncated: it ends within packet 5"),
        (pcapng(link=COOKED), "has link type 113"),
        (pcapng()[:28], "has no packet"),
        (pcapng()[:28] + block("<", 6, bytes(20)), "is damaged: a packet is of interface 0"),
        (pcapng()[:28] + struct.pack("<2I", 6, 13), "is damaged: it has a block of 13 bytes"),
        (
            pcapng() + block("<", 6, struct.pack("<5I", 0, 0, 0, 99, 99)),
            "is truncated: it ends within packet 6",
        ),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(data)
    with pytest.raises(STLProfileError, match=words) as caught:
        STLProfile.load(path)
    assert str(path) in str(caught.value)


def test_no_file_byte_makes_anything_but_a_clear_error(tmp_path: Path) -> None:
    """Every beginning, and every byte changed: it loads, or it says what is wrong."""
    path = tmp_path / "bad.pcap"
    for good in (pcap()[:200], pcapng()[:260]):
        changed = [good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :] for at in range(len(good))]
        for data in itertools.chain((good[:length] for length in range(len(good))), changed):
            path.write_bytes(data)
            try:
                assert STLProfile.load(path).get_streams()
            except STLProfileError as error:
                assert str(path) in str(error)


def test_too_many_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    monkeypatch.setattr("allosaur.streams._pcap_profile.PACKETS_MAX", 4)
    with pytest.raises(STLProfileError, match=r"more than 4 packets, .* push_remote\(\)"):
        STLProfile.load(capture)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ipg_usec": 0}, "'ipg_usec' cannot be 0: give 0.001 or more microseconds"),
        ({"ipg_usec": -1.0}, "'ipg_usec' cannot be -1.0"),
        ({"min_ipg_usec": "x"}, "'min_ipg_usec' cannot be 'x'"),
        ({"speedup": 0}, "'speedup' cannot be 0: give a factor above zero"),
        ({"loop_count": -1}, "'loop_count' cannot be -1"),
        ({"loop_count": 1.5}, "'loop_count' cannot be 1.5"),
        ({"split_mode": "X"}, r"'split_mode' cannot be 'X': give one of \['MAC', 'IP'\]"),
        ({"packet_hook": 5}, "'packet_hook' cannot be 5: give a function"),
    ],
)
def test_a_bad_option_is_named(capture: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(STLArgumentError, match=words):
        STLProfile.load_pcap(capture, **options)


def test_a_hook_that_returns_no_bytes(capture: Path) -> None:
    with pytest.raises(STLProfileError, match="packet 1: packet_hook gave NoneType, it must return bytes"):
        STLProfile.load_pcap(capture, packet_hook=lambda data: None)  # type: ignore[arg-type, return-value]


def test_an_unknown_tunable_is_named_with_the_known_ones(capture: Path) -> None:
    with pytest.raises(STLProfileError, match="has no tunable 'speed', its tunables are: ipg_usec, speedup"):
        STLProfile.load(capture, speed=2)


def test_one_direction_cannot_be_split(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(pcap((0,)))
    with pytest.raises(STLProfileError, match="packets of one direction only: load it without split_mode"):
        STLProfile.load_pcap(tmp_path / "x.pcap", split_mode="MAC")


def exchange(path: Path, *pairs: tuple[str, str]) -> Path:
    """A capture of IPv4 packets from host to host, all through one router's MAC address."""
    data = pcap(())
    for source, target in pairs:
        numbers = b"".join(bytes([10, 0, 0, int(host)]) for host in (source, target))
        packet = SERVER + CLIENT + b"\x08\x00\x45" + bytes(11) + numbers + bytes(30)
        data += struct.pack("<4I", 0, 0, len(packet), len(packet)) + packet
    path.write_bytes(data)
    return path


def senders(profile: STLProfile) -> list[int]:
    return [stream.get_pkt()[29] for stream in profile.get_streams() if not stream.is_dummy()]


@pytest.mark.parametrize(
    ("pairs", "first", "second"),
    [
        ("1>9 9>1 2>9 9>2 3>9", [1, 2, 3], [9, 9]),
        ("1>9 2>8 9>1 8>2", [1, 2], [9, 8]),
        ("1>9 8>1 9>1 2>8", [1, 2], [8, 9]),
        ("1>9 9>1 5>5", [1, 5], [9]),
        ("1>9 7>9 9>7 7>6 6>7", [1, 7, 7], [9, 6]),
    ],
)
def test_hosts_of_a_side_stay_together(
    tmp_path: Path, pairs: str, first: list[int], second: list[int]
) -> None:
    """Who sends to whom says the side, not who sent first."""
    words = [(pair[0], pair[2]) for pair in pairs.split()]
    sides = STLProfile.load_pcap(exchange(tmp_path / "x.pcap", *words), split_mode="IP")
    assert [senders(side) for side in sides] == [first, second]


def test_a_circle_of_three_hosts_has_no_two_sides(tmp_path: Path) -> None:
    path = exchange(tmp_path / "x.pcap", ("1", "2"), ("2", "3"), ("3", "1"))
    with pytest.raises(STLProfileError, match=r"no two sides by IP addresses.*split_mode='MAC'"):
        STLProfile.load_pcap(path, split_mode="IP")


def test_what_all_hear_does_not_join_the_sides(tmp_path: Path) -> None:
    """Both sides send to the broadcast address; that makes them no circle."""
    data = pcap(())
    for source, target in ((CLIENT, b"\xff" * 6), (SERVER, b"\xff" * 6), (CLIENT, SERVER), (SERVER, CLIENT)):
        packet = target + source + b"\x08\x06" + bytes(46)
        data += struct.pack("<4I", 0, 0, len(packet), len(packet)) + packet
    (tmp_path / "x.pcap").write_bytes(data)
    for side, mac in zip(
        STLProfile.load_pcap(tmp_path / "x.pcap", split_mode="MAC"), (CLIENT, SERVER), strict=True
    ):
        packets = [stream.get_pkt() for stream in side.get_streams() if not stream.is_dummy()]
        assert [packet[6:12] for packet in packets] == [mac, mac]


def test_a_hook_does_not_change_the_sides(capture: Path) -> None:
    sides = STLProfile.load_pcap(capture, split_mode="IP", packet_hook=lambda data: data[:26] + bytes(34))
    assert [len(chain(side)) for side in sides] == [3, 3]


def test_what_is_not_ip_goes_with_the_first_host(tmp_path: Path) -> None:
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    (tmp_path / "x.pcap").write_bytes(pcap() + struct.pack("<4I", 0, 0, len(arp), len(arp)) + arp)
    first, _ = STLProfile.load_pcap(tmp_path / "x.pcap", split_mode="IP")
    assert first.get_streams()[-1].get_pkt() == arp


@pytest.mark.parametrize("place", ["IP.src", 26])
def test_a_recorded_fcs_is_not_sent_as_payload(tmp_path: Path, place: str | int) -> None:
    whole = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / bytes(30))
    fcs = zlib.crc32(whole).to_bytes(4, "little") if place == 26 else b"\xde\xad\xbe\xef"
    data = pcap(()) + struct.pack("<4I", 0, 0, len(whole) + 4, len(whole) + 4) + whole + fcs
    (tmp_path / "x.pcap").write_bytes(data)
    vm = STLVM()
    vm.var("client", "10.0.0.1", "10.0.0.9", size=4, op="inc")
    vm.write("client", place)
    (changed,) = STLProfile.load_pcap(tmp_path / "x.pcap", vm=vm).get_streams()
    assert changed.get_pkt() == whole
    (recorded,) = STLProfile.load_pcap(tmp_path / "x.pcap").get_streams()
    assert recorded.get_pkt() == whole + fcs


def test_real_captures_load_whole(recorded: Path) -> None:
    from scapy.all import RawPcapReader

    paths = sorted((recorded / "pcap").glob("*.pcap"))
    assert len(paths) == 21
    for path in paths:
        wanted = [data for data, _ in RawPcapReader(str(path))]
        assert [stream.get_pkt() for stream in STLProfile.load(path).get_streams()] == wanted, path


def test_the_packets_of_the_reference_come_back_from_its_capture(recorded: Path) -> None:
    """The simulator's reference is a capture itself: as a profile it has the same packets and gaps."""
    path = recorded / "golden-stateless" / "udp_3pkt_pcap.pcap"
    profile = STLProfile.load(path)
    assert gaps(profile) == pytest.approx([0.0] + [100_000.0] * 9, abs=5)
    assert {stream.get_pkt() for stream in profile.get_streams()} == {
        STLPktBuilder(pkt=path, remove_fcs=False).dump_pkt(encode=False)["binary"]
    }
