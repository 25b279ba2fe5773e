"""The same scripts see the same with TRex's official client and with ours, each on a server of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur.server import LocalServer

SCRIPT = Path(__file__).resolve().parent / "same_scripts.py"
Both = Callable[..., tuple[Any, Any]]

PROFILE = """
from trex_stl_lib.api import *

class Burst:
    def get_streams(self, direction=0, packets=1, **kwargs):
        frame = Ether() / IP() / UDP() / (b"x" * 18)
        some = int(packets)
        mode = STLTXSingleBurst(pps=10000, total_pkts=some) if some else STLTXCont(pps=100)
        return [STLStream(packet=STLPktBuilder(pkt=frame), mode=mode)]

def register():
    return Burst()
"""


def run(python: str, environment: dict[str, str] | None, server: LocalServer, *arguments: str) -> Any:
    name, *rest = arguments
    command = [python, "-W", "ignore", str(SCRIPT), name]
    command += [server.host, str(server.rpc_port), str(server.pub_port), *rest]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert done.returncode == 0, f"{python} failed:\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def both(client_python: str, client_environment: dict[str, str]) -> Both:
    """Run a script with both clients; give what TRex's saw, and what ours did."""

    def run_both(name: str, *arguments: str, stateful: bool = False) -> tuple[Any, Any]:
        seen = []
        for python, environment in ((client_python, client_environment), (sys.executable, None)):
            with LocalServer(ports=["memory", "memory"], stateful=stateful) as server:
                seen.append(run(python, environment, server, name, *arguments))
        return seen[0], seen[1]

    return run_both


def test_all_ports_are_counted(both: Both) -> None:
    theirs, ours = both("a_receiver_that_is_not_ours")
    assert ours == theirs
    assert ours["all"] == [["0", 300, 0], ["1", 0, 300], ["total", 300, 300]]
    assert ours["of the sender"] == ours["all"]
    assert ours["reset"] == ours["cleared by the sender"] == [["0", 0, 0], ["1", 0, 0], ["total", 0, 0]]


def test_a_fresh_client_counts_from_connect(both: Both) -> None:
    theirs, ours = both("a_fresh_client")
    assert ours == theirs
    assert ours["at once"] == ours["connected again"] == [["0", 0, 0], ["1", 0, 0], ["total", 0, 0]]
    assert ours["later"] == [["0", 30, 0], ["1", 0, 30], ["total", 30, 30]]


def test_a_fresh_stateful_client_looks_alike(both: Both) -> None:
    theirs, ours = both("a_fresh_stateful_client", stateful=True)
    assert ours == theirs


def test_lines_of_the_console_do_the_same(both: Both, tmp_path: Path) -> None:
    profile = tmp_path / "burst.py"
    profile.write_text(PROFILE)
    theirs, ours = both("lines", str(profile))
    # TRex's console has commands of its own for what our client does not.
    assert ours == theirs
    assert ours["burst"] == [["0", 40, 0], ["1", 0, 40], ["total", 40, 40]]


def test_a_port_that_is_not_there_is_refused_by_both(both: Both) -> None:
    theirs, ours = both("what_is_refused")
    assert ours == theirs == [True, True]
