"""`allosaur stop`: ends traffic, whoever started it."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments
from allosaur.cli._access import answer_by_mode
from allosaur.cli._command import Command


class Stop(Command):
    """`allosaur stop`."""

    name = "stop"
    summary = "stop traffic"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.which_traffic(parser, "stop")
        parser.add_argument("--clear", action="store_true", help="take it off the server, too")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)

    def run(self, options: argparse.Namespace) -> int:
        """Stop traffic."""
        from allosaur.cli.flows import _commands as flows
        from allosaur.cli.streams import _commands as streams

        return answer_by_mode(options, streams.stop, flows.stop)
