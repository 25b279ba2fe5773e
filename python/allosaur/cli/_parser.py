"""The parser of the command line: its errors are one line that names what was meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input

SLOGAN = "Allosaur, an open, realistic traffic generator."
_CHOICE = re.compile(
    r"argument (?P<what>\S+): invalid choice: '?(?P<given>.*?)'? \(choose from (?P<names>.*)\)"
)
_CONFLICT = re.compile(r"argument (?P<what>\S+): not allowed with argument (?P<other>\S+)")


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others of this program."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        """Raise :class:`CommandError` with what is wrong, what was meant, and where help is."""
        raise bad_input(f"{self._reworded(message)} (see {self.prog} --help)")

    def refuse_words(self, words: Sequence[str]) -> NoReturn:
        """Raise the error for words that no option and no argument takes."""
        word = words[0]
        if not word.startswith("-"):
            self.error(f"'{word}' is one word too many")
        name = word.partition("=")[0]
        self.error(f"there is no option {name}{nearest(name, self._option_string_actions)}")

    def _reworded(self, message: str) -> str:
        choice, conflict = _CHOICE.fullmatch(message), _CONFLICT.fullmatch(message)
        if choice is not None:
            names = [name.strip("' ") for name in choice["names"].split(",")]
            kind = "command" if choice["what"] in ("COMMAND", "ACTION") else f"value of {choice['what']}"
            meant = nearest(choice["given"], names) or f"; there are {', '.join(names)}"
            return f"there is no {kind} '{choice['given']}'{meant}"
        if conflict is not None:
            return f"{conflict['what']}: not allowed with {conflict['other']}"
        missing = message.partition("the following arguments are required: ")[2]
        if missing:
            return f"{missing} {'are' if ',' in missing else 'is'} missing"
        return message.removeprefix("argument ").replace("expected one argument", "a value is missing")


def build(all_commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Return the parser of these commands; its options know it as `all_commands`."""
    parser: argparse.ArgumentParser = Parser(
        prog="allosaur",
        description=SLOGAN,
        epilog="Begin with `allosaur demo`. Each command explains itself: allosaur help run.",
        parents=[_common()],
    )
    parser.add_argument("--version", action="store_true", help="say which version this is")
    commands: Any = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    parser.set_defaults(all_commands=parser)
    for one in all_commands:
        command = commands.add_parser(
            one.name, help=one.summary, description=one.description, parents=[_common()]
        )
        command.set_defaults(execute=one)
        one.add_arguments(command)
    return parser


def _common() -> argparse.ArgumentParser:
    """Return what may be given before and behind the command, without defaults: neither undoes the other."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--debug", action="store_true", help="on an error, print where in the program it happened"
    )
    common.add_argument(
        "-q", "--quiet", action="store_true", help="print errors only: the exit code tells how it went"
    )
    common.add_argument("--no-color", action="store_true", help="no colors (also by NO_COLOR=1)")
    return common


def nearest(given: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the nearest of the names as a question, for the end of a message; empty when none is near.

    `cutoff` is how near it must be, from 0 to 1 (`difflib`).
    """
    near = difflib.get_close_matches(given, list(names), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]}?" if near else ""
