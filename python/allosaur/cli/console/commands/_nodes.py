"""`ns`: Linux nodes of our ports, by the actions of `allosaur node`."""

from __future__ import annotations

import argparse

from allosaur.cli._action import add_actions
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_OK, CommandError, explained
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import ConsoleCommand
from allosaur.cli.console._session import Session
from allosaur.cli.nodes._actions import ACTIONS, NodeAction


class Ns(ConsoleCommand):
    """`ns`."""

    name = "ns"
    summary = "add Linux nodes to ports, list and remove them, and run programs in them"
    example = "ns add 02:00:00:00:00:01 -p 0 --ipv4 192.0.2.1/24"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, lambda _: None)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        doing: NodeAction = options.doing
        options.json = session.settings.json
        doing.check(options)
        if doing.changes:
            if session.settings.readonly:
                raise CommandError(f"ns {doing.name}: this console is read-only; `acquire` takes the ports")
            _arguments.owned(session, doing.ports(session.client, options))
        with explained(f"ns {doing.name}"):
            answer = doing.answer(session.client, options)
        if (code := doing.exit_code(answer)) != EXIT_OK and not options.json:
            raise CommandError(f"ns {doing.name}: it ended with exit code {code}", code)
        return answer
