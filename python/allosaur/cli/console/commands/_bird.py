"""`bird`: the routing daemon of the server, by the actions of `allosaur bird`."""

from __future__ import annotations

import argparse

from allosaur.cli import _options
from allosaur.cli._action import add_actions
from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, explained
from allosaur.cli.bird._actions import ACTIONS, BirdAction
from allosaur.cli.console._command import ConsoleCommand
from allosaur.cli.console._session import Session


class Bird(ConsoleCommand):
    """`bird`."""

    name = "bird"
    summary = "show the server's routing daemon BIRD, and give it another configuration"
    example = "bird set routes.conf"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, _common_arguments)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        from allosaur.bird import PyBirdClient

        doing: BirdAction = options.doing
        doing.check(options)
        if doing.changes and session.settings.readonly:
            raise CommandError(f"bird {doing.name}: this console is read-only; `acquire` takes the ports")
        client = PyBirdClient(session.target.host, options.bird_port)
        with explained(f"bird {doing.name}"):
            client.connect()
            try:
                return doing.answer(client, options)
            finally:
                client.disconnect()


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bird-port",
        type=int,
        default=_options.BIRD_PORT,
        metavar="PORT",
        help=f"the server's port for BIRD (default: {_options.BIRD_PORT})",
    )
