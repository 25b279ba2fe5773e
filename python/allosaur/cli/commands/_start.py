"""`allosaur start`: traffic that goes on when this program has ended."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class Start(Command):
    """`allosaur start`."""

    name = "start"
    summary = "start a profile on a server, and come back"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser)
        _arguments.multiplier(parser, "5mpps, 1gbps, 40%%")
        _arguments.duration_and_tunables(parser, default_duration="forever")
        _arguments.ports(parser, "that send streams (default: 0)")
        _arguments.flows(parser)
        parser.add_argument(
            "--record-flows",
            type=_options.seconds,
            metavar="TIME",
            help="record what TCP knows of each flow, so often; `allosaur stats --flows` shows it",
        )
        _arguments.server(parser, force=_arguments.FORCE_SERVER)
        _arguments.emu_port(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Start a profile of streams, of flows or of emulated clients."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.start(options))
