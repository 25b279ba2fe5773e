"""Stateful programs from captures: what a conversation becomes, put right where needed, or refused."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from allosaur import ASTFCapInfo, ASTFError, ASTFIPGen, ASTFIPGenDist, ASTFProfile, ASTFProgram, ASTFTCPInfo
from allosaur.packets._buffer import CapturedPacket
from allosaur.packets._capture_writer import CaptureFile
from allosaur.stateful._capture_place import SHIPPED, find_capture
from allosaur.stateful._commands import BufferCmd
from allosaur.stateful._recorded_flow import read_flow
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet

CLIENT, SERVER = ("192.0.2.1", 40_000), ("192.0.2.2", 80)
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
FIRST_CLIENT, FIRST_SERVER = (1 << 32) - 3, 1000
REQUEST, RESPONSE = b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 8


def ethernet() -> Packet:
    return Ether(dst=MACS[0], src=MACS[1])


def tcp(from_client: bool, offset: int, flags: str = "A", data: bytes = b"", **more: object) -> Packet:
    """A segment; ``offset`` counts from the SYN of its side. The client's numbers wrap around at once."""
    first = FIRST_CLIENT if from_client else FIRST_SERVER
    (source, sport), (target, dport) = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    header = TCP(sport=sport, dport=dport, seq=(first + offset) % (1 << 32), flags=flags, **more)
    return ethernet() / IP(src=source, dst=target) / header / data


def handshake() -> list[Packet]:
    return [
        tcp(True, 0, "S", window=1000, options=[("MSS", 1400), ("NOP", None), ("WScale", 7)]),
        tcp(False, 0, "SA", window=2000, options=[("MSS", 1300)]),
        tcp(True, 1),
    ]


def response(size: int = 500) -> list[Packet]:
    return [
        tcp(False, 1 + start, "A", RESPONSE[start : start + size]) for start in range(0, len(RESPONSE), size)
    ]


def conversation() -> list[Packet]:
    return [
        *handshake(),
        tcp(True, 1, "PA", REQUEST),
        *response(),
        tcp(True, 1 + len(REQUEST), "FA"),
        tcp(False, 1 + len(RESPONSE), "FA"),
    ]


@pytest.fixture
def capture(tmp_path: Path) -> Callable[..., Path]:
    """Write packets to a capture, a millisecond apart unless their times are given."""

    def write(packets: Sequence[Packet], times_s: Sequence[float] = (), name: str = "test.pcap") -> Path:
        path = tmp_path / name
        with CaptureFile(path) as file:
            for number, packet in enumerate(packets):
                data = bytes(packet)
                written = CapturedPacket(
                    binary=data, origin="RX", ts=0.0, port=0, index=number, wirelen=len(data)
                )
                file.write(written, times_s[number] if times_s else 1000 + number / 1000)
        return path

    return write


def words(program: ASTFProgram) -> list[tuple[str, bytes | int]]:
    """The commands, with the bytes or the first number of each."""
    return [
        (command.word, command.data if isinstance(command, BufferCmd) else [*command.fields.values(), 0][1])
        for command in program.commands
    ]


EXPECTED = {
    "c": [("tx", REQUEST), ("rx", len(RESPONSE))],
    "s": [("rx", len(REQUEST)), ("tx", RESPONSE)],
}


@pytest.mark.parametrize("name", ["test.pcap", "test.pcapng"])
def test_a_conversation_becomes_two_programs(capture: Callable[..., Path], name: str) -> None:
    path = capture(conversation(), name=name)
    for side, expected in EXPECTED.items():
        program = ASTFProgram(file=path, side=side)
        assert words(program) == expected
        assert program.is_stream()
        assert program.payload_len == len(REQUEST) + len(RESPONSE)


