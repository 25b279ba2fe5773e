"""Packets, field engine programs, modes and streams: what is refused, and with which words."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from allosaur import (
    STLVM,
    STLArgumentError,
    STLError,
    STLFlowStats,
    STLIPRange,
    STLPacketError,
    STLPktBuilder,
    STLProfile,
    STLScVmRaw,
    STLStream,
    STLStreamDstMAC_ARP,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLTypeError,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
)
from allosaur.api import ARP, IP, UDP, VXLAN, Dot1Q, Dot3, Ether, ICMPv6ND_NS, IPv6, Raw, conf, wrpcap
from allosaur.streams._stream import link


def udp(payload: str = "x" * 18) -> Any:
    return Ether() / IP() / UDP() / payload


def build(*commands: Any, pkt: Any = None) -> list[dict[str, Any]]:
    """The instructions of a program on a 60-byte UDP packet."""
    builder = STLPktBuilder(pkt=pkt or udp(), vm=STLScVmRaw(list(commands)))
    instructions: list[dict[str, Any]] = builder.to_json()["vm"]["instructions"]
    return instructions


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no packet": (lambda: STLStream(name="S1"), r"stream 'S1' has no packet: give packet=STLPktBuilder"),
    "13 bytes": (lambda: STLPktBuilder(pkt_buffer=bytes(13)), "the packet has 13 bytes: give 14 to 9238"),
    "9239 bytes": (
        lambda: STLPktBuilder(pkt_buffer=bytes(9239)),
        "the packet has 9239 bytes: give 14 to 9238",
    ),
    "empty builder": (lambda: STLPktBuilder(), "give either pkt or pkt_buffer"),
    "two packets": (lambda: STLPktBuilder(pkt=udp(), pkt_buffer=bytes(60)), "give either pkt or pkt_buffer"),
    "unknown variable": (
        lambda: build(STLVmFlowVar("a"), STLVmWrFlowVar("b", "IP.src")),
        "write_flow_var: variable 'b' is not declared, the variables are: a",
    ),
    "no variables": (lambda: build(STLVmTrimPktSize("b")), "the program declares no variables"),
    "past the packet": (
        lambda: build(STLVmFlowVar("a", size=4), STLVmWrFlowVar("a", 57)),
        "variable 'a' at offset 57 touches 4 bytes, but the packet has 60",
    ),
    "before the packet": (
        lambda: build(STLVmFlowVar("a", size=4), STLVmWrFlowVar("a", 2, offset_fixup=-3)),
        "at offset -1 touches 4 bytes",
    ),
    "checksum past the packet": (lambda: build(STLVmFixIpv4(50)), "at offset 50 touches 20 bytes"),
    "unknown layer": (
        lambda: build(STLVmFlowVar("a"), STLVmWrFlowVar("a", "TCP.sport")),
        "the packet has no TCP, its headers are Ether/IP/UDP/Raw",
    ),
    "no second layer": (
        lambda: build(STLVmFlowVar("a"), STLVmWrFlowVar("a", "IP:1.src")),
        "'IP:1.src': the packet has no IP:1",
    ),
    "unknown field": (
        lambda: build(STLVmFlowVar("a"), STLVmWrFlowVar("a", "UDP.port")),
        "UDP has no field 'port', its fields are sport, dport, len, chksum",
    ),
    "a header for a field": (
        lambda: build(STLVmFlowVar("a"), STLVmWrFlowVar("a", "IP")),
        "'IP' is not a field: give a number of bytes, or a name like IP.src",
    ),
    "a field for a header": (lambda: build(STLVmFixIpv4("IP.src")), "'IP.src' is not a header"),
    "declared twice": (lambda: build(STLVmFlowVar("a"), STLVmFlowVar("a")), "variable 'a' is declared twice"),
    "size 3": (lambda: STLVmFlowVar("a", size=3), "variable 'a': size is 3, give 1, 2, 4 or 8 bytes"),
    "too large": (
        lambda: STLVmFlowVar("a", max_value=256, size=1),
        "variable 'a': max_value 256 does not fit into 1 bytes, give 0 to 255 or a larger size",
    ),
    "wrong way round": (
        lambda: STLVmFlowVar("a", min_value=9, max_value=5),
        "max_value 5 is lower than min_value 9",
    ),
    "init outside": (lambda: STLVmFlowVar("a", init_value=300), "init_value 300 is outside of"),
    "no address": (lambda: STLVmFlowVar("a", min_value="16.0.0"), "give a number or an IPv4 address"),
    "op": (lambda: STLVmFlowVar("a", op="add"), "op is 'add', give one of inc, dec, random"),
    "step 0": (lambda: STLVmFlowVar("a", step=0), "step is 0"),
    "no values": (lambda: STLVmFlowVar("a", value_list=[]), "value_list is empty"),
    "next nowhere": (lambda: build(STLVmFlowVar("a", next_var="b")), "next_var 'b' is not declared"),
    "circle": (
        lambda: build(STLVmFlowVar("a", next_var="b"), STLVmFlowVar("b", next_var="a")),
        "the variables form a circle",
    ),
    "trim by 4 bytes": (
        lambda: build(STLVmFlowVar("a"), STLVmTrimPktSize("a")),
        "variable 'a' must have a size of 2 bytes",
    ),
    "tuple range": (lambda: STLVmTupleGen("t", port_min=9, port_max=8), "port_max is lower than port_min"),
    "l4 type": (lambda: STLVmFixChecksumHw("IP", "UDP", 12), r"l4_type is 12, give 11 \(UDP\), 13 \(TCP\)"),
    "l4 before l3": (lambda: build(STLVmFixChecksumHw("UDP", "IP", 11)), "the next header after it"),
    "rate 0": (lambda: STLTXCont(pps=0), "'pps' cannot be 0: give a rate above zero"),
    "rate nan": (lambda: STLTXCont(bps_L1=float("nan")), "'bps_L1' cannot be nan"),
    "rate text": (lambda: STLTXCont(pps="5"), "'pps' cannot be '5': give a number"),
    "two rates": (
        lambda: STLTXCont(pps=1, percentage=2),
        "pps, percentage were given: keep exactly one parameter",
    ),
    "no packets": (lambda: STLTXSingleBurst(total_pkts=0), "'total_pkts' cannot be 0"),
    "no bursts": (lambda: STLTXMultiBurst(count=0), "'count' cannot be 0"),
    "gap": (lambda: STLTXMultiBurst(ibg=-1), "'ibg' cannot be -1"),
    "next of continuous": (
        lambda: STLStream(name="S1", packet=STLPktBuilder(pkt=udp()), next="S2"),
        "stream 'S1' is continuous and never ends, so next='S2' cannot follow",
    ),
    "isg": (
        lambda: STLStream(packet=STLPktBuilder(pkt=udp()), isg=-1),
        "isg is -1, give the delay in microseconds",
    ),
    "actions": (lambda: STLStream(packet=STLPktBuilder(pkt=udp()), action_count=-1), "action_count is -1"),
    "pg_id": (lambda: STLFlowStats(pg_id=-1), "'pg_id' cannot be -1"),
    "mac mode": (lambda: STLStream(packet=STLPktBuilder(pkt=udp()), mac_dst_override_mode=3), r"0 \(port\)"),
    "cache": (lambda: STLScVmRaw(cache_size=70_000), "cache_size is 70000"),
    "range": (lambda: STLIPRange(src={"start": "1.0.0.1"}), "src has no 'end'"),
    "byte order": (lambda: STLVM().write("a", 0, byte_order="net"), "byte_order is 'net'"),
    "no capture": (
        lambda: STLPktBuilder(pkt="/nowhere/x.pcap"),
        "/nowhere/x.pcap cannot be read: No such file",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(STLError, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: STLPktBuilder(pkt=5),  # type: ignore[arg-type]
        lambda: STLPktBuilder(pkt_buffer="text"),  # type: ignore[arg-type]
        lambda: STLPktBuilder(pkt=udp(), vm=5),  # type: ignore[arg-type]
        lambda: STLPktBuilder(pkt=udp(), vm=["a"]),  # type: ignore[list-item]
        lambda: STLStream(packet=STLPktBuilder(pkt=udp()), self_start=1),  # type: ignore[arg-type]
        lambda: STLScVmRaw(["a"]),  # type: ignore[list-item]
        lambda: STLStream(packet=udp()),
        lambda: STLStream(packet=STLPktBuilder(pkt=udp()), mode="fast"),  # type: ignore[arg-type]
        lambda: STLVmFlowVar(1),  # type: ignore[arg-type]
        lambda: STLVmFlowVar("a", min_value=1.5),  # type: ignore[arg-type]
        lambda: STLVmWrFlowVar("a", 1.5),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_are_named(make: Callable[[], Any]) -> None:
    with pytest.raises(STLTypeError, match=r"argument '\w+' is of type '\w+': give one of: "):
        make()


def test_sizes_at_the_limits_are_taken() -> None:
    assert STLPktBuilder(pkt_buffer=bytes(14)).get_pkt_len() == 14
    assert STLPktBuilder(pkt_buffer=bytes(9238)).get_pkt_len() == 9238
    (_, write) = build(STLVmFlowVar("a", size=4), STLVmWrFlowVar("a", 56))
    assert write["pkt_offset"] == 56, "the last four bytes"


def test_a_short_packet_may_be_written_up_to_the_padding() -> None:
    """The server pads to 60 bytes before it writes."""
    instructions = build(STLVmFlowVar("a", size=4), STLVmWrFlowVar("a", 56), pkt=udp(""))
    assert instructions[-1]["pkt_offset"] == 56


def test_the_scapy_packet_of_the_user_is_not_changed() -> None:
    packet = Ether() / IP(dst="48.0.0.9") / UDP()
    before = [dict(layer.fields) for layer in packet.iterpayloads()]
    STLPktBuilder(pkt=packet)
    assert [dict(layer.fields) for layer in packet.iterpayloads()] == before


def test_open_addresses_do_not_depend_on_the_machine() -> None:
    data = STLStream(packet=STLPktBuilder(pkt=Ether() / IP() / UDP())).get_pkt()
    assert data[:12].hex() == "000000010000" + "000000020000"
    assert data[26:34].hex() == "10000001" + "30000001"
    six = STLStream(packet=STLPktBuilder(pkt=Ether() / IPv6() / UDP())).get_pkt()
    assert six[22:54] == bytes(15) + b"\x02" + bytes(15) + b"\x01"


def test_packets_are_built_without_asking_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scapy looks up routes and resolves open MACs by ARP; a builder must not."""

    def network(*_args: Any, **_more: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(conf.route, "route", network)
    monkeypatch.setattr(conf.route6, "route", network)
    monkeypatch.setattr(conf.neighbor, "resolve", network)
    inner = Ether() / IP(dst="1.2.3.4") / UDP()
    for packet in (inner, Ether() / ARP(), Ether() / IPv6() / UDP(), inner / VXLAN() / inner):
        assert STLPktBuilder(pkt=packet).get_pkt_len() >= 42


@pytest.mark.parametrize(
    ("packet", "flags"),
    [
        (Ether() / IP() / UDP(), 0),
        (Ether(src="00:00:00:02:00:00") / IP() / UDP(), 1),
        (Ether(dst="01:02:03:04:05:06") / IP() / UDP(), 2),
        (Ether(bytes(Ether() / IP() / UDP())), 3),
        (Dot3() / Raw(bytes(60)), 0),
    ],
)
def test_macs_that_the_packet_says_are_kept(packet: Any, flags: int) -> None:
    assert STLStream(packet=STLPktBuilder(pkt=packet)).to_json()["flags"] == flags


def test_macs_can_be_forced() -> None:
    packet = STLPktBuilder(pkt=udp())
    flags = STLStream(
        packet=packet,
        mac_src_override_by_pkt=True,
        mac_dst_override_mode=STLStreamDstMAC_ARP,
        dummy_stream=True,
    ).to_json()["flags"]
    assert flags == 1 | 2 << 1 | 8


def test_a_dummy_stream_needs_no_packet() -> None:
    stream = STLStream(dummy_stream=True, mode=STLTXSingleBurst(total_pkts=3))
    assert stream.is_dummy()
    assert STLStream.from_json(stream.to_json()).is_dummy()


def test_a_correct_fcs_is_dropped_and_a_wrong_one_stays() -> None:
    frame = bytes(udp())
    with_fcs = frame + zlib.crc32(frame).to_bytes(4, "little")
    assert STLPktBuilder(pkt_buffer=with_fcs).get_pkt_len() == len(frame)
    assert STLPktBuilder(pkt_buffer=with_fcs, remove_fcs=False).get_pkt_len() == len(frame) + 4
    assert STLPktBuilder(pkt_buffer=frame + b"\0\0\0\0").get_pkt_len() == len(frame) + 4


def test_names_work_in_captures_and_bytes(tmp_path: Any) -> None:
    path = tmp_path / "one.pcap"
    wrpcap(str(path), [udp(), udp("second")])
    vm = STLScVmRaw([STLVmFlowVar("a", size=2), STLVmWrFlowVar("a", "UDP.dport")])
    for builder in (STLPktBuilder(pkt=path, vm=vm), STLPktBuilder(pkt_buffer=bytes(udp()), vm=vm)):
        assert builder.get_pkt_len() == 60
        assert builder.to_json()["vm"]["instructions"][-1]["pkt_offset"] == 36


def test_pcapng_is_read_too(tmp_path: Any) -> None:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    frame = bytes(udp())
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 0))
    packet = block(6, struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame)) + frame)
    (tmp_path / "one.pcapng").write_bytes(section + interface + packet)
    assert STLPktBuilder(pkt=tmp_path / "one.pcapng").dump_pkt(encode=False)["binary"] == frame


