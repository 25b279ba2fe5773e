"""Which words may come next on a line: commands, options, ports, profiles, streams, and files."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from allosaur.cli import _shipped
from allosaur.cli._command import Command
from allosaur.cli.console import _line, _plugins
from allosaur.cli.console._command import ConsoleCommand
from allosaur.cli.console._session import Session


def completions(session: Session, begun: str) -> list[str]:
    """Return what the last word of a line may become."""
    text = begun.rpartition(";")[2].lstrip()
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation is open
        return []
    if not text or text[-1].isspace():
        words.append("")
    *before, last = words
    if not before:
        found = [name for name in session.commands if len(name) > 1 and name != "EOF"]
    elif before[0] == "help":
        found = list(session.commands)
    else:
        command = session.commands.get(before[0])
        found = _of_command(session, command, before[1:], last)
    return [word for word in found if word.startswith(last)]


def _of_command(session: Session, command: Command | None, before: Sequence[str], last: str) -> list[str]:
    if not isinstance(command, ConsoleCommand):
        return []
    parser = _line.parser_of(command)
    values: argparse.Action | None = None
    given = 0
    for word in before:
        options = parser._option_string_actions
        inner = _positional(parser)
        if word in options:
            values, given = options[word], 0
        elif values is not None and _takes_more(values, given):
            given += 1
        elif inner is not None and isinstance(inner.choices, dict) and word in inner.choices:
            parser, values = inner.choices[word], None
    if last.startswith("-"):
        return list(parser._option_string_actions)
    if values is not None and _takes_more(values, given):
        return _values(session, values, last)
    inner = _positional(parser)
    found = _values(session, inner, last) if inner is not None else []
    return found or list(parser._option_string_actions)


def _positional(parser: argparse.ArgumentParser) -> argparse.Action | None:
    return next((action for action in parser._actions if not action.option_strings), None)


def _takes_more(action: argparse.Action, given: int) -> bool:
    """Whether an option that has so many words may have another."""
    if action.nargs == 0:
        return False
    return given == 0 or action.nargs in ("+", "*", argparse.REMAINDER)


def _values(session: Session, action: argparse.Action, last: str) -> list[str]:
    if action.choices is not None:
        return [str(one) for one in action.choices]
    known: dict[str, Callable[[], list[str]]] = {
        "PORT": lambda: _ports(session, with_profiles=action.type is None),
        "ID": lambda: _streams(session),
        "NAME": lambda: _profiles(session),
        "PLUGIN": lambda: [*_plugins.found(), *_files(last)],
        "FILE": lambda: [*_files(last), *_shipped.files()],
        "FILE.py": lambda: _files(last),
    }
    kind = str(action.metavar)
    if not session.is_connected and kind in ("PORT", "ID", "NAME"):
        return []
    return known[kind]() if kind in known else []


def _ports(session: Session, with_profiles: bool) -> list[str]:
    ports = session.client.get_all_ports()
    named = [
        f"{port}.{name}"
        for port in ports
        for name in session.client.get_port(port).profiles
        if with_profiles and name != "_"
    ]
    return [*map(str, ports), *named]


def _streams(session: Session) -> list[str]:
    ports = session.client.get_acquired_ports()
    return [
        str(one) for one in sorted({one for port in ports for one in session.client.get_port(port).streams})
    ]


def _profiles(session: Session) -> list[str]:
    return list(session.flows.get_profiles_state()) if session.mode == "ASTF" else []


def _files(begun: str) -> list[str]:
    """Return the files whose names begin so, folders with a slash."""
    folder, _, start = begun.rpartition("/")
    place = Path(f"{folder}/" if "/" in begun else ".").expanduser()
    try:
        found = sorted(one for one in place.iterdir() if one.name.startswith(start))
    except OSError:
        return []
    shown = [one for one in found if start.startswith(".") or not one.name.startswith(".")]
    before = f"{folder}/" if "/" in begun else ""
    return [f"{before}{one.name}{'/' if one.is_dir() else ''}" for one in shown]
