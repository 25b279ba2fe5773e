"""`allosaur update`: changes the rate of traffic that runs."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class Update(Command):
    """`allosaur update`."""

    name = "update"
    summary = "change the rate of traffic that runs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.new_multiplier(parser)
        _arguments.which_traffic(parser, "change")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)

    def run(self, options: argparse.Namespace) -> int:
        """Change the rate of traffic that runs."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.update(options))
