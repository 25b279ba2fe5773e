"""`allosaur clear`: takes profiles off the server."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class Clear(Command):
    """`allosaur clear`."""

    name = "clear"
    summary = "take profiles or streams off the server"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.which_traffic(parser, "take off the server")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)

    def run(self, options: argparse.Namespace) -> int:
        """Take profiles or streams off the server."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.clear(options))
