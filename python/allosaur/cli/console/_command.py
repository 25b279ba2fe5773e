"""A command of the console: an object of the command line's shape that also knows its session."""

from __future__ import annotations

import argparse
import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from allosaur.cli._answer import Answer
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, EXIT_SETUP, CommandError
from allosaur.cli.console._session import Session

DONE = "[SUCCESS]"
_COLUMN = 60


class ConsoleCommand(Command):
    """A command of the console. `options.session` is the console's session."""

    group: ClassVar[str] = "Common"
    """The heading under which `help` lists it."""
    example: str
    """A whole line that works."""
    changes: ClassVar[bool] = False
    """Whether a read-only console refuses it."""
    needs_server: ClassVar[bool] = True
    raw_words: ClassVar[bool] = False
    """Whether quotes stay in its words, as in `pkt -s Ether()/IP(src="16.0.0.1")`."""

    def run(self, options: argparse.Namespace) -> int:
        """Do it and print what it answers."""
        session: Session = options.session
        if self.needs_server:
            _ = session.client
        if self.changes and session.settings.readonly:
            raise CommandError(f"{self.name}: this console is read-only; `acquire` takes the ports")
        answer = self.answer(session, options)
        if session.settings.json:
            print(json.dumps({"command": self.name, "ok": True, **_plain(answer.fields)}), flush=True)
        elif answer.text and not session.settings.quiet:
            print(answer.text, flush=True)
        return EXIT_OK

    @abstractmethod
    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        """Do it; return what to print. Raises :class:`CommandError` or `STLError`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the arguments; most commands of a kind have none."""


@dataclass
class NotYet(ConsoleCommand):
    """A command of TRex's console for a part that is not here yet: it takes any words, says so, and fails."""

    name: str
    summary: str
    instead: str
    group = "Not yet here"
    needs_server = False

    def __post_init__(self) -> None:
        self.example = self.name

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        """Say that it is not here."""
        raise CommandError(f"{self.name}: not here yet; {self.instead}", EXIT_SETUP)


def done(what: str, **fields: Any) -> Answer:
    """Return the answer of a command that did something: one line, as scripts for TRex look for it."""
    return Answer(f"{what:<{_COLUMN}}{DONE}", fields)


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it: what it does not know becomes its text."""
    return json.loads(json.dumps(value, default=str))
