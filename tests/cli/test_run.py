"""`allosaur run`: the result, how it ends, and every way it can be asked wrongly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parents[2]
BURST = "STLTXSingleBurst(pps=1000, total_pkts=100)"

pytestmark = pytest.mark.usefixtures("binary")

COUNTERS = {
    *("offered_packets", "tx_packets", "tx_bytes", "rx_packets", "rx_bytes", "missed_packets", "queue_full"),
    *("rx_lost_packets", "tx_by_size", "rx_by_size", "offered_pps", "tx_pps", "tx_bps", "rx_pps", "rx_bps"),
    "rx_overflow_packets",
    "tx_lost_packets",
}


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command that does not end by itself; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "allosaur.cli", *map(str, words)]
        pipe = subprocess.PIPE
        # A process group of its own, as a shell gives to a command: Ctrl-C goes to all of it.
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def test_a_burst_arrives_whole(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("run", profile(mode=BURST), "--local", "--json")
    assert ended.code == 0, ended
    result = ended.json()
    assert result.keys() == {
        *("command", "mode", "profile", "tunables", "server", "sending_ports", "multiplier", "report"),
        "duration_asked_s",
        *("duration_s", "interrupted", "ports", "total", "lost_packets", "missed_packets", "warnings", "ok"),
        *("cut_short", "verdict", "counted_by", "directions", "streams", "duplicate_packets", "hints"),
        *("tool", "schema", "started", "host", "reasons", "thresholds", "built_in"),
    }
    assert result["ports"].keys() == {"0", "1"}
    assert result["total"].keys() == COUNTERS
    assert result["ports"]["0"].keys() == {*COUNTERS, "other_packets"}
    assert result["ports"]["0"]["tx_packets"] == result["ports"]["1"]["rx_packets"] == 100
    assert result["ports"]["0"]["tx_bytes"] == result["ports"]["1"]["rx_bytes"] == 6400
    assert result["ports"]["1"]["tx_packets"] == result["ports"]["0"]["rx_packets"] == 0
    assert result["ports"]["0"]["tx_by_size"]["64"] == result["ports"]["1"]["rx_by_size"]["64"] == 100
    assert (result["lost_packets"], result["missed_packets"], result["ok"]) == (0, 0, True)
    assert result["duration_s"] < 10, "a burst ends by itself, before its 10 s are over"


def test_both_directions_and_a_multiplier(allosaur: Any) -> None:
    imix = ROOT / "profiles" / "imix.py"
    words = ("--ports", "0,1", "-m", "12kpps", "-d", "2", "--json")
    ended = allosaur("run", imix, "--local", *words, in_time=True)
    assert ended.code == 0, ended
    result = ended.json()
    for port in ("0", "1"):
        assert result["ports"][port]["offered_packets"] == pytest.approx(24_000, rel=0.001)
    assert result["duration_s"] == 2.0
    assert result["sending_ports"] == [0, 1]


def test_the_summary_for_people(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("run", profile(), "--local", "-m", "1kpps", "-d", "2.5s", in_time=True)
    assert ended.code == 0, ended
    for shown in (
        "port 0",
        "port 1",
        "offered packets",
        "2,500",
        "missed packets",
        "queue full",
        "sent rate",
        "OK: ",
    ):
        assert shown in ended.out, shown
    assert "of 2.5 s: sending" in ended.err, "progress goes to the error stream, as lines"
    assert "\x1b" not in ended.out + ended.err, "no colours where nobody can see them"


def test_tunables_reach_the_profile(allosaur: Any) -> None:
    path = ROOT / "profiles" / "multi_burst.py"
    ended = allosaur("run", path, "--local", "-t", "burst=7,count=3", "-t", "gap_us=1000", "--json")
    assert ended.code == 0, ended
    assert ended.json()["total"]["tx_packets"] == 21
    assert ended.json()["tunables"] == {"burst": 7, "count": 3, "gap_us": 1000}


def test_a_running_server_is_used_and_left_clean(
    allosaur: Any, server: LocalServer, profile: Callable[..., Path]
) -> None:
    for _ in range(2):
        ended = allosaur("run", profile(mode=BURST), *where(server), "--json")
        assert ended.code == 0, ended
        assert ended.json()["total"]["tx_packets"] == 100, (
            "the second run does not see the packets of the first"
        )
    with server.client() as client:
        assert client.get_acquired_ports() == []
        client.acquire(ports=[0])
        client.count_since_server_start()
        assert client.get_stats()[0]["opackets"] == 200


def test_lost_packets_fail_the_run(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur(
        "run", profile(), "--local-ports", "memory:loss=10%:seed=1,memory", "--local", "-d", "1", "--json"
    )
    assert ended.code == 1, ended
    result = ended.json()
    assert result["ok"] is False
    assert result["lost_packets"] == result["total"]["rx_lost_packets"] > 0
    assert "were sent and not received" in result["verdict"]


def test_load_that_the_link_cannot_take_is_missed_and_said(
    allosaur: Any, profile: Callable[..., Path]
) -> None:
    slow = "memory:rate=100mbps,memory"
    large = profile(packet="Ether() / IP() / UDP() / bytes(1472)")
    ended = allosaur(
        "run", large, "--local", "--local-ports", slow, "-m", "2gbps", "-d", "1", "--json", "--force"
    )
    assert ended.code == 1, ended
    result = ended.json()
    assert result["missed_packets"] > 0
    assert result["total"]["offered_packets"] == pytest.approx(2e9 / 8 / 1518, rel=0.01)
    assert "load not reached" in result["verdict"]


def test_a_rate_above_the_line_is_refused(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("run", profile(), "--local", "--local-ports", "memory:rate=1mbps,memory", "-m", "20kpps")
    ended.refused("did not start", "line rate")


def test_a_port_without_a_peer(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("run", profile(mode=BURST), "--local", "--local-ports", "memory", "--json")
    assert ended.code == 0, ended
    assert ended.json()["lost_packets"] is None
    assert ended.json()["total"]["tx_packets"] == 100


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_traffic(
    start: Start, server: LocalServer, profile: Callable[..., Path], number: signal.Signals, code: int
) -> None:
    running = start("run", profile(), *where(server), "-d", "forever", "--json")
    wait_for_traffic(server)
    running.send_signal(number)
    out, err = running.communicate(timeout=20)
    assert running.returncode == code, err
    result = json.loads(out)
    assert result["interrupted"] is True
    assert result["total"]["tx_packets"] == result["total"]["rx_packets"] > 0
    with server.client() as client:
        client.count_since_server_start()
        before = client.get_stats(ports=[0])[0]["opackets"]
        assert client.get_stats(ports=[0])[0]["opackets"] == before == result["total"]["tx_packets"]


def test_ctrl_c_on_a_terminal_reaches_a_local_server_last(start: Start, profile: Callable[..., Path]) -> None:
    """A terminal sends SIGINT to the whole process group: the server must not end before its traffic did."""
    running = start("run", profile(), "--local", "-d", "forever", "--json")
    assert running.stderr is not None
    assert "sending" in running.stderr.readline(), "the first line of progress"
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 130, err
    assert json.loads(out)["total"]["tx_packets"] > 0


# What is asked wrongly: each case says what is wrong, where, and sends nothing.


def test_a_profile_that_is_not_there(allosaur: Any) -> None:
    allosaur("run", "missing.py", "--local").refused("missing.py", "no such file")


def test_a_folder_as_a_profile(allosaur: Any, tmp_path: Path) -> None:
    allosaur("run", tmp_path, "--local").refused(str(tmp_path), "is a folder")


def test_a_profile_with_a_syntax_error(allosaur: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("from allosaur import *\n\ndef register(:\n    pass\n", encoding="utf-8")
    allosaur("run", path, "--local").refused("broken.py", "line 3", "syntax")


def test_a_profile_whose_code_fails(allosaur: Any, profile: Callable[..., Path]) -> None:
    path = profile(mode="STLTXCont(pps=rate)")
    allosaur("run", path, "--local").refused(path.name, "line 6", "NameError", "rate")


def test_a_profile_without_register(allosaur: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("", encoding="utf-8")
    allosaur("run", path, "--local").refused("empty.py", "register()")


def test_a_profile_without_streams(allosaur: Any, tmp_path: Path) -> None:
    path = tmp_path / "none.py"
    source = "class Profile:\n    def get_streams(self):\n        return []\n"
    source += "def register():\n    return Profile()\n"
    path.write_text(source, encoding="utf-8")
    allosaur("run", path, "--local").refused("none.py", "no streams")


def test_a_tunable_that_the_profile_does_not_have(allosaur: Any) -> None:
    path = ROOT / "profiles" / "multi_burst.py"
    allosaur("run", path, "--local", "-t", "bursts=3").refused("multi_burst.py", "bursts", "burst, count")


@pytest.mark.parametrize("rate", ["0", "0mpps", "fast", "-5", "5xpps", ""])
def test_a_bad_multiplier(allosaur: Any, profile: Callable[..., Path], rate: str) -> None:
    allosaur("run", profile(), "--local", f"--multiplier={rate}").refused("-m", "such as 10kpps")


def test_a_profile_with_a_rate_of_zero(allosaur: Any, profile: Callable[..., Path]) -> None:
    allosaur("run", profile(mode="STLTXCont(pps=0)"), "--local").refused("profile.py", "pps", "above zero")


@pytest.mark.parametrize("duration", ["0", "-3", "soon"])
def test_a_bad_duration(allosaur: Any, profile: Callable[..., Path], duration: str) -> None:
    allosaur("run", profile(), "--local", f"--duration={duration}").refused("-d", "duration")


@pytest.mark.parametrize(("size", "limit"), [(13, "14"), (9239, "9238")])
def test_a_packet_of_a_wrong_size(allosaur: Any, profile: Callable[..., Path], size: int, limit: str) -> None:
    path = profile(packet=f"Raw(bytes({size}))")
    allosaur("run", path, "--local").refused(str(size), limit)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("STLScVmRaw([STLVmWrFlowVar(fv_name='nobody', pkt_offset=26)])", ["nobody"]),
        ("STLScVmRaw([STLVmFlowVar(name='a', size=4), STLVmWrFlowVar(fv_name='a', pkt_offset=58)])", ["58"]),
        ("STLScVmRaw([STLVmFlowVar(name='a', size=3)])", ["'a'", "size"]),
        ("STLScVmRaw([STLVmFlowVar(name='a', size=1, max_value=256)])", ["'a'", "256"]),
    ],
    ids=["an unknown variable", "past the packet", "an odd size", "too large a value"],
)
def test_a_bad_field_engine(
    allosaur: Any, profile: Callable[..., Path], program: str, words: list[str]
) -> None:
    allosaur("run", profile(vm=program), "--local").refused(*words)


def test_a_server_that_does_not_answer(allosaur: Any, profile: Callable[..., Path]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = allosaur("run", profile(), "--server", f"127.0.0.1:{port}")
    ended.failed(3, f"127.0.0.1:{port}", "allosaur server", "--local")


def test_an_unknown_port(allosaur: Any, server: LocalServer, profile: Callable[..., Path]) -> None:
    allosaur("run", profile(), *where(server), "--ports", "0,7").refused("--ports", "no port 7", "0 to 1")


def test_a_port_that_someone_else_has(
    allosaur: Any, server: LocalServer, profile: Callable[..., Path]
) -> None:
    with server.client(username="somebody") as other:
        other.acquire(ports=[0])
        ended = allosaur("run", profile(mode=BURST), *where(server))
        ended.failed(3, "cannot take port 0", "somebody", "--force")
        assert other.get_acquired_ports() == [0], "whoever had the port still has it"
        assert allosaur("run", profile(mode=BURST), *where(server), "--force").code == 0


def test_options_of_a_local_server_need_one(allosaur: Any, profile: Callable[..., Path]) -> None:
    allosaur("run", profile(), "--cores", "2").refused("--local")
    allosaur("run", profile(), "--local-ports", "memory").refused("--local")
    allosaur("run", profile(), "--local", "--server", "x").refused("--server", "--local")


def test_a_bad_local_port(allosaur: Any, profile: Callable[..., Path]) -> None:
    ended = allosaur("run", profile(), "--local", "--local-ports", "ethernet")
    ended.refused("ethernet", "no such interface")


def wait_for_traffic(server: LocalServer) -> None:
    """Wait until port 0 sends; give up after a while that is far too long."""
    with server.client() as client:
        for _ in range(400):
            if client.get_stats(ports=[0])[0]["opackets"] > 0:
                return
            time.sleep(0.05)
    pytest.fail("the traffic did not start")
