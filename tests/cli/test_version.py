"""`allosaur version`, `--help`, and what the command line loads before it knows what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("scapy", "zmq", "rich", "plotly", "yaml")


def test_version(allosaur: Any, binary: str) -> None:
    ended = allosaur("version")
    assert ended.code == 0
    assert ended.out.startswith("allosaur ")
    assert binary in ended.out


def test_version_as_json(allosaur: Any, binary: str) -> None:
    result = allosaur("version", "--json").json()
    assert result.keys() == {
        *("command", "ok", "allosaur", "server", "server_binary", "python", "scapy", "system"),
    }
    assert (result["command"], result["ok"], result["server_binary"]) == ("version", True, binary)
    assert "allosaur-server" in result["server"]


@pytest.mark.parametrize("command", [[], ["server"], ["run"], ["sim"], ["demo"], ["version"]])
def test_help(allosaur: Any, command: list[str]) -> None:
    ended = allosaur(*command, "--help")
    assert ended.code == 0
    assert ended.out.startswith("usage: " + " ".join(["allosaur", *command]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "COMMAND"),
        (["ran"], "invalid choice: 'ran'"),
        (["run"], "PROFILE"),
        (["run", "x.py", "--speed", "5"], "--speed"),
        (["version", "extra"], "extra"),
    ],
)
def test_a_wrong_command_line(allosaur: Any, words: list[str], said: str) -> None:
    ended = allosaur(*words)
    ended.refused(said, "--help")
    assert ended.out == ""


def test_an_error_is_one_json_object_too(allosaur: Any) -> None:
    ended = allosaur("run", "missing.py", "--json")
    ended.refused("missing.py")
    result = ended.json()
    assert (result["command"], result["ok"], result["exit_code"]) == ("run", False, 2)
    assert "missing.py" in result["error"]


def test_debug_shows_where(allosaur: Any) -> None:
    ended = allosaur("run", "missing.py", "--debug")
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert "error: profile missing.py" in ended.err


def test_help_loads_nothing_heavy(allosaur: Any, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from allosaur.cli import main\n"
        "main(['run', '--help'])\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stderr.splitlines()[-1]
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []
    assert "'argparse'" in loaded
