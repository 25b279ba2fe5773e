"""The console of TRex's official client, for stateful traffic, against our server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from allosaur.server import LocalServer

HERE = Path(__file__).resolve().parent
OURS = "from allosaur.cli.trex._console import main; raise SystemExit(main())"
Console = Callable[..., str]

PROFILE = '''
"""Two kinds of requests, in two groups."""
from trex.astf.api import *


class TwoGroups:
    def get_profile(self, tunables=None, **kwargs):
        ip_gen = ASTFIPGen(
            dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
            dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
        )
        asks, answers = ASTFProgram(), ASTFProgram()
        asks.send(b"GET /")
        asks.recv(SIZE)
        answers.recv(5)
        answers.send(b"*" * SIZE)
        templates = [
            ASTFTemplate(
                client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, port=PORT + place, cps=5),
                server_template=ASTFTCPServerTemplate(
                    program=answers, assoc=ASTFAssociationRule(PORT + place)
                ),
                tg_name=name,
            )
            for place, name in enumerate(("down", "up"))
        ]
        return ASTFProfile(default_ip_gen=ip_gen, templates=templates)


def register():
    return TwoGroups()
'''

COMMANDS = """
portattr
start -f {profile} -m 20 -l 50
profiles
ping
update -m 40
start -f {other} -m 5 -d 1 --nc --pid second
stats -g
stats -p
stats -a
stats --za
stats -l
template_group names
template_group stats --name down
latency stop
latency start --src 16.0.0.1 --dst 48.0.0.1 -m 10
latency update -m 20
latency show
latency hist
latency counters
latency stop
black_list set --macs 02:00:00:00:00:99
black_list get
black_list clear
stop --pid second --remove
stop
service
service --off
topo show
clear
events
reset
"""

SHOWN = [
    "Server mode:      Advanced Stateful",
    "Starting traffic.",
    "Profile States",
    "Updating traffic.",
    "Port Statistics",
    "Traffic stats summary",
    "tcps_connattempt",
    "err_defer_no_template",
    "Latency Statistics",
    "down",
    "Template Group Name: down. Number of template groups = 2",
    "Starting latency traffic.",
    "Latency Histogram",
    "m_tx_pkt_ok",
    "Stopping traffic.",
]
"""What the console must have shown, in this order."""


@pytest.fixture
def stateful() -> Iterator[LocalServer]:
    with LocalServer(stateful=True) as server:
        yield server


@pytest.fixture
def console(client_python: str, client_environment: dict[str, str], stateful: LocalServer) -> Console:
    """What the console printed, without colours. `typed` is what a user types."""

    def run(*more: str, typed: str = "") -> str:
        options = ["-s", stateful.host, "-p", str(stateful.rpc_port)]
        command = [client_python, "-W", "ignore", str(HERE / "console.py"), *options]
        done = subprocess.run(
            [*command, "--async_port", str(stateful.pub_port), *more],
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            input=typed,
            env=client_environment,
        )
        output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        assert "Traceback" not in output + done.stderr, f"{output}\n{done.stderr}"
        return output

    return run


def profile(folder: Path, name: str, port: int) -> Path:
    path = folder / f"{name}.py"
    path.write_text(PROFILE.replace("SIZE", "5000").replace("PORT", str(port)), encoding="utf-8")
    return path


def test_a_batch_of_every_kind_of_command(console: Console, tmp_path: Path) -> None:
    batch = tmp_path / "batch.txt"
    files = {"profile": profile(tmp_path, "first", 80), "other": profile(tmp_path, "second", 8080)}
    text = COMMANDS.format(**files).strip()
    batch.write_text(text, encoding="utf-8")
    output = console("--batch", str(batch))
    # The console stops at the first line that fails; this is its last.
    assert f"Executing line {len(text.splitlines())} : 'reset'" in output, output
    assert "[FAILED]" not in output, output
    assert "usage:" not in output, output
    at = 0
    for words in SHOWN:
        found = output.find(words, at)
        assert found >= 0, f"{words}\n{output[at:]}"
        at = found


def test_our_console_does_the_same_batch(stateful: LocalServer, tmp_path: Path) -> None:
    files = {"profile": profile(tmp_path, "first", 80), "other": profile(tmp_path, "second", 8080)}
    batch = tmp_path / "batch.txt"
    batch.write_text(COMMANDS.format(**files).strip(), encoding="utf-8")
    where = ["-s", stateful.host, "-p", str(stateful.rpc_port), "--async_port", str(stateful.pub_port)]
    done = subprocess.run(
        [sys.executable, "-c", OURS, *where, "--batch", batch],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        input="",
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "[Done]" in done.stdout


def test_a_read_only_console_sees_what_runs(console: Console, stateful: LocalServer, tmp_path: Path) -> None:
    with stateful.client(username="somebody") as owner:
        owner.reset()
        owner.load_profile(Path(__file__).parents[2] / "profiles" / "stateful" / "http.py")
        owner.start(mult=20)
        file = profile(tmp_path, "first", 80)
        output = console("-r", typed=f"stats -a\nprofiles\nstop\nstart -f {file}\nquit\n")
        assert "Read only mode" in output, output
        assert "m_tx_bw_l7_r" in output, output
        assert "[SUCCESS]" not in output.split("Type 'help'")[1], output
        assert owner.get_profiles_state() == {"_": "STATE_TX"}
        owner.stop()
