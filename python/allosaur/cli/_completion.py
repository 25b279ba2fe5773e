"""Which words may come next on a command line: argcomplete asks the parser, for the scripts of shells.

`allosaur completion` prints those scripts. They call `allosaur` itself, with variables of argcomplete's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from allosaur.cli import _parser, _shipped
from allosaur.cli._command import Command

SHELLS = ("bash", "zsh", "fish")


def is_asked() -> bool:
    """Whether a shell asks for words, instead of running a command."""
    return "_ARGCOMPLETE" in os.environ


def answer(
    commands: Iterable[Command], output: TextIO | None = None, leave: Callable[[int], Any] = os._exit
) -> None:
    """Write the words that may come next, to where the shell reads them, and leave the process."""
    import argcomplete
    from argcomplete.completers import SuppressCompleter

    parser = _parser.build(commands)
    for action in _actions(parser):
        completer = _completer(action, parser)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(
        parser,
        always_complete_options=False,  # only behind a dash: the words of a command stand alone
        output_stream=output,
        exit_method=leave,
        default_completer=SuppressCompleter(),
    )


def script(shell: str) -> str:
    """Return what makes a shell ask for words."""
    import argcomplete

    return argcomplete.shellcode(["allosaur"], shell=shell)  # type: ignore[attr-defined]


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


def _completer(action: argparse.Action, parser: argparse.ArgumentParser) -> Callable[..., Any] | None:
    """Return what gives an argument's values, where its name tells; choices give themselves."""
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    files, names = FilesCompleter(), _commands(parser)
    if action.metavar == "PROFILE":
        return lambda prefix, **asked: [*_shipped.files(), *files(prefix, **asked)]
    if action.metavar == "COMMAND" and action.choices is None:
        return lambda **asked: names
    if action.metavar == "FOLDER":
        return DirectoriesCompleter()
    return files if action.metavar == "FILE" else None


def _commands(parser: argparse.ArgumentParser) -> list[str]:
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return list(next(found).choices)
