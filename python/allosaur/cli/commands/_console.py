"""`allosaur console`: commands line by line, by TRex's names, on a server that stays connected."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command


class Console(Command):
    """`allosaur console`."""

    name = "console"
    summary = "open a console on a server, with TRex's commands"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        modes = parser.add_mutually_exclusive_group()
        modes.add_argument("--stateless", dest="mode", action="store_const", const="STL", help="send streams")
        modes.add_argument("--stateful", dest="mode", action="store_const", const="ASTF", help="open flows")
        owned = parser.add_mutually_exclusive_group()
        owned.add_argument(
            "--ports", type=_options.port_list, metavar="N,...", help="the ports to own (default: all)"
        )
        owned.add_argument("-r", "--readonly", action="store_true", help="own no ports, only look")
        add(
            "-b", "--batch", metavar="FILE", help="do the lines of this file and end; - is the standard input"
        )
        add("-v", "--verbose", action="store_true", help="print each request and each reply")
        _arguments.server_address(parser)
        _arguments.pub_port(parser)
        add("--force", action="store_true", help=_arguments.FORCE_PORTS)
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Connect, do lines, and disconnect."""
        from allosaur.cli.console import _loop
        from allosaur.cli.console._session import Settings, Target, opened

        address = options.server
        pub_port = options.pub_port if options.pub_port is not None else address.rpc_port - 1
        settings = Settings(
            ports=options.ports,
            force=options.force,
            readonly=options.readonly,
            json=options.json,
            quiet=options.quiet,
            verbose=options.verbose,
        )
        if options.batch is not None:
            _loop.check_batch(options.batch)
        with opened(Target(address.host, address.rpc_port, pub_port), settings, options.mode) as session:
            if options.batch is not None:
                return _loop.batch(options.batch, session)
            return _loop.interactive(session)
