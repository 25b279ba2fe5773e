"""`allosaur help`: what `--help` prints, by the name of a command."""

from __future__ import annotations

import argparse

from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, EXIT_SETUP


class Help(Command):
    """`allosaur help`."""

    name = "help"
    summary = "explain a command"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("of", metavar="COMMAND", nargs="?", help="tell of this command (default: of all)")

    def run(self, options: argparse.Namespace) -> int:
        """Print what `--help` prints."""
        try:
            options.all_commands.parse_args([*([options.of] if options.of else []), "--help"])
        except SystemExit as stop:  # --help ends this way
            return stop.code if isinstance(stop.code, int) else EXIT_SETUP
        return EXIT_OK
