"""`allosaur node`: Linux nodes of ports, hosts of the kernel; docs/guide/nodes says what they are."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allosaur.cli import _arguments
from allosaur.cli._access import check_ports, remote_client_of_any_mode, service_ports
from allosaur.cli._action import add_actions
from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_OK, explained
from allosaur.cli.nodes._actions import ACTIONS, NodeAction

if TYPE_CHECKING:
    from allosaur import STLClient


class Node(Command):
    """`allosaur node`."""

    name = "node"
    summary = "add Linux nodes to ports, list and remove them, and run programs in them"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_actions(parser, ACTIONS, lambda own: _arguments.server(own, _arguments.FORCE_PORTS))

    def run(self, options: argparse.Namespace) -> int:
        doing: NodeAction = options.doing
        doing.check(options)
        with remote_client_of_any_mode(options) as client:
            if options.port is not None:
                check_ports(client, [options.port], "--port")
            with _owned(client, doing, options), explained(f"node {doing.name}"):
                answer = doing.answer(client, options)
        code = doing.exit_code(answer)
        if options.json:
            result = {"command": self.name, "action": doing.name, "server": str(options.server)}
            print(json.dumps({**result, "ok": code == EXIT_OK, **answer.fields}, indent=2))
        elif answer.text:
            print(answer.text)
        return code


@contextlib.contextmanager
def _owned(client: STLClient, doing: NodeAction, options: argparse.Namespace) -> Iterator[None]:
    """Own the ports whose nodes are changed, in service mode, inside the block."""
    from allosaur import ASTFClient

    if not doing.changes:
        yield
        return
    with explained(f"node {doing.name}"):
        ports = doing.ports(client, options)
    # Stateful mode belongs to one with all of its ports.
    ports = client.get_all_ports() if isinstance(client, ASTFClient) else ports
    with service_ports(client, ports, options.force):
        yield
