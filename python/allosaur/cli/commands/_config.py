"""`allosaur config`: the server's binary writes and checks configuration files; this passes the words on."""

from __future__ import annotations

import argparse
from typing import NoReturn

from allosaur.cli import _arguments, _output
from allosaur.cli._binary import become_server_binary
from allosaur.cli._command import Command


class Config(Command):
    """`allosaur config`."""

    name = "config"
    summary = "write a configuration file for this machine, or check one"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        init = actions.add_parser(
            "init",
            help="write a first file for this machine",
            description="Write a first file for this machine.",
        )
        init.add_argument(
            "file",
            nargs="?",
            default="allosaur.yaml",
            metavar="FILE",
            help="the file to write; - is the standard output (default: %(default)s)",
        )
        init.add_argument("--force", action="store_true", help="write over a file that is there")
        check = actions.add_parser(
            "check",
            help="say whether a file is right",
            description="Say whether a file is right, in our form or TRex's.",
        )
        check.add_argument("file", metavar="FILE", help="the file to read")
        _arguments.json_output(check)

    def run(self, options: argparse.Namespace) -> NoReturn:
        """Let the binary take this process over. Comes back only with an error."""
        words = ["config", options.action]
        if options.action == "init" and options.force:
            words.append("--force")
        if options.action == "check" and options.json:
            words.append("--json")
            _output.become_file(options)
        # Behind --, so that a file may be called anything; - is the standard output.
        become_server_binary([*words, "--", options.file])
