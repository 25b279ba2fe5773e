"""A capture is a profile, too: simulated and run, its packets leave in order with the recorded gaps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GAPS_US = (0, 250, 1000, 40)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Four packets of different sizes; the second and the last are the answers."""
    from scapy.all import IP, UDP, Ether, wrpcap

    packets = []
    now = 100.0
    for number, gap in enumerate(GAPS_US):
        now += gap / 1e6
        names = ("10.0.0.1", "10.0.0.2")[:: 1 if number % 2 == 0 else -1]
        packet = Ether() / IP(src=names[0], dst=names[1]) / UDP(chksum=0) / bytes(30 + number)
        packet.time = now
        packets.append(packet)
    wrpcap(str(tmp_path / "one.pcap"), packets)
    return tmp_path / "one.pcap"


Simulated = Callable[..., list[tuple[float, str, int]]]


@pytest.fixture
def simulated(allosaur: Any, binary: str, capture: Path, tmp_path: Path) -> Simulated:
    """Time in microseconds, source address and size of each packet that the simulator sends."""

    def run(*options: object) -> list[tuple[float, str, int]]:
        from scapy.all import rdpcap

        ended = allosaur("sim", capture, "-o", tmp_path / "out.pcap", "--limit", 100, *options)
        assert ended.code == 0, ended
        sent = rdpcap(str(tmp_path / "out.pcap"))
        return [(round(float(packet.time) * 1e6, 1), packet["IP"].src, len(packet)) for packet in sent]

    return run


def test_a_capture_is_sent_with_its_gaps(simulated: Simulated) -> None:
    sent = simulated()
    assert [size for _, _, size in sent] == [72, 73, 74, 75]
    assert [time for time, _, _ in sent] == pytest.approx([0, 250, 1250, 1290], abs=2)


def test_it_goes_round_and_ends(simulated: Simulated) -> None:
    sent = simulated("-t", "loop_count=3,ipg_usec=100,speedup=2")
    assert [size for _, _, size in sent] == [72, 73, 74, 75] * 3
    assert [time for time, _, _ in sent] == pytest.approx([50 * (1 + at) for at in range(12)], abs=2)


def test_two_threads_send_what_one_sends(simulated: Simulated) -> None:
    # Packets of the same microsecond may be in any order.
    two, one = simulated("-t", "loop_count=3", "--cores", 2), simulated("-t", "loop_count=3")
    assert sorted(two) == sorted(one)


def test_one_side_keeps_its_place_over_rounds(simulated: Simulated) -> None:
    sent = simulated("-t", "split_mode=IP,loop_count=2")
    assert {source for _, source, _ in sent} == {"10.0.0.1"}
    start, period = 1000, 1000 + sum(GAPS_US)
    expected = [start, start + 1250, period + start, period + start + 1250]
    assert [time for time, _, _ in sent] == pytest.approx(expected, abs=2)


def test_a_capture_runs(allosaur: Any, binary: str, capture: Path) -> None:
    ended = allosaur("run", capture, "--local", "-d", 5, "-t", "loop_count=10", "--json")
    assert ended.code == 0, ended
    assert ended.json()["total"]["tx_packets"] == 40, ended.json()


def test_a_bad_capture_is_bad_input(allosaur: Any, capture: Path) -> None:
    capture.write_bytes(capture.read_bytes()[:-1])
    allosaur("sim", capture, "-o", "x.pcap").refused(str(capture), "is truncated", "packet 4")
