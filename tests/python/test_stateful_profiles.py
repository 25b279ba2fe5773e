"""Every example in profiles/stateful/: it says what it is for, compiles, and takes the tunables it names."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFProfile, STLProfileError
from allosaur.cli import _options
from allosaur.stateful._commands import BufferCmd
from allosaur.stateful._templates import ASTFTemplate
from allosaur.streams._loader import located_module

ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted((ROOT / "profiles" / "stateful").glob("*.py"))


def description(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text is not None
    return text


def loaded(path: Path, **tunables: Any) -> ASTFProfile:
    profile = ASTFProfile.load(path, **tunables)
    assert isinstance(profile, ASTFProfile)
    return profile


def test_there_are_many() -> None:
    assert len(PROFILES) >= 40


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_it_says_what_it_is_for(path: Path) -> None:
    text = description(path)
    for beginning in (
        "It tests ",
        f"Run it:  allosaur run {path.stem} ",
        "Tunables: ",
    ):
        assert beginning in text
    assert len(path.read_text().splitlines()) <= 65


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_it_compiles(path: Path) -> None:
    fields = loaded(path).to_json()
    assert fields["templates"]
    for program in fields["program_list"]:
        assert program.get("commands") or program.keys() & {"http_client", "http_server"}


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_it_takes_the_tunables_that_it_names(path: Path) -> None:
    with located_module(path) as module:
        parameters = list(inspect.signature(module.__dict__["register"]().get_profile).parameters)
    named = description(path).split("Tunables: ")[1]
    if "tunables" not in parameters:
        assert [name for name in parameters if not re.search(rf"\b{name}\b", named)] == []
        with pytest.raises(STLProfileError, match="has no tunable 'nonsense'"):
            loaded(path, nonsense=1)
    given = re.search(r"allosaur run \w+ -t (\S+)", description(path))
    tunables = _options.tunables(given[1]) if given else {}
    assert loaded(path, **tunables).to_json()["templates"]


def sent_and_awaited(template: ASTFTemplate, side: int) -> tuple[int, int]:
    """What one side sends in all, and what the other waits for at last; of programs without jumps."""
    programs = [template.client_template.program, template.server_template.program]
    commands = programs[1 - side].commands
    base = last = 0
    for command in commands:
        if command.word in ("rx", "rx_msg"):
            last = base + next(
                command.fields[name] for name in ("min_bytes", "min_pkts") if name in command.fields
            )
            base = last if command.fields.get("clear") else base
    sends = [command for command in programs[side].commands if isinstance(command, BufferCmd)]
    is_stream = programs[side].is_stream()
    return sum(command.buf_len for command in sends) if is_stream else len(sends), last


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_nobody_waits_for_what_is_not_sent(path: Path) -> None:
    for template in loaded(path).templates:
        sides = (template.client_template.program, template.server_template.program)
        if any(command.word.startswith("jmp") for program in sides for command in program.commands):
            continue
        for side in (0, 1):
            sent, awaited = sent_and_awaited(template, side)
            assert awaited <= sent


def test_each_command_and_tunable_is_shown() -> None:
    words, tunables = set(), set()
    for path in PROFILES:
        fields = loaded(path).to_json()
        programs = fields["program_list"]
        words |= {command["name"] for program in programs for command in program.get("commands", ())}
        infos = [fields.get("c_glob_info"), fields.get("s_glob_info")]
        for template in fields["templates"]:
            infos += [side.get("glob_info") for name, side in template.items() if name != "tg_id"]
        tunables |= {
            f"{section}.{name}"
            for info in infos
            if info
            for section, values in info.items()
            for name in values
        }
    assert {
        "tx",
        "rx",
        "tx_msg",
        "rx_msg",
        "keepalive",
        "close_msg",
        "delay",
        "delay_rnd",
        "reset",
        "nc",
    } <= words
    assert {"connect", "set_var", "add_var", "set_tick_var", "add_stats", "add_tick_stats", "jmp_nz"} <= words
    assert {"jmp_dp", "jmp_cmp", "tx_mode", "set_template", "exec_template"} <= words
    assert len(tunables) >= 23, sorted(tunables)
