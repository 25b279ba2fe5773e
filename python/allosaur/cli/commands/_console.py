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
        emulated = parser.add_mutually_exclusive_group()
        emulated.add_argument(
            "--emu",
            action="store_true",
            help=f"emulated clients, too: commands emu_*, on port {_options.EMULATION_PORT} of the same host",
        )
        emulated.add_argument(
            "--emu-server",
            type=_options.emulation_server,
            metavar="HOST[:PORT]",
            help="emulated clients, too, of this server",
        )
        emulated.add_argument(
            "--emu-only-server",
            type=_options.emulation_server,
            metavar="HOST[:PORT]",
            help="emulated clients of this server, and no traffic",
        )
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
            emulation=_emulation(options),
            only_emulation=options.emu_only_server is not None,
        )
        if options.batch is not None:
            _loop.check_batch(options.batch)
        with opened(Target(address.host, address.rpc_port, pub_port), settings, options.mode) as session:
            if options.batch is not None:
                return _loop.batch(options.batch, session)
            return _loop.interactive(session)


def _emulation(options: argparse.Namespace) -> _options.ServerAddress | None:
    """Return where emulated clients are, if the console is for them."""
    if options.emu:
        return _options.ServerAddress(options.server.host, _options.EMULATION_PORT)
    named: _options.ServerAddress | None = options.emu_server or options.emu_only_server
    return named
