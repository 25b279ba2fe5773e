"""The commands of docs/guide/ndr.md are run, one after the other, with shorter trials."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from allosaur.cli._main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "ndr.md"
SHORTER = {"2s": "200ms", "1s": "200ms", "500ms": "150ms", "200ms": "100ms"}


def sessions() -> list[tuple[list[str], str]]:
    """The commands of the page, each with what the page shows of its output."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in block.split("$ allosaur ")[1:]:
            line, _, shown = part.partition("\n")
            found.append((shlex.split(line), shown))
    return found


def test_the_commands_of_the_page_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = sessions()
    assert [words[0] for words, _ in commands] == ["ndr"] * 6 + ["compare"]
    for words, shown in commands:
        code = main([SHORTER.get(word, word) for word in words])
        out, err = capsys.readouterr()
        # A busy machine may not send in time; then the limit is lower, or none is found, and that is said.
        assert code in (0, 1), err
        assert code == 0 or "FAILED: " in out
        for name in re.findall(r"^\w[\w ]*(?:ndr|pdr)", shown, re.MULTILINE):
            assert name in out
    assert {path.name for path in tmp_path.iterdir()} == {
        "before.json",
        "before.csv",
        "before.html",
        "after.json",
    }


def test_what_the_table_says_of_the_options_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ndr", "--help"]) == 0
    known = capsys.readouterr().out
    ours = PAGE.read_text(encoding="utf-8").split("| TRex's `ndr --stl` | here |", 1)[1]
    for row in ours.splitlines()[2:]:
        for option in re.findall(r"--[a-z-]+", row.split("|")[2]):
            assert option in known
