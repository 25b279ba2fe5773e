"""An action of `allosaur emu`: all that is known of one, in one object."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_OK

if TYPE_CHECKING:
    from allosaur import EMUClient


class Action(ABC):
    """What follows `allosaur emu`."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the arguments of the action."""

    def check(self, options: argparse.Namespace) -> None:
        """Refuse wrong options before anything is asked. Raises :class:`CommandError`."""
        return

    @abstractmethod
    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        """Do it; return what to print. Raises :class:`CommandError` or `STLError`."""

    def exit_code(self, answer: Answer) -> int:
        """Return how the command ends."""
        return EXIT_OK
