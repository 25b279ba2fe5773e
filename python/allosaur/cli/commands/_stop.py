"""`allosaur stop`: ends traffic, whoever started it."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class Stop(Command):
    """`allosaur stop`."""

    name = "stop"
    summary = "stop traffic"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = _arguments.which_traffic(parser, "stop")
        which.add_argument("--emu", action="store_true", help="all emulated clients: they are removed")
        parser.add_argument("--clear", action="store_true", help="take it off the server, too")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)
        _arguments.emu_port(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Stop traffic."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.stop(options))
