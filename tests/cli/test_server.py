"""`allosaur server`: what it says, how it is reached, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("binary")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(binary: str) -> Iterator[Start]:
    """Start `allosaur server`; whatever is still running at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "allosaur.cli",
            "server",
            "--rpc-port",
            "0",
            "--pub-port",
            "0",
            *words,
        ]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def welcome(process: subprocess.Popen[str]) -> str:
    """All lines up to the one that says how to stop it."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            return "".join(lines)
    _, err = process.communicate()
    pytest.fail(f"the server did not say how to reach it: {lines}, {err}")


def ports_in(text: str) -> tuple[int, int]:
    match = re.search(r"sync_port=(\d+), async_port=(\d+)", text)
    assert match is not None, text
    return int(match[1]), int(match[2])


def test_it_says_how_to_reach_it_and_a_run_does(
    allosaur: Any, start: Start, profile: Callable[..., Path]
) -> None:
    text = welcome(start("--ports", "memory,memory"))
    assert "Allosaur is ready: 2 ports" in text
    command = re.search(r"--server (\S+) --pub-port (\d+)", text)
    assert command is not None, text
    assert (int(command[1].rpartition(":")[2]), int(command[2])) == ports_in(text)
    path = profile(mode="STLTXSingleBurst(pps=1000, total_pkts=10)")
    ended = allosaur("run", path, "--server", command[1], "--pub-port", command[2], "--json")
    assert ended.code == 0, ended
    assert ended.json()["total"]["tx_packets"] == 10


def test_it_says_where_metrics_are(start: Start) -> None:
    text = welcome(start("--http", "0", "--stateless"))
    page = re.search(r"^Metrics for Prometheus are at (http://127.0.0.1:\d+/metrics)$", text, re.M)
    assert page is not None, text
    with urllib.request.urlopen(page[1], timeout=60) as response:
        assert response.read().endswith(b"# EOF\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(start: Start, number: signal.Signals) -> None:
    process = start()
    rpc_port, _ = ports_in(welcome(process))
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    with socket.socket() as again:
        again.bind(("127.0.0.1", rpc_port))


def test_the_port_is_taken(start: Start) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = start("--rpc-port", str(port))
        out, err = process.communicate(timeout=20)
    assert process.returncode == 3
    assert str(port) in err
    assert "ready" not in out


def test_unknown_ports(start: Start) -> None:
    process = start("--ports", "memory,ethernet")
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "ethernet" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["--http", "localhost:1"],
        ["--rpc-port", "70000"],
        ["--pub-port", "-1"],
        ["--cores", "0"],
        ["--cores", "x"],
    ],
)
def test_wrong_numbers(allosaur: Any, words: list[str]) -> None:
    allosaur("server", *words).refused(words[0])


def test_a_killed_server_leaves_nothing_behind(start: Start) -> None:
    process = start()
    rpc_port, _ = ports_in(welcome(process))
    process.kill()
    process.communicate(timeout=20)
    with socket.socket() as again:
        again.bind(("127.0.0.1", rpc_port))


@pytest.mark.parametrize("by_file", [False, True])
def test_a_stateful_server_says_what_it_is_for(
    allosaur: Any, start: Start, tmp_path: Path, by_file: bool
) -> None:
    config = tmp_path / "stateful.yaml"
    config.write_text("stateful: true\nports: [memory, memory]\n", encoding="utf-8")
    text = welcome(start(*(["--config", str(config)] if by_file else ["--stateful"])))
    assert "mode=stateful" in text
    assert "ASTFClient(server=" in text
    example = re.search(r"allosaur run (http) (.*)", text)
    assert example is not None, text
    options = example[2].replace("-d 10", "-d 1").split()
    ended = allosaur("run", example[1], *options)
    assert ended.code == 0 or "load not reached" in ended.out, ended
