"""`allosaur doctor`: what this machine has for generating traffic, what it lacks, and what to change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from allosaur.cli import _arguments
from allosaur.cli._command import Command


class Doctor(Command):
    """`allosaur doctor`."""

    name = "doctor"
    summary = "check what this machine has for generating traffic, and say what to change and why"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        kinds = parser.add_argument(
            "--for",
            dest="kinds",
            action="append",
            metavar="KIND",
            help="the kind of ports that must work, such as af_packet or dpdk (network cards); may be given "
            "more than once (default: those in memory and on interfaces)",
        )
        kinds.completer = _kinds  # type: ignore[attr-defined]
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


def _kinds(**asked: Any) -> tuple[str, ...]:
    """Return the kinds of ports, for a shell that completes a word."""
    from allosaur.cli.doctor import _kinds, _server

    return _kinds.names(_server.find().kinds)
