"""A capture as a profile, by every command that takes one: its speed, and what is not whole or in order."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLProfile
from allosaur.packets._capture_reader import frames
from allosaur.server import LocalServer

DEADLINE_S = 60
#: Ten packets of 64 bytes in 9 ms: 1.11 kpps, 569 kbps of layer 2 with FCS, 747 kbps of layer 1.
TEN = [1000 * number for number in range(10)]
BACK = [0, 5000, 3000, 4000, 9000, 8000, 10_000]


def written(path: Path, times_us: Sequence[int], wire_bytes: int = 60) -> Path:
    """A capture of UDP packets of 60 bytes, which are the first of so many."""
    data = struct.pack("<I2HiIII", 0xA1B2C3D4, 2, 4, 0, 0, 60, 1)
    ip = struct.pack(">2B3H2BH", 0x45, 0, wire_bytes - 14, 0, 0, 64, 17, 0) + bytes(
        [16, 0, 0, 1, 48, 0, 0, 1]
    )
    packet = bytes(12) + b"\x08\x00" + ip + struct.pack(">4H", 1025, 12, wire_bytes - 34, 0) + bytes(18)
    for time_us in times_us:
        data += struct.pack("<4I", 1, time_us, len(packet), wire_bytes) + packet
    path.write_bytes(data)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Callable[..., Path]:
    def write(times_us: Sequence[int] = TEN, wire_bytes: int = 60) -> Path:
        return written(tmp_path / "packets.pcap", times_us, wire_bytes)

    return write


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """It sends the captures that tests write."""
    folder = ["--captures-folder", str(tmp_path_factory.getbasetemp())]
    with LocalServer(ports=["memory", "memory"], cores=1, options=folder) as running:
        yield running


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def times_us(path: Path) -> list[int]:
    found = [frame.time_ns for frame in frames(path)]
    return [(one - found[0]) // 1000 for one in found]


@pytest.mark.parametrize(
    ("rate", "last_us"),
    [("1", 9000), ("2", 4500), ("0.5", 18_000), ("1kpps", 10_000), ("512kbps", 10_000), ("10mbpsl1", 672)],
)
def test_a_rate_is_the_speed_of_the_replay(
    allosaur: Any, capture: Callable[..., Path], tmp_path: Path, rate: str, last_us: int
) -> None:
    ended = allosaur("sim", capture(), "-m", rate, "-o", tmp_path / "out.pcap")
    assert ended.code == 0, ended
    sent = times_us(tmp_path / "out.pcap")
    # All gaps are as long as each other, as they were.
    assert len(sent) == 10
    for number, time_us in enumerate(sent):
        assert time_us == pytest.approx(number * last_us / 9, abs=1.5)


@pytest.mark.parametrize(("rate", "packets"), [("2", 1111), ("2kpps", 1000), ("0.002%", 1488)])
def test_a_run_obeys_the_rate(allosaur: Any, capture: Callable[..., Path], rate: str, packets: int) -> None:
    asked = ("-m", rate, "-d", "0.5", "-t", "loop_count=0", "--local", "--json")
    ended = allosaur("run", capture(), *asked, in_time=True)
    assert ended.code == 0, ended
    # A port in memory has 100 Gb/s.
    assert ended.json()["ports"]["0"]["tx_packets"] == pytest.approx(packets, rel=0.002, abs=2)


def test_start_and_update_obey_it(allosaur: Any, capture: Callable[..., Path], server: LocalServer) -> None:
    def reaches(client: STLClient, least_pps: float, most_pps: float) -> bool:
        end_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < end_s:
            if least_pps < client.get_stats(ports=[0])[0]["tx_pps"] < most_pps:
                return True
            time.sleep(0.1)
        return False

    path = capture()
    ended = allosaur("start", path, "-m", "400pps", "-t", "loop_count=0", *where(server))
    assert ended.code == 0, ended
    with STLClient("carol", server.host, server.rpc_port, server.pub_port) as client:
        assert reaches(client, 300, 500)
        assert allosaur("update", "-m", "20kpps", *where(server)).code == 0
        assert reaches(client, 15_000, 25_000)
        assert allosaur("stop", *where(server)).code == 0


def test_a_search_finds_a_limit_for_a_capture(allosaur: Any, capture: Callable[..., Path]) -> None:
    asked = ("--max", "5kpps", "-d", "0.2", "-t", "loop_count=0", "--local", "--json")
    ended = allosaur("ndr", capture(), *asked, in_time=True)
    assert ended.code == 0, ended
    for trial in ended.json()["cases"][0]["trials"]:
        assert trial["sent"] == pytest.approx(trial["load"] * 0.2, rel=0.01, abs=2)


@pytest.mark.parametrize("command", ["run", "sim", "push", "push --remote", "start", "ndr"])
def test_a_capture_that_was_cut_is_refused(
    allosaur: Any, capture: Callable[..., Path], server: LocalServer, command: str
) -> None:
    word, *options = command.split()
    target = {"run": ["--local"], "sim": ["-o", "out.pcap"], "ndr": ["--local"]}.get(word, where(server))
    ended = allosaur(word, capture(wire_bytes=500), *options, *target)
    assert ended.code in (2, 3), ended
    assert "of 10 packets 10 lack bytes" in ended.err
    assert "has 60 of 500" in ended.err
    assert "tcpdump -s 0" in ended.err
    assert "correct the profile" not in ended.err


def test_times_that_go_back_stretch_no_replay(
    allosaur: Any, capture: Callable[..., Path], tmp_path: Path
) -> None:
    ended = allosaur("sim", capture(BACK), "-o", tmp_path / "out.pcap")
    assert ended.code == 0, ended
    assert times_us(tmp_path / "out.pcap") == [0, 5000, 5000, 5000, 9000, 9000, 10_000]
    assert "3 packets were recorded before one in front" in ended.err


@pytest.mark.parametrize("options", [["run"], ["push"], ["push", "--remote"]])
def test_times_that_go_back_are_told_with_the_result(
    allosaur: Any, capture: Callable[..., Path], server: LocalServer, options: list[str]
) -> None:
    word, *more = options
    ended = allosaur(word, capture(BACK), *more, "--json", *where(server))
    assert ended.code == 0, ended
    assert any("times that go back" in text for text in ended.json()["warnings"]), ended


def test_a_capture_keeps_its_speed_as_code_and_as_json(capture: Callable[..., Path], tmp_path: Path) -> None:
    profile = STLProfile.load_pcap(capture())
    profile.dump_to_code(str(tmp_path / "again.py"))
    again = STLProfile.load(tmp_path / "again.py")
    assert [one["scale_isg"] for one in again.to_json()] == [True] * 10
