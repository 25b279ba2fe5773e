"""`allosaur sim`: the capture, its summary, and every way it can be asked wrongly."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import _shipped
from allosaur.cli._errors import CommandError
from allosaur.cli._simulated import summarize

ROOT = Path(__file__).resolve().parents[2]
needs_server = pytest.mark.usefixtures("binary")


@needs_server
def test_a_profile_becomes_a_capture(allosaur: Any, profile: Callable[..., Path], tmp_path: Path) -> None:
    ended = allosaur("sim", profile(), "-o", "out.pcap", "--limit", "50", "--json")
    assert ended.code == 0, ended
    result = ended.json()
    assert result.keys() == {
        *("command", "ok", "profile", "commands", "output", "packets", "bytes", "smallest_frame_bytes"),
        *("largest_frame_bytes", "first_s", "last_s"),
    }
    assert (result["packets"], result["bytes"]) == (50, 50 * 64)
    assert (result["smallest_frame_bytes"], result["largest_frame_bytes"]) == (64, 64)
    assert result["last_s"] - result["first_s"] == pytest.approx(0.049, abs=5e-6)
    assert summarize(tmp_path / "out.pcap").packets == 50


@needs_server
def test_the_table_for_people(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("sim", profile(), "-o", "out.pcap", "--limit", "50")
    assert ended.code == 0, ended
    for shown in ("packets", "50", "3,200", "49.0 ms", "Wrote out.pcap."):
        assert shown in ended.out, shown


@needs_server
def test_the_multiplier_and_the_duration_bound_it(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("sim", profile(), "-o", "out.pcap", "-m", "2kpps", "-d", "500ms", "--json")
    assert ended.json()["packets"] == 1000


@needs_server
@pytest.mark.parametrize("header", ["UDP(sport=1025, dport=12)", "TCP(sport=1025, dport=12)"])
def test_checksums_are_those_of_the_wire(
    allosaur: Any, profile: Callable[..., Path], tmp_path: Path, header: str
) -> None:
    from scapy.all import IP, TCP, UDP, Ether, rdpcap

    kind = header.split("(")[0]
    vm = (
        "STLScVmRaw([STLVmFlowVar('a', min_value=1, max_value=250, size=1, op='inc'), "
        "STLVmWrFlowVar(fv_name='a', pkt_offset=29), "
        f"STLVmFixChecksumHw(l3_offset=14, l4_offset=34, l4_type=STLVmFixChecksumHw.L4_TYPE_{kind})])"
    )
    packet = f"Ether() / IP(src='16.0.0.1', dst='48.0.0.1') / {header} / bytes(40)"
    path = profile(packet=packet, vm=vm)
    path.write_text(
        path.read_text(encoding="utf-8").replace("import Ether, IP, UDP", "import Ether, IP, TCP, UDP")
    )
    assert allosaur("sim", path, "-o", "out.pcap", "--limit", "20").code == 0
    sources = set()
    for sent in rdpcap(str(tmp_path / "out.pcap")):
        right = Ether(bytes(sent))
        layer = {"UDP": UDP, "TCP": TCP}[kind]
        found = right[IP].chksum, right[layer].chksum
        del right[IP].chksum, right[layer].chksum
        right = Ether(bytes(right))
        assert found == (right[IP].chksum, right[layer].chksum)
        sources.add(right[IP].src)
    assert len(sources) == 20, "each packet has another sum"


@needs_server
def test_without_a_bound_5000_packets_are_written(allosaur: Any, profile: Callable[..., Path]) -> None:
    assert allosaur("sim", profile(), "-o", "out.pcap", "--json").json()["packets"] == 5000


@needs_server
def test_the_direction_is_the_profiles(allosaur: Any, tmp_path: Path) -> None:
    from scapy.all import rdpcap

    path = ROOT / "profiles" / "constant_stream.py"
    for direction, source in ((0, "16.0.0.1"), (1, "48.0.0.1")):
        ended = allosaur("sim", path, "-o", "out.pcap", "--limit", "3", "--direction", direction)
        assert ended.code == 0, ended
        assert {packet["IP"].src for packet in rdpcap(str(tmp_path / "out.pcap"))} == {source}


@needs_server
def test_a_commands_file_brings_its_own_limit(allosaur: Any, tmp_path: Path) -> None:
    path = commands_file(tmp_path, pkt_limit=7)
    ended = allosaur("sim", "--commands", path, "-o", "out.pcap", "--json")
    assert ended.code == 0, ended
    assert ended.json()["packets"] == 7
    assert (
        allosaur("sim", "--commands", path, "-o", "out.pcap", "--limit", "3", "--json").json()["packets"] == 3
    )


@pytest.mark.parametrize("command", ["sim", "run"])
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("topo.py", "def get_topo():\n    return None\n", "is a topology .* not traffic: .*topo_load"),
        ("topo.json", '{"vifs": [], "gws": []}', "is a topology .* not traffic: .*topo_load"),
        ("topo.yaml", "vifs: []\ngws: []\n", "is a topology .* not traffic: .*topo_load"),
        (
            "tags.py",
            "class T:\n    def get_tpg_conf(self):\n        return []\n",
            "is a list of tags for tagged packet groups, which are not in Allosaur yet",
        ),
    ],
)
def test_a_file_that_is_no_traffic_says_what_it_is(
    allosaur: Any, tmp_path: Path, command: str, name: str, text: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    ended = allosaur(command, path)
    assert ended.code == 2, ended
    assert re.search(words, ended.err), ended.err
    assert str(path) in ended.err


ALONE = """
from allosaur.api import *

