"""Profiles written with our language give the requests that TRex's client sends for the same traffic.

The references are the commands of tests/data/golden-stateless: every key, type and value is compared.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.api import (
    IP,
    STLVM,
    TCP,
    UDP,
    VXLAN,
    Dot1Q,
    Ether,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLProfile,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
    wrpcap,
)
from allosaur.testing import MockTransport

Profile = STLProfile | STLStream
CASES: dict[str, Callable[[], Profile]] = {}


def case(make: Callable[[], Profile]) -> Callable[[], Profile]:
    CASES[make.__name__] = make
    return make


def udp(payload_bytes: int, source: str = "16.0.0.1") -> Any:
    """The packet of most references: UDP from port 1025 to 12, filled with x."""
    return Ether() / IP(src=source, dst="48.0.0.1") / UDP(dport=12, sport=1025) / (payload_bytes * "x")


def changing(packet: Any, *commands: Any, cache_size: int | None = None, **stream: Any) -> STLStream:
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=STLScVmRaw(list(commands), cache_size)), **stream)


@case
def imix() -> Profile:
    vm = STLVM()
    for name, first, last in (("src", "16.0.0.1", "16.0.0.254"), ("dst", "48.0.0.1", "48.0.0.254")):
        vm.var(name, first, last, size=4, op="inc")
    vm.write("src", "IP.src")
    vm.write("dst", "IP.dst")
    vm.fix_chksum()
    streams = []
    for size, pps, isg in ((60, 28, 0), (590, 16, 0.1), (1514, 4, 0.2)):
        packet = Ether() / IP() / UDP()
        packet /= "x" * (size - len(packet))
        streams.append(STLStream(isg=isg, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps)))
    return STLProfile(streams)


@case
def multi_burst_2st_1000pkt() -> Profile:
    first = STLTXSingleBurst(pps=10, total_pkts=2)
    then = STLTXMultiBurst(pps=1000, pkts_per_burst=4, ibg=1000000.0, count=5)
    return STLProfile(
        [
            STLStream(name="S0", isg=10.0, packet=STLPktBuilder(pkt=udp(18)), mode=first, next="S1"),
            STLStream(name="S1", self_start=False, packet=STLPktBuilder(pkt=udp(18, "16.0.0.2")), mode=then),
        ]
    )


@case
def syn_attack() -> Profile:
    vm = STLVM()
    vm.var("ip_src", "16.0.0.0", "18.0.0.254", size=4, op="random")
    vm.var("src_port", 1025, 65000, size=2, op="random")
    vm.write("ip_src", "IP.src")
    vm.fix_chksum()
    vm.write("src_port", "TCP.sport")
    packet = Ether() / IP(dst="48.0.0.1") / TCP(dport=80, flags="S")
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), random_seed=0x1234, mode=STLTXCont())


@case
def syn_attack_fix_cs_hw() -> Profile:
    return changing(
        Ether() / IP(dst="48.0.0.1") / TCP(dport=80, flags="S"),
        STLVmFlowVar("ip_src", min_value="16.0.0.0", max_value="18.0.0.254", size=4, op="random"),
        STLVmFlowVar("src_port", min_value=1025, max_value=65000, size=2, op="random"),
        STLVmWrFlowVar("ip_src", "IP.src"),
        STLVmWrFlowVar("src_port", "TCP.sport"),
        STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=STLVmFixChecksumHw.L4_TYPE_TCP),
        random_seed=0x1234,
        mode=STLTXCont(pps=1.0),
    )


@case
def udp_1pkt_1mac() -> Profile:
    mac = STLVmFlowVar("mac_src", min_value=1, max_value=1, size=1, op="inc")
    return changing(
        udp(18), mac, STLVmWrFlowVar("mac_src", "Ether.src", offset_fixup=5), mode=STLTXCont(pps=10)
    )


def masked(offset: int | str, **mask: int) -> STLStream:
    mac = STLVmFlowVar("mac_src", min_value=1, max_value=30, size=2, op="dec")
    return changing(udp(18), mac, STLVmWrMaskFlowVar("mac_src", offset, **mask), mode=STLTXCont(pps=10))


@case
def udp_1pkt_mac_mask1() -> Profile:
    return masked("Ether.src", offset_fixup=5)


@case
def udp_1pkt_mac_mask2() -> Profile:
    return masked(10, pkt_cast_size=2, mask=0xFF00, shift=8)


@case
def udp_1pkt_mac_mask3() -> Profile:
    return masked(10, mask=1, shift=-1)


@case
def udp_1pkt_repeat_random() -> Profile:
    return changing(
        udp(18),
        STLVmFlowVar("ip_src", min_value="10.0.0.1", max_value="10.0.0.255"),
        STLVmFlowVarRepeatableRandom(
            "ip_dst", limit=16, seed=0x1235, min_value="48.0.0.1", max_value="48.0.0.255"
        ),
        STLVmWrFlowVar("ip_src", "IP.src"),
        STLVmWrFlowVar("ip_dst", "IP.dst"),
        STLVmFixIpv4("IP"),
        cache_size=255,
        mode=STLTXCont(pps=1.0),
    )


@case
def udp_1pkt_simple_mac_dst() -> Profile:
    packet = Ether(dst="60:60:60:60:60:60") / IP(dst="48.0.0.1") / UDP(dport=12, sport=1025) / (10 * "x")
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=1.0))


@case
def udp_1pkt_src_ip_split() -> Profile:
    return changing(
        udp(18),
        STLVmFlowVar("ip_src", min_value="10.0.0.1", max_value="10.0.0.255"),
        STLVmWrFlowVar("ip_src", "IP.src"),
        STLVmFixIpv4("IP"),
        cache_size=255,
        mode=STLTXCont(pps=1.0),
    )


@case
def udp_1pkt_tuple_gen_split() -> Profile:
    return changing(
        udp(18),
        STLVmTupleGen("tuple", ip_min="16.0.0.1", ip_max="16.0.0.10"),
        STLVmWrFlowVar("tuple.ip", "IP.src"),
        STLVmFixIpv4("IP"),
        STLVmWrFlowVar("tuple.port", "UDP.sport"),
        mode=STLTXCont(pps=1.0),
    )


@case
def udp_inc_len_9k() -> Profile:
    packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025)
    packet /= b"\x55" * (9230 - len(packet))
    return changing(
        packet,
        STLVmFlowVar("fv_rand", min_value=64, max_value=9230, size=2),
        STLVmTrimPktSize("fv_rand"),
        STLVmWrFlowVar("fv_rand", "IP.len", add_val=-14),
        STLVmFixIpv4("IP"),
        STLVmWrFlowVar("fv_rand", "UDP.len", add_val=-34),
        mode=STLTXCont(pps=1.0),
    )


@case
def dependent_vars_all_dec_1_1() -> Profile:
    letters = [
        STLVmFlowVar(name, min_value=b"a"[0], max_value=last, size=1, op="dec", next_var=after, **split)
        for name, last, after, split in (
            ("var3", 99, None, {"split_to_cores": False}),
            ("var1", 101, "var2", {}),
            ("var2", 100, "var3", {"split_to_cores": False}),
        )
    ]
    writes = [STLVmWrFlowVar(f"var{number}", 45 - number) for number in (1, 2, 3)]
    return changing(udp(24), *letters, *writes, mode=STLTXCont(pps=1.0))


@case
def dependent_field_engine_vars_c2() -> Profile:
    addresses = ["16.0.0.1", "10.0.0.1", "14.0.0.1"]
    return changing(
        udp(24),
        STLVmFlowVar("IP_src", value_list=addresses, op="dec", next_var="var1"),
        STLVmFlowVar("var1", min_value=97, max_value=99, size=1, split_to_cores=False, next_var="var2"),
        STLVmFlowVarRepeatableRandom("var2", 1, 4, 0, 97, 122, split_to_cores=False, next_var="var3"),
        STLVmFlowVar("var3", min_value=97, max_value=98, size=1, split_to_cores=False),
        STLVmWrFlowVar("IP_src", "IP.src"),
        STLVmWrFlowVar("var1", 45),
        STLVmWrFlowVar("var2", 44),
        STLVmWrFlowVar("var3", 43),
        STLVmFixIpv4("IP"),
        mode=STLTXCont(pps=1.0),
    )


@case
def udp_1pkt_vxlan() -> Profile:
    inner = Ether() / IP() / ("x" * 20)
    packet = Ether() / IP() / UDP(sport=1337, dport=4789) / VXLAN(vni=42, flags=8) / inner
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXSingleBurst(pps=1, total_pkts=17))


@case
def flow_stats() -> Profile:
    return STLStream(
        packet=STLPktBuilder(pkt=udp(55)), mode=STLTXCont(pps=1), flow_stats=STLFlowStats(pg_id=1)
    )


@case
def flow_stats_latency() -> Profile:
    counted = STLFlowLatencyStats(pg_id=7)
    return STLStream(packet=STLPktBuilder(pkt=udp(18)), mode=STLTXCont(pps=1000), flow_stats=counted)


def golden(folder: Path, name: str) -> list[dict[str, Any]]:
    commands: list[dict[str, Any]] = json.loads((folder / "golden-stateless" / f"{name}.json").read_text())[
        "commands"
    ]
    return commands


def without_packets(commands: list[dict[str, Any]]) -> list[str]:
    """Take the packets out, so that a difference in bytes is shown as bytes."""
    packets = []
    for command in commands:
        packet = command["params"].get("stream", {}).get("packet")
        if packet:
            packets.append(base64.b64decode(packet.pop("binary")).hex(" "))
    return packets


@pytest.mark.parametrize("name", sorted(CASES))
def test_our_profile_sends_what_trex_sends(name: str, recorded: Path) -> None:
    made = CASES[name]()
    profile = made if isinstance(made, STLProfile) else STLProfile(made)
    ours, theirs = profile.to_commands(port_id=0), golden(recorded, name)
    assert without_packets(ours) == without_packets(theirs)
    assert ours == theirs


def test_the_client_sends_the_same_streams(recorded: Path) -> None:
    """Through ``add_streams``: only what identifies the connection differs."""
    from allosaur import STLClient

    transport = MockTransport()
    with STLClient(transport=transport) as client:
        client.reset()
        client.add_streams(CASES["multi_burst_2st_1000pkt"](), ports=[0])
        client.start(ports=[0], mult="1", force=True)
    theirs = golden(recorded, "multi_burst_2st_1000pkt")
    streams = [command["params"]["stream"] for command in theirs if command["method"] == "add_stream"]
    sent = transport.requests("add_stream")
    assert [params["stream"] for params in sent] == streams
    assert [params["stream_id"] for params in sent] == [1, 2]
    (start,) = transport.requests("start_traffic")
    assert start["mul"] == theirs[-1]["params"]["mul"]


def test_captures_give_the_packets_that_trex_takes_from_them(recorded: Path, tmp_path: Path) -> None:
    theirs = golden(recorded, "udp_3pkt_pcap")
    streams = [command["params"]["stream"] for command in theirs if command["method"] == "add_stream"]
    ours = []
    for number, stream in enumerate(streams):
        path = tmp_path / f"{number}.pcap"
        wrpcap(str(path), [Ether(base64.b64decode(stream["packet"]["binary"]))])
        mode = STLTXSingleBurst(pps=10, total_pkts=stream["mode"]["total_pkts"])
        ours.append(
            STLStream(
                name=stream["name"],
                next=stream.get("next"),
                isg=stream["isg"],
                self_start=stream["self_start"],
                packet=STLPktBuilder(pkt=str(path)),
                mode=mode,
            )
        )
    assert STLProfile(ours).to_commands() == theirs


def test_every_reference_survives_from_json_to_json(recorded: Path) -> None:
    names = sorted(path.stem for path in (recorded / "golden-stateless").glob("*.json"))
    assert len(names) > 40
    for name in names:
        streams = [cmd["params"]["stream"] for cmd in golden(recorded, name) if cmd["method"] == "add_stream"]
        for stream in streams:
            stream.pop("next_stream_id")
        assert STLProfile.from_json(streams).to_json() == streams, name


def test_nested_names_are_found_in_an_inner_header() -> None:
    packet = Ether() / Dot1Q(vlan=1) / Dot1Q(vlan=2) / IP() / UDP() / IP() / TCP() / string.ascii_letters
    places = {"Dot1Q.vlan": 14, "Dot1Q:1.vlan": 18, "IP.src": 34, "IP:1.src": 62, "IP:1.ihl": 50}
    for name, offset in {**places, "IP.flags": 28, "UDP.sport": 42, "TCP.sport": 70, "Raw.load": 90}.items():
        stream = changing(packet, STLVmFlowVar("v", size=1), STLVmWrFlowVar("v", name))
        assert stream.to_json()["vm"]["instructions"][-1]["pkt_offset"] == offset, name