def test_lost_and_swapped_segments_are_put_right(capture: Callable[..., Path]) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(20):
        # Segments of any cut, some of them twice, in an order of their own; a FIN among them.
        cuts = sorted({0, len(RESPONSE), *(rng.randrange(len(RESPONSE)) for _ in range(6))})
        parts = [
            tcp(False, 1 + start, "A", RESPONSE[start : min(end + rng.randrange(300), len(RESPONSE))])
            for start, end in itertools.pairwise(cuts)
        ]
        parts += rng.sample(parts, 2)
        parts.append(tcp(False, 1 + len(RESPONSE), "FA"))
        rng.shuffle(parts)
        start = [*handshake(), tcp(True, 0, "S"), tcp(True, 1, "PA", REQUEST), tcp(True, 1, "PA", REQUEST)]
        path = capture([*start, *parts, tcp(True, 1, "PA", REQUEST)])
        for side, expected in EXPECTED.items():
            assert words(ASTFProgram(file=path, side=side)) == expected


def test_what_is_not_of_the_session_is_left_out(capture: Callable[..., Path]) -> None:
    others = [
        ethernet() / ARP(),
        ethernet() / IP(dst="192.0.2.2") / ICMP(),
        Ether(dst=MACS[0], src=MACS[1], type=0x88CC) / b"lldp",
    ]
    packets = conversation()
    path = capture([*others, *packets[:4], *others, *packets[4:]])
    assert words(ASTFProgram(file=path, side="s")) == EXPECTED["s"]


def test_tags_and_ipv6_are_taken(capture: Callable[..., Path]) -> None:
    def of_ipv6(packet: Packet, number: int) -> Packet:
        ends = {CLIENT[0]: "2001:db8::1", SERVER[0]: "2001:db8::2"}
        addresses = IPv6(src=ends[packet[IP].src], dst=ends[packet[IP].dst])
        return ethernet() / Dot1Q(vlan=number) / Dot1Q(vlan=7) / addresses / packet[TCP]

    path = capture([of_ipv6(packet, number) for number, packet in enumerate(conversation(), 1)])
    assert words(ASTFProgram(file=path)) == EXPECTED["c"]


def test_a_server_that_speaks_first_waits_for_the_client(capture: Callable[..., Path]) -> None:
    path = capture([*handshake(), *response(), tcp(True, 1, "PA", REQUEST)])
    assert words(ASTFProgram(file=path, side="s")) == [
        ("connect", 0),
        ("tx", RESPONSE),
        ("rx", len(REQUEST)),
    ]


def udp(from_client: bool, data: bytes) -> Packet:
    (source, sport), (target, dport) = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    return ethernet() / IP(src=source, dst=target) / UDP(sport=sport, dport=dport) / data


def test_data_in_the_syn_is_sent(capture: Callable[..., Path]) -> None:
    # TCP Fast Open (RFC 7413): the request is in the SYN, once more behind it, and the rest follows.
    half = len(REQUEST) // 2
    packets = [
        tcp(True, 0, "S", REQUEST[:half]),
        tcp(False, 0, "SA", RESPONSE[:3]),
        tcp(True, 1, "A", REQUEST[:half]),
        tcp(True, 1 + half, "PA", REQUEST[half:]),
        tcp(False, 4, "PA", RESPONSE[3:]),
        tcp(True, 1 + len(REQUEST), "FA"),
        tcp(False, 1 + len(RESPONSE), "FA"),
    ]
    program = ASTFProgram(file=capture(packets), side="c")
    sent = [data for word, data in words(program) if word == "tx"]
    assert sent == [REQUEST[:half], REQUEST[half:]]
    alone = capture([packets[0], tcp(False, 0, "SA"), tcp(False, 1, "PA", RESPONSE)], name="alone.pcap")
    for side, data in (("c", REQUEST[:half]), ("s", RESPONSE)):
        said = words(ASTFProgram(file=alone, side=side))
        assert [sent for word, sent in said if word == "tx"] == [data]


def test_messages_whose_times_go_back_have_no_delay_below_zero(capture: Callable[..., Path]) -> None:
    packets = [udp(True, b"one"), udp(True, b"two"), udp(True, b"three"), udp(False, b"four")]
    path = capture(packets, times_s=[1.0, 1.5, 1.2, 1.6])
    assert [turn.gap_usec for turn in read_flow(path).turns] == [0, 500_000, 0, 100_000]