class Profile:
    def get_streams(self, direction=0, limit=5):
        vm = STLVM()
        vm.var("shared", 1, 7, size=1, op="inc")
        vm.var("alone", 1, 7, size=1, op="inc", split_to_cores=False)
        vm.repeatable_random_var("drawn", size=1, limit=limit, seed=7, split_to_cores=False)
        vm.var("digit", 1, 3, size=1, op="inc", next_var="tens", split_to_cores=False)
        vm.var("tens", 1, 9, size=1, op="inc")
        for at, name in enumerate(("shared", "alone", "drawn", "digit", "tens")):
            vm.write(name, 42 + at)
        frame = Ether() / IP() / UDP(chksum=0) / bytes(18)
        return [STLStream(packet=STLPktBuilder(pkt=frame, vm=vm), mode=STLTXCont(pps=1000))]

def register():
    return Profile()
"""


@needs_server
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_each_core_counts_alone_where_the_profile_says_so(allosaur: Any, tmp_path: Path, cores: int) -> None:
    from scapy.all import rdpcap

    path = tmp_path / "alone.py"
    path.write_text(ALONE)
    ended = allosaur("sim", path, "-o", "out.pcap", "--cores", cores, "--limit", 12 * cores)
    assert ended.code == 0, ended
    packets = [bytes(packet) for packet in rdpcap(str(tmp_path / "out.pcap"))]
    columns = [[packet[42 + at] for packet in packets] for at in range(5)]

    def times(values: list[int]) -> list[int]:
        """Each value once for each core."""
        return [value for value in values for _ in range(cores)]

    assert columns[0] == [number % 7 + 1 for number in range(12 * cores)]
    assert columns[1] == times([number % 7 + 1 for number in range(12)])
    assert columns[2] == times((columns[2][::cores][:5] * 3)[:12])
    assert columns[3] == times([1, 2, 3] * 4)
    assert columns[4] == times([number // 3 + 1 for number in range(12)])


HIGH_LEVEL = """
from trex_stl_lib.trex_stl_hltapi import STLHltStream

class Profile:
    def get_streams(self, direction=0):
        return STLHltStream(
            l3_protocol="ipv4", l4_protocol="udp", rate_pps=1000, direction=direction,
            udp_src_port=123, udp_src_port_mode="decrement", udp_src_port_count=45, udp_src_port_step=20,
            udp_dst_port=65000, udp_dst_port_mode="increment", udp_dst_port_count=100, udp_dst_port_step=300,
        )

def register():
    return Profile()
