"""A toy console: a loop over the command objects, which complete words, run, and leave nothing behind."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

import pytest
from allosaur.cli._command import Command
from allosaur.cli._main import main
from allosaur.cli.commands import COMMANDS
from allosaur.server import LocalServer

IMIX = Path(__file__).resolve().parents[2] / "profiles" / "imix.py"


class Repeat(Command):
    """A command that only the console has."""

    name: ClassVar[str] = "repeat"
    summary: ClassVar[str] = "say a word again"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("word", choices=("loud", "low"))
        parser.add_argument("-n", type=int, default=1)

    def run(self, options: argparse.Namespace) -> int:
        print(" ".join([options.word] * options.n))
        return 0


class Console:
    """Lines instead of command lines; each is done in this process."""

    def __init__(self, where: Iterable[str] = ()) -> None:
        self.commands = [one for one in COMMANDS if one.name != "server"] + [Repeat()]
        self.where = list(where)

    def do(self, *lines: str) -> list[int]:
        return [main(shlex.split(line), self.commands) for line in lines]

    def ask(self, *lines: str) -> list[int]:
        """Do lines that are about the server to which the console is joined."""
        return [main([*shlex.split(line), *self.where], self.commands) for line in lines]


def test_words_are_completed_as_on_the_command_line(complete: Callable[..., list[str]]) -> None:
    commands = Console().commands
    names = [one.name for one in commands]
    assert complete("allosaur ", commands) == names
    assert complete("allosaur rep", commands) == ["repeat"]
    assert complete("allosaur repeat l", commands) == ["loud", "low"]
    assert "-n" in complete("allosaur repeat -", commands)
    assert "imix" in complete("allosaur run im", commands)
    assert set(complete("allosaur help ", commands)) == set(names)


def test_a_command_of_its_own_is_one_more_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert Console().do("repeat loud -n 2", "help repeat", "repeat lowd") == [0, 0, 2]
    said = capsys.readouterr()
    assert said.out.startswith("loud loud\n")
    assert "Say a word again." in said.out
    assert "there is no value of word 'lowd'; did you mean low?" in said.err


def test_lines_follow_each_other_whatever_one_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console()
    lines = ["version --no-color", "run", "nonsense", "run --help", "-q version", "version --json"]
    assert console.do(*lines) == [0, 2, 2, 0, 0, 0]
    assert "NO_COLOR" not in os.environ
    out, err = capsys.readouterr()
    assert err.count("error: ") == 2 and "Traceback" not in err
    assert json.loads(out[out.rindex("\n{") :])["command"] == "version"


def test_a_session_with_a_server(server: LocalServer, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)])
    assert console.ask(f"start {IMIX} -m 100pps", "stats", "update -m 200pps", "stop", "status") == [0] * 5
    assert console.ask("start --ports 7", "stop", "clear") == [2, 0, 0]
    out, err = capsys.readouterr()
    assert "Port 0 sends" in out and "Stopped port 0." in out and "Nothing ran." in out
    assert err.count("error: ") == 1 and "Traceback" not in err
