"""`allosaur routes`: BGP speakers of a server; docs/guide/routes says what they are."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from allosaur.cli import _arguments
from allosaur.cli._access import remote_client_of_any_mode
from allosaur.cli._action import Action, add_actions
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, explained
from allosaur.cli.routes._actions import ACTIONS

if TYPE_CHECKING:
    from allosaur import STLClient


class Routes(Command):
    """`allosaur routes`."""

    name = "routes"
    summary = "announce routes by BGP to a router, withdraw them, and let them flap"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, lambda own: _arguments.server(own, None))

    def run(self, options: argparse.Namespace) -> int:
        doing: Action[STLClient] = options.doing
        doing.check(options)
        with remote_client_of_any_mode(options) as client, explained(f"routes {doing.name}"):
            answer = doing.answer(client, options)
        if options.json:
            result = {"command": self.name, "action": doing.name, "server": str(options.server)}
            print(json.dumps({**result, "ok": True, **answer.fields}, indent=2))
        else:
            print(answer.text)
        return EXIT_OK