"""


@needs_server
def test_streams_of_the_high_level_api_send_what_trex_sends(
    allosaur: Any, recorded: Path, tmp_path: Path
) -> None:
    (tmp_path / "ports.py").write_text(HIGH_LEVEL)
    ended = allosaur("sim", tmp_path / "ports.py", "-o", "out.pcap", "--limit", 20)
    assert ended.code == 0, ended
    golden = recorded / "golden-stateless" / "hlt_udp_ports.pcap"
    assert frames(tmp_path / "out.pcap") == frames(golden)


@needs_server
def test_goldens_are_equal(allosaur: Any, recorded: Path, tmp_path: Path) -> None:
    """One golden through the command line; the server's own tests compare all of them."""
    golden = recorded / "golden-stateless"
    ended = allosaur("sim", "--commands", golden / "imix.json", "-o", "out.pcap")
    assert ended.code == 0, ended
    assert sorted(frames(tmp_path / "out.pcap")) == sorted(frames(golden / "imix.pcap"))


def test_neither_or_both_sources(allosaur: Any, profile: Callable[..., Path]) -> None:
    allosaur("sim", "-o", "out.pcap").refused("PROFILE", "--commands")
    allosaur("sim", profile(), "--commands", "x.json", "-o", "out.pcap").refused("PROFILE", "--commands")


def test_no_output(allosaur: Any, profile: Callable[..., Path]) -> None:
    allosaur("sim", profile(), "-o", "no/such/folder/out.pcap").refused("no/such/folder", "make it first")


def test_sources_that_are_not_there(allosaur: Any) -> None:
    allosaur("sim", "missing.py", "-o", "out.pcap").refused("missing.py", "no such file")
    allosaur("sim", "--commands", "missing.json", "-o", "out.pcap").refused("missing.json", "no such file")


