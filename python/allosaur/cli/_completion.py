"""Which words may come next on a command line: for shells, by `complete -C allosaur allosaur`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable, Sequence

from allosaur.cli import _parser, _shipped
from allosaur.cli._command import Command


def of_shell(commands: Iterable[Command]) -> list[str] | None:
    """Return the next words, if a shell asks for them in its variables; else `None`."""
    line, point = os.environ.get("COMP_LINE"), os.environ.get("COMP_POINT", "")
    if line is None or not point.isdecimal():
        return None
    begun = line.encode()[: int(point)].decode(errors="replace")
    try:
        words = shlex.split(begun)
    except ValueError:  # a quotation is open
        return []
    if not begun or begun[-1].isspace():
        words.append("")
    return completions(commands, words[1:])


def completions(commands: Iterable[Command], words: Sequence[str]) -> list[str]:
    """Return what the last of these words may become; files are for the shell."""
    *before, last = words or [""]
    parser = _parser.build(commands)
    named = _positional(parser)
    assert named is not None and isinstance(named.choices, dict), "the commands"
    given = next((word for word in before if not word.startswith("-")), None)
    if given == "help":
        found = list(named.choices)
    elif given is None or given in named.choices:
        found = _next(parser if given is None else named.choices[given], before, last)
    else:
        found = []
    return [word for word in found if word.startswith(last)]


def _next(parser: argparse.ArgumentParser, before: Sequence[str], last: str) -> list[str]:
    options = parser._option_string_actions
    behind = options.get(before[-1]) if before else None
    if behind is not None and behind.nargs != 0:
        return _values(behind)
    return list(options) if last.startswith("-") else _values(_positional(parser))


def _positional(parser: argparse.ArgumentParser) -> argparse.Action | None:
    return next((action for action in parser._actions if not action.option_strings), None)


def _values(action: argparse.Action | None) -> list[str]:
    if action is not None and action.choices is not None:
        return [str(one) for one in action.choices]
    return list(_shipped.files()) if action is not None and action.metavar == "PROFILE" else []
