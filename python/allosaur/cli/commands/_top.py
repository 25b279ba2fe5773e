"""`allosaur top`: what a server does, drawn anew every second."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input

if TYPE_CHECKING:
    from allosaur.cli.top._reader import Clients

_INTERVAL_MIN_S = 0.1


class Top(Command):
    """`allosaur top`."""

    name = "top"
    summary = "watch a server: ports, streams, latency, flows, emulated clients, cores"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        _arguments.ports(parser, "to show at first (default: all)")
        add(
            *("-i", "--interval"),
            type=_options.seconds,
            default="1",
            metavar="TIME",
            help="how often to read the server, such as 500ms or 5 (default: 1)",
        )
        add(
            "-r",
            "--readonly",
            action="store_true",
            help="only look: no key acquires ports or changes traffic",
        )
        add("--once", action="store_true", help="print all of it once, and end")
        _arguments.server(parser, force="with the key A, take ports from whoever has them")

    def run(self, options: argparse.Namespace) -> int:
        """Watch until a key, or a signal, ends it."""
        from allosaur.cli.top import _run
        from allosaur.cli.top._source import Source
        from allosaur.cli.top._state import State

        if options.interval < _INTERVAL_MIN_S:
            raise bad_input(f"--interval {options.interval:g}: the server counts no faster than 100ms")
        if options.json_file is not None and not options.once:
            raise bad_input("--json FILE is for one reading: give --once, or redirect the output of --json")
        if not options.json and not options.once:
            _run.check_terminal()
        with contextlib.ExitStack() as connections:
            source = Source(str(options.server), lambda: _connected(options, connections), options.force)
            source.open()
            state = State(readonly=options.readonly, ports=options.ports)
            if options.json:
                if options.once:
                    return _run.one_document(source)
                return _run.documents(source, str(options.server), options.interval)
            return (
                _run.once(source, state)
                if options.once
                else _run.on_terminal(source, state, options.interval)
            )


def _connected(options: argparse.Namespace, connections: contextlib.ExitStack) -> Clients:
    """Return connections to the server, in each of its modes; those that were there before end."""
    from allosaur import ASTFClient
    from allosaur.cli._access import check_ports, remote_client_of_any_mode, remote_stateful_client
    from allosaur.cli.top._reader import Clients

    connections.close()
    client = connections.enter_context(remote_client_of_any_mode(options))
    if options.ports is not None:
        check_ports(client, options.ports)
    if isinstance(client, ASTFClient):
        return Clients(flows=client)
    flows = None
    if client.has_both_modes():
        flows = connections.enter_context(remote_stateful_client(options))
    return Clients(client, flows)
