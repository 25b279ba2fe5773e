"""Programs whose output nobody reads end quietly: no traceback, no panic, no words of Python at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur.server import find_binary

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "scripts" / "wheel-data" / "scripts").iterdir())
#: A profile that `astf-sim` prints.
HTTP = str(ROOT / "profiles" / "stateful" / "http.py")

PYTHON = [
    *((name, ["--help"]) for name in SCRIPTS),
    ("allosaur", []),
    ("allosaur", ["--version"]),
    ("allosaur", ["help"]),
    ("allosaur", ["run", "--help"]),
    ("allosaur", ["profiles"]),
    ("allosaur", ["run", "no-such-profile"]),
    ("astf-sim", ["-f", HTTP, "--json"]),
    ("t-rex-64", ["--no-such-option"]),
]
SERVER = [["--help"], [], ["--version"], ["ports"], ["serve", "--help"], ["config"], ["--no-such-option"]]


def ended(command: list[str], is_buffered: bool, both: bool) -> tuple[int, str]:
    """Run it with a pipe that nobody reads, for what it prints; with `both` for errors, too."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer if both else subprocess.PIPE,
            env=environment,
            timeout=110,
            check=False,
            restore_signals=True,
        )
    finally:
        os.close(writer)
    return done.returncode, "" if both else done.stderr.decode()


@pytest.mark.parametrize("is_buffered", [False, True])
@pytest.mark.parametrize(("name", "words"), PYTHON)
def test_a_program_in_python(name: str, words: list[str], is_buffered: bool) -> None:
    script = ROOT / "scripts" / "wheel-data" / "scripts" / name
    code, said = ended([sys.executable, str(script), *words], is_buffered, both=False)
    is_wrong = words[-1:] in (["no-such-profile"], ["--no-such-option"])
    assert code == (2 if is_wrong else 0), said
    assert "Traceback" not in said and "Exception" not in said and "Broken pipe" not in said, said
    assert bool(said) == is_wrong, said
    code, _ = ended([sys.executable, str(script), *words], is_buffered, both=True)
    assert code in (0, 2), "120 is Python's own, 1 a traceback"


@pytest.mark.parametrize("words", SERVER)
def test_the_server(words: list[str]) -> None:
    binary = str(find_binary())
    code, said = ended([binary, *words], is_buffered=False, both=False)
    assert "panicked" not in said and "Broken pipe" not in said, said
    assert code == (2 if words == ["--no-such-option"] else 0), said
    code, _ = ended([binary, *words], is_buffered=False, both=True)
    assert code in (0, 2), "101 is a panic"
