"""`allosaur demo`: the whole path at once, with nothing to set up."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command


class Demo(Command):
    """`allosaur demo`."""

    name = "demo"
    summary = "start a server, send traffic both ways, check it, and write a report"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--seconds",
            type=_options.duration_s,
            default=10.0,
            metavar="S",
            help="how long to send (default: 10)",
        )
        parser.add_argument(
            "--rate",
            type=_options.rate_pps,
            metavar="RATE",
            help="how fast each port sends (default: 200kpps of IMIX, or less on a slow machine)",
        )
        parser.add_argument(
            "--report",
            default="report.html",
            metavar="FILE",
            help="where to write the report (default: %(default)s)",
        )
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Send, check and report."""
        from allosaur.cli.demo._run import run

        return run(options)
