"""Fixtures of the command line's tests: the command as a user runs it, and profiles to give it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._command import Command

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60
TRIES_IN_TIME = 5
#: What a run says when the machine was too slow for it: to send, or to answer before the peer sends again.
NOT_IN_TIME = ("load not reached", "retransmission timeouts")


@dataclass(frozen=True)
class Ended:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one JSON object on the standard output; anything else beside it is an error."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def refused(self, *words: str) -> None:
        """Check that this is bad input: exit code 2, one error line that has these words, no traceback."""
        self.failed(2, *words)

    def failed(self, code: int, *words: str) -> None:
        """Check that this ended with `code` and one error line that has these words."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert self.code == code, self
        assert len(lines) == 1, self
        assert "Traceback" not in self.err, self
        for word in words:
            assert word in lines[0], f"{word!r} is not in {lines[0]!r}"


Allosaur = Callable[..., Ended]


def environment() -> dict[str, str]:
    """An environment without debugging, in which Python finds the package as this process does."""
    return {**os.environ, "ALLOSAUR_DEBUG": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture
def allosaur(tmp_path: Path, fork_server: Any) -> Allosaur:
    """The command: `allosaur("run", path, "-d", "1")`. Its working folder is the test's own.

    `prepare` runs in its process before it, which is then not a forked one (see fork_server.py);
    `variables` are more of its environment. With `in_time` it is done again, a few times, when it says
    that it was not done in time: on a busy machine that says nothing of what is tested.
    """

    def run(
        *words: object,
        timeout_s: float = TIMEOUT_S,
        prepare: Callable[[], None] | None = None,
        variables: dict[str, str] | None = None,
    ) -> Ended:
        command = ["allosaur.cli", *map(str, words)]
        variables = {**environment(), **(variables or {})}
        if prepare is None:
            done = fork_server.run(command, tmp_path, variables, timeout_s)
        else:
            done = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=tmp_path,
                env=variables,
                preexec_fn=prepare,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        return Ended(done.returncode, done.stdout, done.stderr)

    def run_in_time(*words: object, in_time: bool = False, **more: Any) -> Ended:
        ended = run(*words, **more)
        for _ in range(TRIES_IN_TIME - 1 if in_time else 0):
            if ended.code != 1 or not any(words in ended.out + ended.err for words in NOT_IN_TIME):
                break
            ended = run(*words, **more)
        return ended

    return run_in_time


@pytest.fixture(scope="session")
def binary() -> str:
    """The server binary; what needs it is skipped where it is not built."""
    from allosaur import STLError
    from allosaur.server import find_binary

    try:
        return str(find_binary())
    except STLError as error:
        pytest.skip(f"the server is not built (make install builds it): {error}")


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., Path]:
    """Write a profile with one stream; its arguments go into the source as they are."""

    def write(
        packet: str = "Ether() / IP(src='16.0.0.1', dst='48.0.0.1') / UDP(sport=1025, dport=12) / bytes(18)",
        mode: str = "STLTXCont(pps=1000)",
        vm: str = "None",
        stream: str = "",
    ) -> Path:
        path = tmp_path / "profile.py"
        path.write_text(
            "from scapy.all import Ether, IP, UDP, Raw\n"
            "from allosaur import *\n"
            "class Profile:\n"
            "    def get_streams(self):\n"
            f"        packet = STLPktBuilder(pkt={packet}, vm={vm})\n"
            f"        return [STLStream(name='only', packet=packet, mode={mode}, {stream})]\n"
            "def register():\n"
            "    return Profile()\n",
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What may come next on a line, as the scripts of shells ask; `commands` are ours unless given."""
    from allosaur.cli import _completion
    from allosaur.cli.commands import COMMANDS

    def asked(line: str, commands: Iterable[Command] = COMMANDS) -> list[str]:
        variables = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
        written = io.StringIO()
        with monkeypatch.context() as patch:
            # It would write to, and close, a file descriptor that is pytest's.
            patch.setattr("argcomplete.CompletionFinder._init_debug_stream", lambda finder: None)
            for name, value in {**variables, "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}.items():
                patch.setenv(name, value)
            _completion.answer(commands, written, leave=lambda code: None)
        return written.getvalue().split("\013") if written.getvalue() else []

    return asked