def test_gaps_between_messages_become_delays(capture: Callable[..., Path]) -> None:
    packets = [udp(True, b"one"), udp(True, b"two"), udp(True, b"three"), udp(False, b"x" * 300)]
    path = capture(
        [*packets, udp(False, b""), udp(True, b"four")], [1000.0, 1000.25, 1000.375, 1001, 1001, 1003]
    )
    client = ASTFProgram(file=path, side="c", udp_mtu=142)
    assert words(client) == [
        *[("tx_msg", b"one"), ("delay", 250_000), ("tx_msg", b"two"), ("delay", 125_000)],
        *[("tx_msg", b"three"), ("rx_msg", 2), ("tx_msg", b"four")],
    ]
    server = ASTFProgram(file=path, side="s", udp_mtu=142)
    assert words(server) == [("rx_msg", 3), ("tx_msg", b"x" * 100), ("tx_msg", b""), ("rx_msg", 4)]
    assert not server.is_stream()


def test_long_silence_is_kept_alive_by_both_sides(capture: Callable[..., Path]) -> None:
    path = capture([udp(True, b"1"), udp(True, b"2"), udp(False, b"3")], [0.0, 5.0, 5.1])
    client = ASTFProgram(file=path)
    assert words(client)[:2] == [("keepalive", 1_400_000), ("tx_msg", b"1")]
    ip_gen = ASTFIPGen(ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]))
    profile = ASTFProfile(ip_gen, cap_list=ASTFCapInfo(file=str(path), cps=2))
    names = [
        [command["name"] for command in program["commands"]] for program in profile.to_json()["program_list"]
    ]
    assert [program.count("keepalive") for program in names] == [2, 1]
    assert profile.to_json()["templates"][0]["server_template"]["assoc"] == [{"port": 80}]


