"""TRex's official client with the calls of TRex's own regression suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

SIZES = ["64b", "128b", "256b", "512b", "1024b", "2048b", "4096b", "9kb"]


def test_pushed_packets_are_filtered_beside_other_traffic(official: Any) -> None:
    seen = official("pushed")
    assert seen == {"counts": [250, 250], "kept": [True, True]}


def test_a_capture_that_is_stopped_at_once_has_all_that_was_pushed(official: Any) -> None:
    assert official("stopped_at_once") == [20] * 40


def test_streams_are_paused_and_updated_as_trex_does(official: Any) -> None:
    seen = official("pauses")
    assert "not continuous" in seen["burst"]
    assert seen["ports"]
    assert "duration -1" in seen["duration"]
    # Rates of a busy machine: by an order of magnitude.
    assert seen["paused"] < 1000 < seen["updated"]
    assert seen["resumed"] > 1000


def test_an_erf_capture_leaves_by_two_ports(official: Any, tmp_path: Path) -> None:
    # 14 + 20 + 8 + 50 bytes, and the 4 of the FCS that the port sends.
    assert official("erf", str(tmp_path)) == [[52, 52 * 96], [48, 48 * 96]]


def test_packet_memory_is_told_by_size(official: Any) -> None:
    seen = official("memory")
    assert list(seen) == ["cpu-socket-0"]
    assert sorted(seen["cpu-socket-0"]) == sorted(SIZES)
    rooms = [seen["cpu-socket-0"][size] for size in SIZES]
    assert all(1 <= free <= total for free, total in rooms)
    assert [total for _, total in rooms] == sorted((total for _, total in rooms), reverse=True)


@pytest.fixture(scope="module")
def used(run_on: Any) -> Any:
    """Which of two data threads transmitted on which ports."""
    with LocalServer(ports=["memory", "memory"], cores=2, options=["--captures-folder", "/"]) as server:
        return run_on(server, "cores")


def test_threads_are_reported_by_core_mask(used: Any) -> None:
    assert used["plain SPLIT"] == [[0, 1], [0, 1]]
    assert sorted(used["plain PIN"]) == [[-1, 1], [0, -1]]


def test_measured_streams_leave_from_the_first_thread(used: Any) -> None:
    assert used["latency SPLIT"] == [[0, 1], [0, 1]]
    assert used["latency PIN"][0] == [0, 1]
    assert used["latency PIN"][1] in ([0, -1], [-1, 1])


def test_threads_are_reported_by_core_id(used: Any) -> None:
    assert used["single 0"] == [[0, -1], [-1, -1]]
    for name in ("single 1", "two streams", "loop of bursts"):
        assert used[name] == [[-1, -1], [0, -1]], name
    assert used["after"] == [[-1, -1], [-1, -1]]
    assert "It must be an integer between 0 and 1" in used["beyond"]
