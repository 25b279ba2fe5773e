"""TRex's official console and ours, connected to one server at the same time, print the same numbers."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent
OURS = "from allosaur.cli.trex._console import main; raise SystemExit(main())"
WAIT_S = 60

STREAMS = """
from trex_stl_lib.api import *

class Bursts:
    def get_streams(self, direction=0, **kwargs):
        packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12) / (b"x" * 40))
        mode, few = STLTXSingleBurst(pps=10000, total_pkts=500), STLTXSingleBurst(pps=1000, total_pkts=20)
        counted = STLStream(packet=packet, mode=mode, flow_stats=STLFlowStats(7))
        return [counted, STLStream(packet=packet, mode=few, flow_stats=STLFlowLatencyStats(8))]

def register():
    return Bursts()
"""
FLOWS = """
from trex.astf.api import *

class Asked:
    def get_profile(self, tunables=None, **kwargs):
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]),
        )
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"GET /")
        asks.recv(900)
        answers.recv(5)
        answers.send(b"*" * 900)
        client = ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, cps=20, limit=30)
        server = ASTFTCPServerTemplate(program=answers)
        template = ASTFTemplate(client_template=client, server_template=server)
        return ASTFProfile(default_ip_gen=ip_gen, templates=template)

def register():
    return Asked()
"""
#: Rows of TRex's tables whose numbers are counts; rates and times differ from moment to moment.
COUNTS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors", "TX pkts", "RX pkts", "Errors")
FLOW_COUNTERS = re.compile(r"(m_(?:traffic|est|open|total)|tcps_|err_)\w*")
Row = tuple[str, tuple[int, ...]]


class Console:
    """A console that reads lines from a pipe."""

    def __init__(self, command: list[str], server: LocalServer, environment: dict[str, str] | None) -> None:
        where = ["-s", server.host, "-p", str(server.rpc_port), "--async_port", str(server.pub_port)]
        self.process = subprocess.Popen(
            [*command, *where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Let it end; return what it printed, without colours."""
        out, _ = self.process.communicate("quit\n", timeout=WAIT_S)
        return re.sub(r"\x1b\[[0-9;]*m", "", out)


@pytest.fixture
def both(
    client_python: str, client_environment: dict[str, str]
) -> Iterator[Callable[[LocalServer], tuple[Console, Console]]]:
    """TRex's console, and ours that only looks."""
    started: list[Console] = []

    def start(server: LocalServer) -> tuple[Console, Console]:
        ours = Console([sys.executable, "-c", OURS, "-r"], server, None)
        theirs = [client_python, "-W", "ignore", str(HERE / "console.py")]
        started.extend((Console(theirs, server, client_environment), ours))
        return started[0], started[1]

    yield start
    for console in started:
        console.process.kill()
        console.process.wait()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def rows(output: str, is_wanted: Callable[[str], bool]) -> list[Row]:
    """The rows of tables whose cells are whole numbers, by their names."""
    found = []
    for line in output.splitlines():
        name, *cells = re.split(r"\s*\|\s*|\s{2,}", line.strip().rstrip("|").strip())
        numbers = [cell for cell in cells if cell.isdecimal()]
        if is_wanted(name) and numbers:
            # TRex's console lists packet groups in any order.
            found.append((name, tuple(sorted(map(int, numbers)))))
    return found


def test_of_streams(
    both: Callable[[LocalServer], tuple[Console, Console]], server: LocalServer, tmp_path: Path
) -> None:
    profile = tmp_path / "bursts.py"
    profile.write_text(STREAMS, encoding="utf-8")
    theirs, ours = both(server)
    with server.client(username="watcher") as watcher:
        # Each counts from when it connected, so both must have before there is traffic.
        ours.say("ping")
        assert ours.process.stdout is not None
        assert any("Pinging RPC server" in line for line in iter(ours.process.stdout.readline, ""))
        theirs.say(f"start -f {profile} -p 0")
        until(lambda: watcher.get_stats([1])[1]["ipackets"] == 520)
        for console in (theirs, ours):
            for line in ("stats -p", "stats -s", "stats -l"):
                console.say(line)
        expected, printed = theirs.end(), ours.end()
    numbers = rows(printed, lambda name: name in COUNTS)
    assert ("opackets", (0, 520, 520)) in numbers, printed
    assert ("opackets", (20, 500)) in numbers, printed
    assert sorted(set(numbers)) == sorted(set(rows(expected, lambda name: name in COUNTS))), expected


def test_of_flows(both: Callable[[LocalServer], tuple[Console, Console]], tmp_path: Path) -> None:
    profile = tmp_path / "asked.py"
    profile.write_text(FLOWS, encoding="utf-8")
    with LocalServer(stateful=True) as server:
        theirs, ours = both(server)
        theirs.say(f"start -f {profile} -m 1")
        with server.client(username="watcher") as watcher:

            def closed() -> bool:
                sides = watcher.get_traffic_stats().values()
                return all(side.get("tcps_closed") == 30 for side in sides)

            until(closed)
            for console in (theirs, ours):
                console.say("stats -a")
            expected, printed = theirs.end(), ours.end()
    wanted = FLOW_COUNTERS.fullmatch
    numbers = rows(printed, lambda name: wanted(name) is not None)
    assert ("tcps_connects", (30, 30)) in numbers, printed
    assert numbers == rows(expected, lambda name: wanted(name) is not None), expected