def test_a_file_that_is_no_capture_is_refused(tmp_path: Any) -> None:
    (tmp_path / "text.pcap").write_text("not a capture, but long enough to look like the header of one")
    (tmp_path / "empty.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    with pytest.raises(STLPacketError, match="is not a pcap, pcapng or ERF file"):
        STLPktBuilder(pkt=tmp_path / "text.pcap")
    with pytest.raises(STLPacketError, match="has no packet: give one with at least one"):
        STLPktBuilder(pkt=tmp_path / "empty.pcap")


def test_stl_vm_writes_what_the_list_writes() -> None:
    vm = STLVM()
    vm.var("a", 1, 10, 2, "inc", init_value=4)
    vm.repeatable_random_var("r", 2, 10, seed=9, min_value=1, max_value=5)
    vm.tuple_var("t", "1.1.1.1", "1.1.1.5", 1, 10)
    vm.write("a", "IP.dst", offset_fixup=2, add_val=1, byte_order="little")
    vm.write_mask("a", "IP.tos", 1, 255)
    vm.trim("a")
    vm.fix_chksum()
    vm.fix_chksum_hw("IP", "UDP", 11)
    vm.fix_chksum_icmpv6("IP", "UDP")
    vm.set_cached(30)
    program = STLPktBuilder(pkt=udp(), vm=vm).to_json()["vm"]
    assert program["cache"] == 30
    flow_var = {
        "type": "flow_var",
        "name": "a",
        "size": 2,
        "op": "inc",
        "next_var": None,
        "split_to_cores": True,
    }
    random = {"type": "flow_var_rand_limit", "name": "r", "size": 2, "limit": 10, "seed": 9}
    ranges = {"ip_min": 16843009, "ip_max": 16843013, "port_min": 1, "port_max": 10}
    write = {"type": "write_flow_var", "name": "a", "pkt_offset": 32, "add_value": 1, "is_big_endian": False}
    mask = {
        "pkt_offset": 15,
        "pkt_cast_size": 1,
        "mask": 255,
        "shift": 0,
        "add_value": 0,
        "is_big_endian": True,
    }
    assert program["instructions"] == [
        flow_var | {"init_value": 4, "min_value": 1, "max_value": 10, "step": 1},
        random | {"min_value": 1, "max_value": 5, "split_to_cores": True, "next_var": None},
        {"type": "tuple_flow_var", "name": "t", **ranges, "limit_flows": 0, "flags": 0},
        write,
        {"type": "write_mask_flow_var", "name": "a", **mask},
        {"type": "trim_pkt_size", "name": "a"},
        {"type": "fix_checksum_ipv4", "pkt_offset": 14},
        {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11},
        {"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 20},
    ]


@pytest.mark.parametrize(
    ("header", "field", "at"),
    [
        ("Ether", "src", 6),
        ("Ethernet", "src", 6),
        ("802.1Q", "vlan", 14),
        ("802|1Q:1", "vlan", 18),
        ("Dot1Q:1", "vlan", 18),
        ("IPv6", "dst", 46),
        ("ICMPv6ND_NS", "tgt", 70),
        ("ICMPv6 Neighbor Discovery - Neighbor Solicitation", "tgt", 70),
        ("ICMPv6 Neighbor Discovery - Neighbor Solicitation:0", "tgt", 70),
    ],
)
def test_a_header_has_the_name_of_its_class_and_the_one_that_scapy_shows(
    header: str, field: str, at: int
) -> None:
    frame = Ether() / Dot1Q(vlan=1) / Dot1Q(vlan=2) / IPv6(dst="::5") / ICMPv6ND_NS(tgt="::7")
    vm = STLVM()
    vm.var("a", 0, 5, size=1, op="inc")
    vm.write("a", f"{header}.{field}")
    if "ICMPv6" in header:
        vm.fix_chksum_icmpv6("IPv6", header)
    lines = STLPktBuilder(pkt=frame, vm=vm).vm_json()["instructions"]
    assert lines[1]["pkt_offset"] == at
    if "ICMPv6" in header:
        assert lines[2] == {"type": "fix_checksum_icmpv6", "l2_len": 22, "l3_len": 40}


@pytest.mark.parametrize("raw", [False, True])
def test_variables_that_follow_another_are_not_split(raw: bool) -> None:
    """A TRex server refuses a follower with true: it moves as the one before it does."""
    program = STLScVmRaw(
        [
            STLVmFlowVar("last", size=1),
            STLVmFlowVar("first", size=1, next_var="second"),
            STLVmFlowVarRepeatableRandom("second", size=1, seed=1, next_var="last"),
            STLVmWrFlowVar("first", 30),
        ]
    )
    if raw:
        lines = STLPktBuilder(pkt=udp(), vm=program).vm_json()
        for line in lines["instructions"][:3]:
            line["split_to_cores"] = True
        program = STLScVmRaw.from_json(lines)
    instructions = STLPktBuilder(pkt=udp(), vm=program).vm_json()["instructions"]
    assert [(line["name"], line["split_to_cores"]) for line in instructions[:3]] == [
        ("first", True),
        ("second", False),
        ("last", False),
    ]


def test_a_program_may_be_a_plain_list() -> None:
    commands = [STLVmFlowVar("a", size=2), STLVmWrFlowVar("a", "UDP.sport")]
    plain, named = (STLPktBuilder(pkt=udp(), vm=vm).to_json() for vm in (commands, STLScVmRaw(commands)))
    assert plain == named
    assert STLPktBuilder(pkt=udp(), vm=[]).to_json()["vm"] == {"instructions": []}


def test_a_packet_can_be_written_to_a_capture(tmp_path: Any) -> None:
    builder = STLPktBuilder(pkt=udp())
    builder.dump_pkt_to_pcap(tmp_path / "one.pcap")
    assert STLPktBuilder(pkt=tmp_path / "one.pcap").dump_pkt() == builder.dump_pkt()


def test_what_a_stream_says_of_itself() -> None:
    counted = STLStream(name="a", packet=STLPktBuilder(pkt=udp()), flow_stats=STLFlowStats(pg_id=5))
    assert (counted.get_pg_id(), counted.get_flow_stats_type(), counted.has_flow_stats()) == (
        5,
        "stats",
        True,
    )
    assert (counted.get_pkt_len(), counted.get_pkt_len(count_crc=False)) == (64, 60)
    assert (counted.get_mode(), counted.get_rate()) == ("Continuous", "1 pps")
    assert not counted.has_custom_mac_addr()
    own = STLStream(packet=STLPktBuilder(pkt=Ether(dst="01:02:03:04:05:06") / Raw(bytes(60))))
    assert own.is_explicit_dst_mac()
    assert STLProfile([counted, own]).has_custom_mac_addr()
    assert STLProfile([counted, own]).is_pauseable()


def test_counters_start_at_the_end_they_come_from() -> None:
    first = {
        op: build(STLVmFlowVar("a", op=op, min_value=3, max_value=7))[0]["init_value"]
        for op in ("inc", "dec")
    }
    assert first == {"inc": 3, "dec": 7}


def test_a_range_of_addresses_is_a_program() -> None:
    vm = STLIPRange(src={"start": "16.0.0.1", "end": "16.0.0.9"}, dst={"start": 1, "end": 9, "step": 2})
    kinds = [line["type"] for line in STLPktBuilder(pkt=udp(), vm=vm).to_json()["vm"]["instructions"]]
    assert kinds == ["flow_var", "flow_var", "write_flow_var", "write_flow_var", "fix_checksum_ipv4"]


def test_a_profile_takes_streams_only() -> None:
    stream = STLStream(packet=STLPktBuilder(pkt=udp()))
    assert STLProfile(stream).get_streams() == [stream]
    assert STLProfile().get_streams() == []
    for wrong in ([stream, 5], "streams", 5):
        with pytest.raises(STLArgumentError, match="'streams'"):
            STLProfile(wrong)  # type: ignore[arg-type]


def test_a_clone_has_its_own_life() -> None:
    stream = STLStream(name="a", packet=STLPktBuilder(pkt=udp()), stream_id=4)
    twin = stream.clone()
    twin.name = "b"
    assert (stream.name, stream.id, twin.id) == ("a", 4, None)
    assert twin.to_json()["packet"] == stream.to_json()["packet"]


def test_a_loop_of_streams_is_linked() -> None:
    burst = STLTXSingleBurst(total_pkts=1)
    packet = STLPktBuilder(pkt=udp())
    loop = [
        STLStream(name="a", packet=packet, mode=burst, next="b", action_count=3),
        STLStream(name="b", packet=packet, mode=burst, next="a", self_start=False),
    ]
    assert [stream["next_stream_id"] for stream in link(loop, [10, 20])] == [20, 10]
