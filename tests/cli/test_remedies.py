"""An error says the remedy in the words of the place: the console, the command line, Python."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator

import pytest
from allosaur import STLError
from allosaur.cli import _parser, _remedies
from allosaur.cli._command import Command
from allosaur.cli._errors import brief
from allosaur.cli.commands import COMMANDS
from allosaur.cli.console import commands

from .conftest import ROOT

#: Packages whose errors reach whoever types commands; profiles and services speak of their own code.
PACKAGES = ("client", "stateful/client", "rpc", "emulation", "streams")
#: A remedy in the words of Python, or of a request to the server.
IN_PYTHON = re.compile(
    r"\b(?:call|see|with|or|and|by) \w+\(|\w+\(\) (?:again|first)|\bforce=True|'force'|'mul'"
)
#: What these speak of is the code of a profile, or the client itself.
OF_PROFILES = re.compile(r"see STLProfile\.to_json|with register\(")


def messages() -> Iterator[str]:
    """Every text of an error in these packages; what is filled in is `[0]`, as a list of ports."""
    for package in PACKAGES:
        for path in sorted((ROOT / "python" / "allosaur" / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.Raise, ast.Return)):
                    yield from texts(node)


def texts(node: ast.AST) -> Iterator[str]:
    """The texts within a statement, each whole."""
    if isinstance(node, ast.JoinedStr):
        parts = (getattr(part, "value", "") for part in node.values)
        yield "".join(part if isinstance(part, str) else "[0]" for part in parts)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


PYTHON = sorted({text for text in messages() if IN_PYTHON.search(text) and not OF_PROFILES.search(text)})


def test_messages_are_found() -> None:
    assert len(PYTHON) > 20
    assert any("set_service_mode" in text for text in PYTHON)


@pytest.mark.parametrize("text", PYTHON)
def test_no_message_tells_people_at_the_console_to_call_a_method(text: str) -> None:
    with _remedies.of_console():
        said = brief(STLError(text))
    assert not IN_PYTHON.search(said), said
    assert not IN_PYTHON.search(brief(STLError(text))), brief(STLError(text))


@pytest.mark.parametrize(
    "text",
    [
        "port 0 belongs to another user: ask for its release, or use 'force'",
        "Link state is DOWN. Plug it in, or use 'force'.",
        "Expected L1 B/W: '2 Gbps' exceeds port line rate: '1 Gbps'. Lower 'mul', or use 'force'.",
        "context is already taken (use 'force' argument to override), by 'x'",
        "give the stream its own destination MAC, or use force",
        "a receive queue needs service mode on port 0: switch it on with 'service'",
    ],
)
def test_words_of_the_server(text: str) -> None:
    for place in ("console", "command line"):
        if place == "console":
            with _remedies.of_console():
                said = brief(STLError(text))
        else:
            said = brief(STLError(text))
        assert "'force'" not in said
        assert "'mul'" not in said
        assert "'service'" not in said
        assert "--force" in said or "`service`" in said


def test_what_is_told_at_the_console_is_a_command_of_it() -> None:
    lists = [value for value in vars(commands).values() if isinstance(value, tuple)]
    known = {command.name for commands_of in lists for command in commands_of}
    for remedy in _remedies.REMEDIES:
        for words in re.findall(r"`([^`]+)`", remedy.console):
            assert words.split()[0] in known, words


def test_what_is_told_at_the_command_line_is_a_command_of_it() -> None:
    names = {command.name for command in COMMANDS}
    options = _parser.build(COMMANDS).format_help() + "".join(
        text for command in COMMANDS for text in _options(command)
    )
    for remedy in _remedies.REMEDIES:
        for words in re.findall(r"`allosaur ([^`]+)`", remedy.command_line):
            assert words.split()[0] in names, words
        for option in re.findall(r"(?<!\S)--[a-z-]+", remedy.command_line):
            assert option in options, option


def _options(command: Command) -> Iterator[str]:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    yield parser.format_help()


def test_python_keeps_its_own_words() -> None:
    error = STLError(
        "port(s) [0]: must be in service mode, call set_service_mode([0]) first, "
        "or do it in a block of 'with client.service_mode([0]):'"
    )
    assert "set_service_mode([0])" in str(error)
    with _remedies.of_console():
        assert brief(error) == "port(s) [0]: must be in service mode, type `service -p 0` first"
