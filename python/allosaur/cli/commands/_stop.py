"""`allosaur stop`: ends traffic, whoever started it."""

from __future__ import annotations

import argparse

from allosaur.cli import _answer
from allosaur.cli._access import refuse_options, remote_client_of_any_mode, take
from allosaur.cli._answer import Answer
from allosaur.cli._errors import explained
from allosaur.cli.flows import _commands
from allosaur.cli.streams._ports import chosen, loaded_ports, sending_ports


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur stop` says; return the exit code."""
    with remote_client_of_any_mode(options) as client:
        if client.get_mode() == "ASTF":
            refuse_options(options, "streams", "ports")
            return _answer.give(options, _commands.stop(client, options))
        refuse_options(options, "stateful profiles", "pid")
        running = chosen(client, options, sending_ports)
        cleared = chosen(client, options, loaded_ports) if options.clear else []
        both = sorted({*running, *cleared})
        if both:
            take(client, both, options.force)
        if running:
            with explained("cannot stop the traffic"):
                client.stop(ports=[f"{port}.*" for port in running])
        if cleared:
            with explained("cannot remove the streams"):
                client.remove_all_streams(ports=[f"{port}.*" for port in cleared])
    text = f"Stopped {_answer.listed(running, 'port')}." if running else "Nothing ran."
    if options.clear:
        text += f" Removed the streams of {_answer.listed(cleared, 'port')}." if cleared else ""
    return _answer.give(options, Answer(text, {"stopped": running, "cleared": cleared}))
