"""The sessions of docs/guide/console.md are what the console does: each is typed, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from allosaur.cli.console import _loop
from allosaur.cli.console._prompt_text import prompt_text
from allosaur.cli.console._session import Session, Settings, Target, opened
from allosaur.cli.console.commands import of_mode
from allosaur.server import LocalServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "console.md"
PROMPT = re.compile(r"allosaur\((?P<mode>\w+), [^)]*\)> (?P<line>.*)")


def blocks(kind: str) -> list[str]:
    """The blocks of the page of a kind, without their fences."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == kind]


def sessions() -> list[tuple[str, str, list[str]]]:
    """The lines of the page with their mode and the output that it shows, without `...`."""
    found: list[tuple[str, str, list[str]]] = []
    for block in blocks(""):
        for text in block.splitlines():
            typed = PROMPT.fullmatch(text)
            if typed is not None:
                found.append((typed["mode"], typed["line"], []))
            elif found and text != "...":
                found[-1][2].append(text)
    return found


def test_the_page_shows_what_happens(
    server: LocalServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (plugin,) = blocks("python")
    Path("plugin_hello.py").write_text(plugin)
    target = Target(server.host, server.rpc_port, server.pub_port)
    typed = sessions()
    assert len(typed) > 15
    with opened(target, Settings()) as session:
        for mode, line, shown in typed:
            assert prompt_text(session).startswith(f"allosaur({mode}, "), line
            assert _loop.line(line, session) == 0, (line, capsys.readouterr().err)
            out = capsys.readouterr().out
            for words in shown:
                assert words in out, f"{line}: {words!r} is not in:\n{out}"


@pytest.mark.parametrize("mode", ["STL", "ASTF"])
def test_commands_that_the_page_names_are_there(mode: str) -> None:
    named = {"help", "history", "wait", "shell", "verbose", "mode", "tui", "plugins", "ns", "capture"}
    assert named <= set(of_mode(mode))
    assert isinstance(Session(Target("localhost", 4501, 4500), Settings()).commands, dict)
