"""A command of the command line: all that is known of one, in one object."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import ClassVar


class Command(ABC):
    """A command, by its name; the parser and the console go through the list of them.

    `run` imports what it needs beyond the standard library, so that `allosaur --help` answers at once.
    """

    name: str
    summary: str
    """What it does, as a list of commands says it."""
    is_result: ClassVar[bool] = False
    """Whether what it prints is what it was asked for, which `--quiet` leaves alone."""

    @property
    def description(self) -> str:
        """What it does, as a sentence."""
        return f"{self.summary[0].upper()}{self.summary[1:]}."

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the arguments of the command."""

    @abstractmethod
    def run(self, options: argparse.Namespace) -> int:
        """Do what the command says; return the exit code. Raises :class:`CommandError`."""
