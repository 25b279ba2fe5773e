"""`allosaur update`: changes the rate of traffic that runs."""

from __future__ import annotations

import argparse

from allosaur.cli import _answer
from allosaur.cli._access import refuse_options, remote_client_of_any_mode, take
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_USAGE, CommandError, explained
from allosaur.cli.flows import _commands
from allosaur.cli.streams._ports import chosen, sending_ports


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur update` says; return the exit code."""
    with remote_client_of_any_mode(options) as client:
        if client.get_mode() == "ASTF":
            refuse_options(options, "streams", "ports")
            return _answer.give(options, _commands.update(client, options))
        refuse_options(options, "stateful profiles", "pid")
        running = chosen(client, options, sending_ports)
        if not running:
            raise CommandError("nothing runs; start a profile with `allosaur start PROFILE`")
        take(client, running, options.force)
        with explained("cannot change the rate", EXIT_USAGE):
            client.update(ports=running, mult=options.multiplier, force=options.force)
    word = _answer.listed(running, "Port")
    return _answer.give(
        options,
        Answer(
            f"{word}: now at {options.multiplier}.", {"updated": running, "multiplier": options.multiplier}
        ),
    )
