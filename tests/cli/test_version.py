"""`allosaur version`, `--help`, and what the command line loads before it knows what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("scapy", "zmq", "rich", "yaml")


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
        (["rum"], "there is no command 'rum'; did you mean run?"),
        (["config", "chek"], "did you mean check?"),
        (["run"], "PROFILE"),
        (["run", "x.py", "--speed", "5"], "there is no option --speed"),
        (["run", "x.py", "--locl"], "there is no option --locl; did you mean --local?"),
        (["run", "x.py", "-d"], "-d/--duration: a value is missing"),
        (["run", "x.py", "--local", "--server", "x"], "--server: not allowed with --local"),
        (["version", "extra"], "'extra' is one word too many"),
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


@pytest.mark.parametrize("words", [[], ["help"]])
def test_the_command_alone_shows_help(allosaur: Any, words: list[str]) -> None:
    ended = allosaur(*words)
    assert ended.code == 0, ended
    assert ended.out == allosaur("--help").out
    assert "Allosaur, an open, realistic traffic generator." in ended.out


def test_help_of_a_command(allosaur: Any) -> None:
    assert allosaur("help", "run").out == allosaur("run", "--help").out
    allosaur("help", "rum").refused("did you mean run?")


def test_the_version_as_an_option(allosaur: Any) -> None:
    assert allosaur("--version").out == allosaur("version").out.splitlines()[0] + "\n"


def test_debug_before_the_command(allosaur: Any) -> None:
    ended = allosaur("--debug", "run", "missing.py")
    assert ended.code == 2
    assert "Traceback" in ended.err and "argparse" not in ended.err


def test_no_color(allosaur: Any, binary: str) -> None:
    # `rich` colors also where nobody can see it when FORCE_COLOR is set, but not with NO_COLOR.
    run = ["run", "single_burst", "--local", "--local-ports", "memory:loss=90%:seed=1,memory"]
    force = {"FORCE_COLOR": "1", "COLUMNS": "100"}
    assert "\x1b[3" not in allosaur("--no-color", *run, variables=force).out
    assert "\x1b[3" not in allosaur(*run, variables={**force, "NO_COLOR": "1"}).out


@pytest.mark.parametrize(
    "words", [["serv"], ["serve", "--port", "x"], ["serve", "--cores"], ["config", "check"]]
)
def test_errors_of_the_server_s_binary_are_one_line_too(binary: str, words: list[str]) -> None:
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")


def test_both_programs_have_one_slogan(allosaur: Any, binary: str) -> None:
    done = subprocess.run([binary], capture_output=True, text=True, check=True)
    assert "Allosaur, an open, realistic traffic generator" in done.stdout
