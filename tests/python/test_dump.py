"""Profiles as Python code, JSON and YAML: what is written loads as the same streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    STLVM,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLProfile,
    STLProfileError,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIcmpv6,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)
from allosaur.api import IP, TCP, UDP, Dot1Q, Ether, IPv6
from hypothesis import given, settings
from hypothesis import strategies as st

SUFFIXES = ("py", "json", "yaml")
UINT32 = st.integers(0, (1 << 32) - 1)
RATES = st.one_of(st.integers(1, 10**9), st.floats(0.001, 1e9))
KINDS_OF_RATE = st.sampled_from(["pps", "bps_L1", "bps_L2", "percentage"])
MICROSECONDS = st.one_of(st.just(0.0), st.integers(0, 10**6), st.floats(0, 1e9))


@st.composite
def modes(draw: st.DrawFn) -> Any:
    rate = {draw(KINDS_OF_RATE): draw(RATES)}
    count = st.integers(1, 10**6)
    return draw(
        st.sampled_from(
            [
                STLTXCont(**rate),
                STLTXSingleBurst(total_pkts=draw(count), **rate),
                STLTXMultiBurst(draw(count), draw(MICROSECONDS), draw(count), **rate),
            ]
        )
    )


@st.composite
def scapy_packets(draw: st.DrawFn) -> Any:
    packet = draw(st.sampled_from([Ether(), Ether(src="00:00:00:00:00:01"), Ether(dst="60:60:60:60:60:60")]))
    if draw(st.booleans()):
        packet = packet / Dot1Q(vlan=draw(st.integers(0, 4095)), prio=draw(st.integers(0, 7)))
    network = draw(st.sampled_from([IP(), IP(src="16.0.0.7", ttl=3), IPv6(), IPv6(dst="2001:db8::1")]))
    transport = draw(
        st.sampled_from([UDP(dport=12), UDP(chksum=0), TCP(flags="SA"), TCP(options=[("MSS", 9)])])
    )
    return packet / network / transport / draw(st.binary(max_size=40))


PACKETS = st.one_of(
    scapy_packets().map(lambda packet: {"pkt": packet}),
    scapy_packets().map(lambda packet: {"pkt_buffer": bytes(packet)}),
    st.binary(min_size=30, max_size=200).map(lambda data: {"pkt_buffer": data}),
)


@st.composite
def programs(draw: st.DrawFn) -> Any:
    """Programs of every instruction; the packet has at least 30 bytes, and is padded to 60."""
    size = draw(st.sampled_from([1, 2, 4, 8]))
    top = (1 << 8 * size) - 1
    low, first, high = sorted(draw(st.lists(st.integers(0, top), min_size=3, max_size=3)))
    values = st.lists(st.integers(0, top), min_size=1, max_size=5)
    offset = st.integers(0, 50)
    number = st.integers(-1000, 1000)
    variables = [
        STLVmFlowVar("a", first, low, high, size, draw(st.integers(1, top)), draw(OPERATIONS)),
        STLVmFlowVar("b", value_list=draw(values), size=size, op="dec", split_to_cores=False, next_var="c"),
        STLVmFlowVarRepeatableRandom("c", size, draw(st.integers(1, 99)), draw(UINT32), low, high, False),
        STLVmTupleGen("t", "16.0.0.1", "16.0.0.9", 1025, 2000, draw(UINT32), draw(st.integers(0, 1))),
        STLVmFlowVar("length", min_value=60, max_value=64, size=2),
    ]
    mask = draw(st.integers(0, 255))
    actions = [
        STLVmWrFlowVar("a", draw(offset), add_val=draw(number), is_big=draw(st.booleans())),
        STLVmWrFlowVar("t.port", draw(offset)),
        STLVmWrMaskFlowVar("b", draw(offset), 2, mask, draw(st.integers(-8, 8)), draw(number)),
        STLVmFixIpv4(14),
        STLVmFixChecksumHw(14, 34, draw(st.sampled_from([11, 13, 17]))),
        STLVmFixIcmpv6(14, 54),
        STLVmTrimPktSize("length"),
    ]
    chosen = draw(st.lists(st.sampled_from(actions), max_size=7))
    cache = draw(st.sampled_from([None, 255]))
    return draw(st.sampled_from([None, STLScVmRaw([*variables, *chosen], cache)]))


OPERATIONS = st.sampled_from(["inc", "dec", "random"])
RULES = st.one_of(
    st.none(),
    UINT32.map(STLFlowStats),
    UINT32.map(lambda number: STLFlowStats(number, vxlan=True)),
    UINT32.map(lambda number: STLFlowLatencyStats(number, ieee_1588=True)),
)


@st.composite
def streams(draw: st.DrawFn) -> STLStream:
    mode = draw(modes())
    follows = None if isinstance(mode, STLTXCont) else draw(st.sampled_from([None, 'it\'s "next"\\\n']))
    return STLStream(
        name=draw(st.one_of(st.none(), st.text(max_size=9))),
        packet=STLPktBuilder(**draw(PACKETS), vm=draw(programs())),
        mode=mode,
        next=follows,
        enabled=draw(st.booleans()),
        self_start=draw(st.booleans()),
        start_paused=draw(st.booleans()),
        isg=draw(MICROSECONDS),
        flow_stats=draw(RULES),
        action_count=draw(UINT32),
        random_seed=draw(UINT32),
        mac_src_override_by_pkt=draw(st.sampled_from([None, True, False])),
        mac_dst_override_mode=draw(st.sampled_from([None, 0, 1, 2])),
        dummy_stream=draw(st.booleans()),
        core_id=draw(st.integers(-1, 7)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30, deadline=None)
@given(made=st.lists(streams(), min_size=1, max_size=3))
def test_what_is_saved_loads_as_the_same_streams(folder: Path, suffix: str, made: list[STLStream]) -> None:
    profile, path = STLProfile(made), folder / f"profile.{suffix}"
    profile.save(path)
    assert STLProfile.load(path).to_json() == profile.to_json()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_references_survive(folder: Path, suffix: str, recorded: Path) -> None:
    paths = sorted((recorded / "golden-stateless").glob("*.json"))
    assert len(paths) == 42
    for path in paths:
        commands = json.loads(path.read_text())["commands"]
        found = [command["params"]["stream"] for command in commands if command["method"] == "add_stream"]
        profile, saved = STLProfile.from_json(found), folder / f"{path.stem}.{suffix}"
        profile.save(saved)
        assert STLProfile.load(saved).to_json() == profile.to_json(), path.stem


def test_the_code_is_as_a_person_would_write_it() -> None:
    vm = STLVM()
    vm.var("client", "16.0.0.1", "16.0.0.9", size=4, op="inc")
    vm.write("client", "IP.src")
    packet = Ether() / IP() / UDP(dport=12, sport=1025) / ("x" * 18)
    stream = STLStream("s", STLPktBuilder(pkt=packet, vm=vm), STLTXCont(pps=5), isg=7.5)
    code = STLProfile(stream).dump_to_code()
    for line in (
        "            / UDP(sport=1025, dport=12)",
        "            / Raw(load=b'x' * 18)",
        "                STLVmWrFlowVar(fv_name='client', pkt_offset=26, add_val=0, is_big=True),",
        "                mode=STLTXCont(pps=5),",
        "                isg=7.5,",
    ):
        assert line in code.splitlines()
    assert "action_count" not in code, "what is as usual is left out"


def test_a_captured_profile_becomes_code(tmp_path: Path, recorded: Path) -> None:
    profile = STLProfile.load(recorded / "pcap" / "delay_10_sip_0.pcap")
    profile.dump_to_code(tmp_path / "sip.py")
    assert STLProfile.load(tmp_path / "sip.py").to_json() == profile.to_json()


def test_an_instruction_that_python_does_not_have_is_named() -> None:
    fields = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60))).to_json()
    fields["vm"] = {"instructions": [{"type": "teleport", "pkt_offset": 3, "name": "x"}]}
    fields["vm"]["instructions"].insert(0, {"type": "flow_var", "name": "x", "size": 1})
    with pytest.raises(STLProfileError, match="the instruction 'teleport' has no form in Python"):
        STLProfile.from_json([fields]).dump_to_code()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.txt", "give a name that ends in .py, .json or .yaml"),
        ("no/x.json", "cannot be written: No such file"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str, words: str) -> None:
    profile = STLProfile(STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60))))
    with pytest.raises(STLProfileError, match=words):
        profile.save(tmp_path / name)


def test_streams_of_other_clients_may_have_numbers_for_names() -> None:
    fields = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXSingleBurst()).to_json()
    stream = STLStream.from_json({**fields, "name": 1, "next": 2})
    assert (stream.name, stream.next) == (1, 2)
    assert {"name": 1, "next": 2}.items() <= stream.to_json().items()
    code = STLProfile(stream).dump_to_code()
    assert "name=1" in code and "next=2" in code
