"""`allosaur clear`: takes profiles off the server."""

from __future__ import annotations

import argparse

from allosaur.cli import _answer
from allosaur.cli._access import names, refuse_options, remote_client_of_any_mode, take
from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, explained
from allosaur.cli.flows import _commands
from allosaur.cli.streams._ports import chosen, loaded_ports, sending_ports


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur clear` says; return the exit code."""
    with remote_client_of_any_mode(options) as client:
        if client.get_mode() == "ASTF":
            refuse_options(options, "streams", "ports")
            return _answer.give(options, _commands.clear(client, options))
        refuse_options(options, "stateful profiles", "pid")
        running = chosen(client, options, sending_ports)
        if running:
            raise CommandError(f"port {names(running)} sends; stop it first: `allosaur stop --clear`")
        cleared = chosen(client, options, loaded_ports)
        if cleared:
            take(client, cleared, options.force)
            with explained("cannot remove the streams"):
                client.remove_all_streams(ports=[f"{port}.*" for port in cleared])
    text = f"Removed the streams of {_answer.listed(cleared, 'port')}." if cleared else "No port has streams."
    return _answer.give(options, Answer(text, {"cleared": cleared}))
