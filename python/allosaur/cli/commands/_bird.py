"""`allosaur bird`: the routing daemon of a server; docs/guide/bird says what it is."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from allosaur.cli import _arguments, _options
from allosaur.cli._action import Action, add_actions
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, explained
from allosaur.cli.bird._actions import ACTIONS

if TYPE_CHECKING:
    from allosaur.bird import PyBirdClient


class Bird(Command):
    """`allosaur bird`."""

    name = "bird"
    summary = "show BIRD of a server, and give it another configuration"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, _common_arguments)

    def run(self, options: argparse.Namespace) -> int:
        from allosaur.bird import PyBirdClient

        doing: Action[PyBirdClient] = options.doing
        doing.check(options)
        client = PyBirdClient(options.server.host, options.server.rpc_port)
        with explained(f"bird {doing.name}"):
            client.connect()
            try:
                answer = doing.answer(client, options)
            finally:
                client.disconnect()
        if options.json:
            result = {"command": self.name, "action": doing.name, "server": str(options.server)}
            print(json.dumps({**result, "ok": True, **answer.fields}, indent=2))
        else:
            print(answer.text)
        return EXIT_OK


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        type=_options.bird_server,
        default=_options.bird_server("localhost"),
        metavar="HOST[:PORT]",
        help=f"the server, by its port for BIRD (default: localhost:{_options.BIRD_PORT})",
    )
    _arguments.json_output(parser)