@needs_server
@pytest.mark.parametrize("text", ["", "{", "[]x", '{"commands": 5}', '{"other": []}'])
def test_a_commands_file_that_is_none(allosaur: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "commands.json"
    path.write_text(text, encoding="utf-8")
    allosaur("sim", "--commands", path, "-o", "out.pcap").refused("commands.json")


@needs_server
def test_a_command_that_the_server_refuses(allosaur: Any, tmp_path: Path) -> None:
    path = commands_file(tmp_path, pkt_limit=7, rate=0)
    allosaur("sim", "--commands", path, "-o", "out.pcap").refused("commands.json", "rate")


@pytest.mark.parametrize("option", ["--limit=0", "--limit=many", "--cores=0", "--direction=2", "-m0"])
def test_bad_numbers(allosaur: Any, profile: Callable[..., Path], option: str) -> None:
    allosaur("sim", profile(), "-o", "out.pcap", option).refused(option.split("=")[0].removesuffix("0"))


@needs_server
@pytest.mark.parametrize(("size", "limit"), [(13, "14"), (9239, "9238")])
def test_a_packet_of_a_wrong_size(allosaur: Any, profile: Callable[..., Path], size: int, limit: str) -> None:
    allosaur("sim", profile(packet=f"Raw(bytes({size}))"), "-o", "out.pcap").refused(str(size), limit)


@needs_server
def test_a_capture_that_cannot_be_written(
    allosaur: Any, profile: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "out.pcap").mkdir()  # a folder in its place
    ended = allosaur("sim", profile(), "-o", "out.pcap")
    assert ended.code in (1, 2)
    ended.failed(ended.code, "out.pcap")


# Captures, read back.


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "ticks_per_s"), [(0xA1B2C3D4, 10**6), (0xA1B23C4D, 10**9)])
def test_captures_of_every_kind(tmp_path: Path, order: str, magic: int, ticks_per_s: int) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture(order, magic, [(1, ticks_per_s // 2, 60), (2, 0, 1514)]))
    summary = summarize(path)
    assert (summary.packets, summary.bytes, summary.smallest, summary.largest) == (2, 64 + 1518, 64, 1518)
    assert (summary.first_s, summary.last_s) == (1.5, 2.0)


def test_an_empty_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(capture("<", 0xA1B2C3D4, []))
    assert summarize(path).packets == 0


def test_captures_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    whole = capture("<", 0xA1B2C3D4, [(1, 0, 60)])
    for data, message in (
        (b"", "is empty: give a pcap"),
        (b"x" * 40, "not a pcap"),
        (whole[:30], "ends within packet 1"),
    ):
        path.write_bytes(data)
        with pytest.raises(CommandError, match=message):
            summarize(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(CommandError, match="ends within packet 1"):
        summarize(path)
    with pytest.raises(CommandError, match=r"missing\.pcap cannot be read"):
        summarize(tmp_path / "missing.pcap")


def capture(order: str, magic: int, records: list[tuple[int, int, int]]) -> bytes:
    data = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for seconds, ticks, length in records:
        data += struct.pack(f"{order}IIII", seconds, ticks, length, length) + bytes(length)
    return data


def frames(path: Path) -> list[bytes]:
    from scapy.all import rdpcap

    return [bytes(packet) for packet in rdpcap(str(path))]


def commands_file(folder: Path, pkt_limit: int, rate: float = 1000) -> Path:
    """A file as the simulator takes it, with one stream."""
    stream = {
        "enabled": True,
        "self_start": True,
        "flags": 0,
        "action_count": 0,
        "isg": 0.0,
        "next_stream_id": -1,
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": rate}},
        "packet": {"binary": "A" * 80, "meta": ""},
        "vm": {"instructions": []},
        "flow_stats": {"enabled": False},
    }
    common = {"handler": 0, "api_h": "dummy", "port_id": 0}
    multiplier = {"type": "raw", "op": "abs", "value": 1.0}
    requests = [
        ("add_stream", {**common, "stream_id": 1, "stream": stream}),
        ("start_traffic", {**common, "mul": multiplier, "duration": -1, "force": True}),
    ]
    path = folder / "commands.json"
    commands = [
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in requests
    ]
    path.write_text(
        json.dumps({"commands": commands, "pkt_limit": pkt_limit, "dp_cores": 1}), encoding="utf-8"
    )
    return path


def test_packets_are_listed_without_a_file(allosaur: Any, tmp_path: Path) -> None:
    ended = allosaur("sim", "imix", "--limit", 3)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].startswith("0.000000 64 bytes: Ether / IP / UDP")
    assert [line.split()[1] for line in lines[:3]] == ["64", "594", "1518"]
    assert lines[3] == ""
    assert "Wrote" not in ended.out
    assert list(tmp_path.glob("*.pcap")) == []


def test_packets_are_listed_beside_a_file(allosaur: Any, tmp_path: Path) -> None:
    ended = allosaur("sim", "imix", "--list", "-o", "out.pcap", "--limit", 5, "--json").json()
    assert len(ended["listed"]) == ended["packets"] == 5
    assert ended["listed"][0]["length"] == 64
    assert ended["listed"][0]["summary"].startswith("Ether / IP / UDP")
    assert (tmp_path / "out.pcap").is_file()
    assert "listed" not in allosaur("sim", "imix", "-o", "out.pcap", "--limit", 5, "--json").json()


def test_packets_of_flows_are_listed(allosaur: Any, tmp_path: Path) -> None:
    ended = allosaur("sim", "stateful/http", "--list", "--limit", 3)
    lines = ended.out.splitlines()
    assert lines[0].endswith("Ether / IP / TCP 16.0.0.1:1024 > 48.0.0.1:http S")
    assert lines[1].endswith("Ether / IP / TCP 48.0.0.1:http > 16.0.0.1:1024 SA")
    assert lines[3].endswith("more; --limit lists as many as it says.")
    assert list(tmp_path.glob("*.pcap")) == []
    whole = allosaur("sim", "stateful/http", "--list", "-o", "out.pcap", "--json").json()
    assert len(whole["listed"]) == whole["link"]["to_server"]["frames"] + whole["link"]["to_client"]["frames"]
    allosaur("sim", "stateful/http", "--limit", 3).refused("--list")


def test_packets_of_emulated_clients_are_listed(allosaur: Any, tmp_path: Path) -> None:
    name = next(path.stem for path in sorted(_shipped.FOLDER.glob("emulation/*.py")) if "dhcp" in path.stem)
    listed = allosaur("sim", name, "--list", "-d", 1, "--json").json()
    assert len(listed["listed"]) == min(listed["packets"], 100) > 0
    assert list(tmp_path.glob("*.pcap")) == []
