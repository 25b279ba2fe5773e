"""`allosaur stats`: what traffic counts, while it runs and after it."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class Stats(Command):
    """`allosaur stats`."""

    name = "stats"
    summary = "show what traffic counts"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--pid",
            metavar="NAME",
            help="the stateful profile whose counters to show (default: the sum of all)",
        )
        _arguments.ports(parser, "whose counters to show (default: all)")
        parser.add_argument("--counters", action="store_true", help="show every counter that is not zero")
        parser.add_argument(
            "--groups",
            action="store_true",
            help="show the packet groups, or the template groups of the profile",
        )
        parser.add_argument("--flows", action="store_true", help="show what TCP knows of each flow")
        parser.add_argument(
            "--latency", action="store_true", help="show what streams or echo requests measure"
        )
        parser.add_argument(
            "--metrics",
            nargs="*",
            metavar="PREFIX",
            help="show instead what the server's registry has, of the metrics whose names begin so, such as "
            "port_missed: all that /metrics tells, without HTTP (default: every metric)",
        )
        _arguments.server(parser, force=None)

    def run(self, options: argparse.Namespace) -> int:
        """Show what traffic counts."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.stats(options))
