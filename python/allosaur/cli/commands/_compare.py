"""`allosaur compare`: two results of `allosaur run` or `ndr`, and whether the second is worse."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command


class Compare(Command):
    """`allosaur compare`."""

    name = "compare"
    summary = "compare two results of `allosaur run` or `ndr`: exit code 1 when the second is worse"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("before", metavar="A.json", help="a result, written by `--out`")
        parser.add_argument("after", metavar="B.json", help="another, of the same command and profile")
        parser.add_argument(
            "--tolerance",
            type=_options.share,
            metavar="SHARE",
            help="the difference that says nothing (default: 5%% of runs; of limits, their precision)",
        )
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Compare, and say what changed."""
        from allosaur.cli.compare._command import run

        return run(options)
