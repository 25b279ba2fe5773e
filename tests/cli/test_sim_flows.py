"""`allosaur sim` of stateful profiles, and `astf-sim`: outcomes, captures, exit codes, and wrong words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._simulated import summarize
from allosaur.cli.commands import _sim
from allosaur.cli.trex import _astf_sim
from allosaur.run.flows._access import load_file
from scapy.utils import rdpcap

from .conftest import environment

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "wheel-data" / "scripts" / "astf-sim"
HTTP = ROOT / "profiles" / "stateful" / "http.py"
needs_server = pytest.mark.usefixtures("binary")


@needs_server
def test_one_flow_of_each_template(allosaur: Any, tmp_path: Path) -> None:
    ended = allosaur("sim", "--stateful", HTTP, "-o", "out.pcap", "--json")
    assert ended.code == 0, ended
    result = ended.json()
    assert (result["ok"], result["problems"], result["mode"]) == (True, [], "stateful")
    client, server = result["client"], result["server"]
    assert (client["flows"], server["flows"]) == (1, 1)
    assert client["sent_bytes"] == server["received_bytes"] == 100
    assert server["sent_bytes"] == client["received_bytes"] == 32 * 1024
    assert client["counters"]["tcps_connects"] == server["counters"]["tcps_accepts"] == 1
    assert client["errors"] == server["errors"] == {}
    # Both sides see the same packets, at other times.
    seen = [summarize(tmp_path / f"out_{side}.pcap") for side in "cs"]
    frames = result["link"]["to_server"]["frames"] + result["link"]["to_client"]["frames"]
    assert [one.packets for one in seen] == [frames, frames]
    assert seen[0].bytes == seen[1].bytes
    assert seen[1].first_s - seen[0].first_s == pytest.approx(0.0005, abs=1e-5)


@needs_server
def test_the_same_seed_gives_the_same_bytes(allosaur: Any, tmp_path: Path) -> None:
    bad = ("--loss", "5%", "--reorder", "5%", "--duplicate", "2%", "--rtt", "30ms", "--fault", "corrupt:3%")

    def captured(name: str, seed: int) -> bytes:
        ended = allosaur("sim", HTTP, "--full", *bad, "--seed", seed, "-o", f"{name}.pcap")
        assert ended.code == 0, ended
        return b"".join((tmp_path / f"{name}_{side}.pcap").read_bytes() for side in "cs")

    first = captured("one", 7)
    assert captured("two", 7) == first
    assert captured("three", 8) != first


@needs_server
def test_the_table_for_people(allosaur: Any) -> None:
    ended = allosaur("sim", HTTP, "-d", "2", "--rate", "5mbps", "--queue", "8000", "--fault", "pad")
    assert ended.code == 0, ended
    for shown in (
        "clients  servers",
        "tcps_connects",
        "! tcps_rexmt",
        "lost in the queue",
        "pad ",
        "OK: 2 flows",
    ):
        assert shown in ended.out, shown
    assert max(len(line) for line in ended.out.splitlines()) <= 79


@needs_server
def test_template_groups(allosaur: Any) -> None:
    path = ROOT / "profiles" / "stateful" / "template_groups.py"
    ended = allosaur("sim", path, "--full", "--json")
    groups, client = ended.json()["groups"], ended.json()["client"]
    assert len(groups) > 1
    begun = [group["client"]["tcps_connattempt"] for group in groups.values()]
    assert min(begun) > 0
    assert sum(begun) == client["counters"]["tcps_connattempt"]
    shown = allosaur("sim", path, "--full").out
    assert all(f"\n{name} " in shown for name in groups), shown


@needs_server
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("syn-refused", "was refused"),
        ("reset-server", "was reset by the peer"),
        ("silence", "timed out"),
        ("wrong-port", "0 delivered"),
    ],
)
def test_what_fails_says_so(allosaur: Any, fault: str, words: str) -> None:
    ended = allosaur("sim", HTTP, "--fault", fault)
    assert ended.code == 1, ended
    assert words in ended.out.splitlines()[-1]
    result = allosaur("sim", HTTP, "--fault", fault, "--json")
    assert (result.code, result.json()["ok"], result.json()["faults"]) == (1, False, {fault: 1})


@needs_server
@pytest.mark.parametrize("fault", ["syn-lost", "syn-ack-lost", "syn-blind-reset", "blind-reset", "fin-lost"])
def test_what_is_repaired_is_no_failure(allosaur: Any, fault: str) -> None:
    ended = allosaur("sim", HTTP, "--fault", fault, "--json")
    assert (ended.code, ended.json()["client"]["received_bytes"]) == (0, 32 * 1024), ended


@needs_server
def test_limits_threads_and_addresses(allosaur: Any) -> None:
    words = ("--full", "-d", "10", "-m", "50", "--flows", "20", "--cores", "3", "--ipv6")
    ended = allosaur("sim", HTTP, *words, "--json")
    assert (ended.code, ended.json()["client"]["flows"]) == (0, 20), ended


JUMBO = """
from allosaur import *

