"""`allosaur config` and `ports`: the server's binary does them; these pass the words on."""

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


class Ports(Command):
    """`allosaur ports`."""

    name = "ports"
    summary = "list what this machine has for ports, or print how to prepare one"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.json_output(parser)
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        prepare = actions.add_parser(
            "prepare",
            help="print the commands that prepare one; none of them is run",
            description="Print the commands that prepare an interface or a network card. "
            "None of them is run.",
        )
        prepare.add_argument("target", metavar="NAME", help="a PCI address, for DPDK, or an interface")
        prepare.add_argument(
            "--driver",
            metavar="DRIVER",
            help="the driver that hands the card to DPDK; with it an interface means its card "
            "(default: vfio-pci)",
        )
        prepare.add_argument(
            "--anyway", action="store_true", help="also for an interface with the machine's default route"
        )

    def run(self, options: argparse.Namespace) -> NoReturn:
        """Let the binary take this process over. Comes back only with an error."""
        words = ["ports"]
        if options.action is None:
            if options.json:
                words.append("--json")
                _output.become_file(options)
        else:
            words.append(options.action)
            if options.driver is not None:
                words.append(f"--driver={options.driver}")
            if options.anyway:
                words.append("--anyway")
            # Behind --, so that an interface may be called anything.
            words += ["--", options.target]
        become_server_binary(words)
