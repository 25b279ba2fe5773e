"""The exit codes of docs/guide/command-line.md, each row from outside: 0, 1, 2, 3 and 130.

A refusal is the user's to mend: it has the server's own words in one line, and is never called a defect.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLArgumentError, STLConnectionError, STLError
from allosaur._errors import ServerStartError
from allosaur.cli import _errors, _main, _output_file
from allosaur.cli._errors import CommandError
from allosaur.server import LocalServer

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "command-line.md"
BURST = "STLTXSingleBurst(pps=1000, total_pkts=100)"
CAP_NET_RAW = 13
PR_CAPBSET_DROP = 24

pytestmark = pytest.mark.usefixtures("binary")


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def in_words(ended: Any, code: int, *words: str) -> None:
    """Check one line of error with these words, which does not blame the program."""
    ended.failed(code, *words)
    for blame in ("defect", "--debug", "Error:", "exit code", "Its log"):
        assert blame not in ended.err, ended


def test_0_passed(allosaur: Any, profile: Callable[..., Path]) -> None:
    assert allosaur("run", profile(mode=BURST), "--local").code == 0


def test_1_the_device_lost_packets(allosaur: Any, profile: Callable[..., Path]) -> None:
    lossy = ["--local", "--local-ports", "memory:loss=50%:seed=1,memory"]
    ended = allosaur("run", profile(mode=BURST), *lossy)
    assert ended.code == 1, ended


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--local-ports", "allo-none"], ["allo-none", "no such interface"]),
        (["--local-ports", "memroy"], ["memroy", "did you mean memory?"]),
        (["--local-ports", "memory:delya=1"], ["--local-ports", "'delya'", "did you mean delay?"]),
        (["--cores", "99"], ["--cores", "99", "1..=64"]),
        (["--local-ports", "x/y"], ["--local-ports", "The kinds are: memory"]),
    ],
    ids=["an unknown port", "a misspelt kind", "a misspelt setting", "too many cores", "no port at all"],
)
def test_2_a_local_server_refuses_its_options(
    allosaur: Any, profile: Callable[..., Path], words: list[str], said: list[str]
) -> None:
    in_words(allosaur("run", profile(mode=BURST), "--local", *words), 2, *said)


@pytest.mark.parametrize("command", ["run", "demo"])
def test_2_a_report_that_cannot_be_written_is_refused_before_the_run(
    allosaur: Any, profile: Callable[..., Path], command: str
) -> None:
    words = ["run", profile(mode=BURST), "--local"] if command == "run" else ["demo"]
    # A file system on which not even root may write.
    ended = allosaur(*words, "--report", "/proc/report.html")
    in_words(ended, 2, "--report /proc/report.html", "cannot be written")
    assert ended.out == ""
    assert "Starting" not in ended.err


def test_2_captures_that_cannot_be_written(allosaur: Any, profile: Callable[..., Path]) -> None:
    in_words(allosaur("sim", profile(), "-o", "/proc/out.pcap"), 2, "-o /proc/out.pcap", "cannot be written")


@pytest.mark.parametrize("option", ["--json", "--out", "--csv"])
def test_a_disk_that_is_full_at_the_end_is_told_with_the_option(option: str) -> None:
    with pytest.raises(CommandError, match=f"^{option} /dev/full: cannot be written: No space left"):
        _output_file.write(option, Path("/dev/full"), "result")


def test_checking_a_file_leaves_it_as_it_was(allosaur: Any, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    ended = allosaur("demo", "--report", report, "--seconds", "1")
    ended.refused("--seconds")
    assert not report.exists()
    report.write_text("mine", encoding="utf-8")
    allosaur("run", "none.py", "--local", "--report", report).refused("none.py")
    assert report.read_text(encoding="utf-8") == "mine"


def test_3_no_server(allosaur: Any, profile: Callable[..., Path]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for command in (["run", profile()], ["stats"], ["ping", "192.0.2.1"], ["capture"]):
        in_words(
            allosaur(*command, "--server", f"127.0.0.1:{port}"), 3, f"no server answers at 127.0.0.1:{port}"
        )


def test_3_a_port_that_somebody_else_owns(
    allosaur: Any, server: LocalServer, profile: Callable[..., Path]
) -> None:
    with server.client(username="somebody") as other:
        other.acquire(ports=[0])
        in_words(allosaur("run", profile(), *where(server)), 3, "cannot take port 0", "somebody", "--force")


def test_3_a_server_whose_address_is_taken(allosaur: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ended = allosaur("server", "--rpc-port", other.getsockname()[1])
    in_words(ended, 3, "cannot listen on")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be without a privilege that others have")
def test_3_a_missing_privilege(allosaur: Any, profile: Callable[..., Path]) -> None:
    """As an ordinary user: `run --local --local-ports eth0` without CAP_NET_RAW."""

    def drop() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0)

    ended = allosaur("run", profile(mode=BURST), "--local", "--local-ports", "lo", prepare=drop)
    in_words(ended, 3, "'lo'", "CAP_NET_RAW", "setcap cap_net_raw+ep")


def test_3_a_server_that_dies(server: LocalServer, profile: Callable[..., Path]) -> None:
    command = [sys.executable, "-m", "allosaur.cli", "run", str(profile()), *where(server), "-d", "forever"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stderr is not None and "sending" in running.stderr.readline()
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 3, err
    assert "defect" not in err


def test_130_interrupted(server: LocalServer, profile: Callable[..., Path]) -> None:
    command = [sys.executable, "-m", "allosaur.cli", "run", str(profile()), *where(server), "-d", "forever"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stderr is not None and "sending" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (STLError("the port is asleep"), 3, "the port is asleep"),
        (STLConnectionError("it went away"), 3, "it went away"),
        (STLArgumentError("mult", 0), 2, "argument 'mult' cannot be 0"),
        (ServerStartError("no such port", 2), 2, "the server did not start: no such port"),
        (ServerStartError("it ended with exit code -9. Its log: nothing", -9), 3, "ended with exit code -9"),
        (PermissionError(13, "Permission denied", "/root/x"), 3, "/root/x: Permission denied"),
        (KeyboardInterrupt(), 130, "stopped"),
        (ZeroDivisionError("division by zero"), 3, "ZeroDivisionError: division by zero; this is a defect"),
    ],
)
def test_errors_that_no_command_expected(error: BaseException, code: int, words: str) -> None:
    exit_code, message = _main._explain(error, debug=False)
    assert exit_code == code
    assert words in message
    assert ("defect" in message) == isinstance(error, ZeroDivisionError)


def test_the_guide_has_one_table_with_all_of_them() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    table = text.split("\n## Exit codes\n", 1)[1].split("\n## ", 1)[0]
    rows = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for code in cell.split(",")}
    assert rows == {value for name, value in vars(_errors).items() if name.startswith("EXIT_")}
