"""What follows a command that has several actions, such as `allosaur emu load`: one object each."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_OK

Client = TypeVar("Client")


class Action(ABC, Generic[Client]):
    """An action, by its name; it is done with a client of its kind."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the arguments of the action."""

    def check(self, options: argparse.Namespace) -> None:
        """Refuse wrong options before anything is asked. Raises :class:`CommandError`."""
        return

    @abstractmethod
    def answer(self, client: Client, options: argparse.Namespace) -> Answer:
        """Do it; return what to print. Raises :class:`CommandError` or `STLError`."""

    def exit_code(self, answer: Answer) -> int:
        """Return how the command ends."""
        return EXIT_OK


def add_actions(
    parser: argparse.ArgumentParser,
    actions: Iterable[Action[Any]],
    common: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Let a parser take one of the actions, which `options.doing` is then; `common` adds what all have."""
    parsers = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for one in actions:
        summary = f"{one.summary[0].upper()}{one.summary[1:]}."
        own = parsers.add_parser(one.name, help=one.summary, description=summary)
        own.set_defaults(doing=one)
        one.add_arguments(own)
        common(own)