class Jumbo:
    def get_profile(self, tunables=None, **kwargs):
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]),
        )
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"?")
        asks.recv(100_000)
        answers.recv(1)
        answers.send(b"!", size=100_000)
        info = ASTFGlobalInfo()
        info.tcp.mss = 8000
        return ASTFProfile(
            default_ip_gen=ip_gen,
            default_c_glob_info=info,
            default_s_glob_info=info,
            templates=ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen),
                server_template=ASTFTCPServerTemplate(program=answers),
            ),
        )

def register():
    return Jumbo()
"""


@needs_server
@pytest.mark.parametrize(("words", "longest"), [((), 8054), (("--mtu", "1500"), 1514)])
def test_frames_are_as_long_as_profile_and_mtu_allow(
    allosaur: Any, tmp_path: Path, words: tuple[str, ...], longest: int
) -> None:
    profile = tmp_path / "jumbo.py"
    profile.write_text(JUMBO)
    ended = allosaur("sim", profile, *words, "-o", tmp_path / "out.pcap")
    assert ended.code == 0, ended
    frames = rdpcap(str(tmp_path / "out_s.pcap"))
    assert max(map(len, frames)) == longest


def test_wrong_words(allosaur: Any) -> None:
    allosaur("sim", "--stateful", "missing.py").refused("missing.py", "no such file")
    allosaur("sim", HTTP, "--queue", "1000").refused("--queue", "--rate")
    allosaur("sim", HTTP, "-m", "5mpps").refused("-m 5mpps", "a factor")
    allosaur("sim", HTTP, "--limit", "5").refused("--limit", "--flows")
    allosaur("sim", HTTP, "-o", "no/such/out.pcap").refused("no/such", "make it first")
    allosaur("sim", HTTP, "--loss", "200%").refused("--loss", "share")
    allosaur("sim", HTTP, "--rate", "10").refused("--rate", "10mbps")
    for mtu in ("67", "9225", "big"):
        allosaur("sim", HTTP, "--mtu", mtu).refused("--mtu", "68 to 9224")
    allosaur("sim", HTTP, "--fault", "rst-middle").refused("rst-middle", "reset-middle")
    allosaur("sim", HTTP, "--fault", "pad:x").refused("--fault", "share")


@needs_server
def test_the_faults_are_those_of_the_binary(allosaur: Any) -> None:
    from allosaur.cli._binary import server_binary

    words = [server_binary(), "sim-stateful", "--profile", "x", "--fault", "none-such"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    names = done.stderr.split("there are ", 1)[1].splitlines()[0]
    assert tuple(names.split(", ")) == _sim.FAULTS


def astf_sim(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command: Sequence[str] = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment(), timeout=60
    )


@needs_server
@pytest.mark.parametrize(
    ("mode", "code"), [("NONE", 0), ("csSIM_RST_SYN", 1), ("RST_MIDDLE2", 1), ("REORDER_DROP", 0), ("PAD", 0)]
)
def test_trex_simulator_by_name(tmp_path: Path, mode: str, code: int) -> None:
    words = (
        "--full",
        "-d",
        "2",
        "-c",
        "--rtt=20000,--shaper-rate=20000",
        "-s",
        mode,
        "-o",
        "b.pcap",
        "--pcap",
    )
    ended = astf_sim("-f", HTTP, *words, folder=tmp_path)
    assert ended.returncode == code, ended
    assert "warning: --pcap" in ended.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b_c.pcap", "b_s.pcap"]


def test_trex_simulator_prints_the_profile(tmp_path: Path) -> None:
    ended = astf_sim("-f", HTTP, "--json", "-t", "response=500", folder=tmp_path)
    assert ended.returncode == 0, ended
    assert 500 in [one["size"] for one in json.loads(ended.stdout)["buf_list"] if isinstance(one, dict)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-d", "5"), "-f"),
        (("-f", "x.py", "-c", "--drop=5"), "--shaper-rate=KBPS"),
        (("-f", "x.py", "-c", "--rtt=fast"), "whole number"),
        (("-f", "x.py", "-s", "CHAOS"), "RST_MIDDLE"),
        (("-f", "x.py", "--cc", "cluster.yaml"), "--cc"),
        (
            (
                "-f",
                "missing.py",
            ),
            "no such file",
        ),
    ],
)
def test_trex_simulator_refuses(tmp_path: Path, words: Sequence[str], said: str) -> None:
    ended = astf_sim(*words, folder=tmp_path)
    assert (ended.returncode, said in ended.stderr) == (2, True), ended


def test_every_mode_of_trex_is_something_of_ours() -> None:
    faults = [words[1] for words in _astf_sim._FAULTS.values() if words[:1] == ["--fault"]]
    assert set(faults) <= set(_sim.FAULTS)


@needs_server
@pytest.mark.parametrize("path", sorted(HTTP.parent.glob("*.py")), ids=lambda path: path.stem)
def test_all_flows_of_profiles_that_come_with_it_complete(path: Path, binary: str, tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_text(load_file(path, {}).to_json_str(), encoding="utf-8")
    command = [binary, "sim-stateful", "--profile", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    for side in ("client", "server"):
        counted = result["outcomes"][side]
        ended = {name: count for name, count in counted.items() if count and not name.startswith("http_")}
        assert ended == {"completed": result[side]["flows"]}, side
    assert result["outcomes"]["times"]["program"]["count"] == result["client"]["flows"]
