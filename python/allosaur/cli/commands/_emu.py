"""`allosaur emu`: emulated clients of a server; what they are is in docs/guide/emulation."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from allosaur.cli import _arguments
from allosaur.cli._action import Action, add_actions
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK
from allosaur.cli.emulation import _access
from allosaur.cli.emulation._actions import ACTIONS

if TYPE_CHECKING:
    from allosaur import EMUClient


class Emu(Command):
    """`allosaur emu`."""

    name = "emu"
    summary = "load emulated clients, show them, what they count and whom they reach"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, _common_arguments)

    def run(self, options: argparse.Namespace) -> int:
        doing: Action[EMUClient] = options.doing
        doing.check(options)
        if getattr(options, "dry_run", False):
            print(json.dumps(options.loaded.to_json(), indent=2))
            return EXIT_OK
        with _access.connected(options.server) as client:
            answer = doing.answer(client, options)
        code = doing.exit_code(answer)
        if options.json:
            result = {"command": self.name, "action": doing.name, "server": str(options.server)}
            print(json.dumps({**result, "ok": code == EXIT_OK, **answer.fields}, indent=2))
        else:
            print(answer.text)
        return code


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    _access.server_arguments(parser)
    _arguments.json_output(parser)
