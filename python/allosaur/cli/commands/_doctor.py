"""`allosaur doctor`: what this machine has for generating traffic, what it lacks, and what to change."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _arguments
from allosaur.cli._command import Command


class Doctor(Command):
    """`allosaur doctor`."""

    name = "doctor"
    summary = "check what this machine has for generating traffic, and say what to change and why"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from allosaur.cli.doctor._finding import KINDS

        parser.add_argument(
            "--for",
            dest="kinds",
            action="append",
            choices=KINDS,
            help="the kind of ports that must work; may be given more than once (default: memory and "
            "af_packet). dpdk means network cards",
        )
        parser.add_argument(
            "--root",
            type=Path,
            default=Path("/"),
            metavar="FOLDER",
            help="look at the machine whose / is there, or at a copy of its /proc and /sys (default: /)",
        )
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Look, and tell."""
        from allosaur.cli.doctor._command import run

        return run(options)