REFUSED: dict[str, tuple[Callable[[], list[Packet]], str]] = {
    "nothing": (list, "has no TCP or UDP session"),
    "no session": (lambda: [ethernet() / ARP()], "has no TCP or UDP session"),
    "two sessions": (
        lambda: [*conversation(), udp(True, b"x")],
        "packet 12 is of another session: UDP 192.0.2.1 port 40000 to 192.0.2.2 port 80, but "
        "the first is TCP",
    ),
    "twice": (lambda: [*conversation(), tcp(True, 9000, "S")], "packet 12 opens the connection again"),
    "no beginning": (lambda: conversation()[2:], "packet 1 comes before the handshake"),
    "no SYN": (lambda: conversation()[1:], r"packet 1 is SYN\+ACK of the side that began"),
    "lost": (
        lambda: [packet for number, packet in enumerate(conversation()) if number != 5],
        "lacks 500 bytes that the server sent",
    ),
    "cut": (lambda: [Ether(bytes(packet)[:70]) for packet in conversation()], "packet 4: .* snap length"),
    "fragment": (lambda: [ethernet() / IP(flags="MF") / UDP() / b"x"], "packet 1: it is a fragment"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_capture_that_is_no_session_is_refused(capture: Callable[..., Path], name: str) -> None:
    packets, said = REFUSED[name]
    path = capture(packets())
    with pytest.raises(ASTFError, match=f"{path}.*{said}"):
        ASTFProgram(file=path)


def test_no_capture_at_all(tmp_path: Path) -> None:
    (tmp_path / "text.pcap").write_text("no capture")
    with pytest.raises(ASTFError, match="not a pcap, pcapng or ERF"):
        ASTFProgram(file=tmp_path / "text.pcap")
    with pytest.raises(ASTFError, match=r"nowhere.pcap was not found .* names dns.pcap, http_browsing.pcap"):
        ASTFProgram(file="nowhere.pcap")


def test_a_capture_that_changes_is_read_again(capture: Callable[..., Path]) -> None:
    path = capture(conversation())
    assert len(ASTFProgram(file=path).commands) == 2
    path = capture([*handshake(), tcp(True, 1, "PA", REQUEST)])
    assert words(ASTFProgram(file=path)) == [("tx", REQUEST)]


def test_what_a_capture_says_of_its_ends(capture: Callable[..., Path]) -> None:
    info = ASTFTCPInfo(capture(conversation()))
    assert (info.port, info.client_window, info.server_window) == (80, 1000, 2000)
    assert info.client_options == {"MSS": 1400, "WScale": 7}
    assert info.glob_info("s").to_json() == {"tcp": {"mss": 1300, "rxbufsize": 2000}}
    assert info.glob_info("c").to_json() == {"tcp": {"mss": 1400, "rxbufsize": 1024}}


def test_spoilt_captures_are_errors_and_nothing_else(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    originals = [(SHIPPED / f"{name}.pcap").read_bytes() for name in ("dns", "http_ipv6", "http_post")]
    path = tmp_path / "spoilt.pcap"
    outcomes = set()
    for _ in range(400):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.choice((1, 3, 20))):
            data[rng.randrange(24, len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(24, len(data)) :]
        path.write_bytes(data)
        try:
            read_flow(path)
            outcomes.add("taken")
        except ASTFError:
            outcomes.add("refused")
    assert outcomes == {"taken", "refused"}


SHIPPED_NAMES = ["dns", "http_browsing", "http_get", "http_ipv6", "http_post", "https"]


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_captures_that_come_with_the_package(name: str) -> None:
    client, server = (ASTFProgram(file=f"{name}.pcap", side=side) for side in "cs")
    assert client.total_send_bytes + server.total_send_bytes == client.payload_len
    assert sorted(path.stem for path in SHIPPED.glob("*.pcap")) == SHIPPED_NAMES


@pytest.mark.parametrize("file", ["../avl/delay_10_dns_0.pcap", "delay_10_dns_0.pcap", "../other/dns.pcap"])
def test_no_capture_takes_the_place_of_a_missing_one(file: str) -> None:
    """The package has a dns.pcap; its bytes are not those of TRex's capture, nor of one in another folder."""
    with pytest.raises(ASTFError, match=rf"the capture {file} was not found at .*: copy it there"):
        ASTFProgram(file=file, side="c")


def test_captures_are_found_beside_the_profile(capture: Callable[..., Path], tmp_path: Path) -> None:
    capture(conversation(), name="mine.pcap")
    folder = tmp_path / "profiles"
    folder.mkdir()
    profile = folder / "profile.py"
    profile.write_text(
        "from trex.astf.api import *\n"
        "class Prof1:\n"
        "    def get_profile(self, **kwargs):\n"
        "        ip_gen = ASTFIPGen(dist_client=ASTFIPGenDist(['16.0.0.1', '16.0.0.9']),\n"
        "                           dist_server=ASTFIPGenDist(['48.0.0.1', '48.0.0.9']))\n"
        "        return ASTFProfile(ip_gen, cap_list=[ASTFCapInfo(file='../mine.pcap', cps=3)])\n"
        "def register():\n"
        "    return Prof1()\n"
    )
    fields = ASTFProfile.load(profile).to_json()
    assert fields["program_list"][1]["commands"][0] == {"name": "rx", "min_bytes": len(REQUEST)}


def test_listing_5_of_the_paper_plays_its_capture(listings: Path) -> None:
    fields = ASTFProfile.load(listings / "listing5.py").to_json()
    assert fields["templates"][0]["client_template"]["port"] == 80
    commands = [command["name"] for command in fields["program_list"][0]["commands"]]
    assert commands == ["tx", "rx"]


def test_percentages_must_be_whole() -> None:
    ip_gen = ASTFIPGen(ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]))
    captures = [ASTFCapInfo(file="dns.pcap", l7_percent=40), ASTFCapInfo(file="http_get.pcap", l7_percent=50)]
    with pytest.raises(ASTFError, match="l7_percent of all captures is 90 in all"):
        ASTFProfile(ip_gen, cap_list=captures)
    with pytest.raises(ASTFError, match="some captures have l7_percent and some cps"):
        ASTFProfile(ip_gen, cap_list=[captures[0], ASTFCapInfo(file="https.pcap")])


def test_a_capture_that_is_no_file_is_told_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ASTFError, match="is a folder"):
        find_capture(tmp_path)
    os.mkfifo(tmp_path / "pipe.pcap")
    with pytest.raises(ASTFError, match=r"pipe\.pcap is a pipe"):
        find_capture(tmp_path / "pipe.pcap")
