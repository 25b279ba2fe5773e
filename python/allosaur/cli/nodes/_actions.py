"""The actions of `allosaur node`, one object each, in the order in which they are listed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, ClassVar

from allosaur.cli import _format, _options, _remedies
from allosaur.cli._action import Action
from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.nodes import _add, _batch, _find, _program

if TYPE_CHECKING:
    from allosaur import NSCmds, STLClient

_COLUMNS = ("MAC", "port", "VLAN", "IPv4", "gateway", "IPv6", "namespace")
_SHOWN = 3
"""So many nodes that were added are told one by one."""


class NodeAction(Action["STLClient"]):
    """What follows `allosaur node`."""

    changes: ClassVar[bool] = True
    """Whether it is the owner's of the ports, who has them in service mode."""

    def ports(self, client: STLClient, options: argparse.Namespace) -> list[int]:
        """Return the ports that it is about."""
        return client.get_all_ports() if options.port is None else [options.port]


class Add(NodeAction):
    """`allosaur node add`."""

    name = "add"
    summary = "add a node to a port, or many"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add.arguments(parser)
        _port(parser, "the port that it is on (default: 0)", default=0)

    def check(self, options: argparse.Namespace) -> None:
        _add.check(options)

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        nodes = _add.add(client, options)
        lines = [f"Added node {node.mac} on port {node.port}: {node.namespace}" for node in nodes[:_SHOWN]]
        if len(nodes) > _SHOWN:
            listing = _remedies.command("ns list", "node list")
            lines.append(f"... and {_format.count(len(nodes) - _SHOWN)} more: `{listing}` shows them")
        return Answer("\n".join(lines), {"nodes": [node.fields() for node in nodes]})


class Remove(NodeAction):
    """`allosaur node remove`."""

    name = "remove"
    summary = "remove nodes"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _node(parser, nargs="+")
        _port(parser, "the port that they are on (default: any)")

    def ports(self, client: STLClient, options: argparse.Namespace) -> list[int]:
        options.found = _find.named(client, options.node, options.port)
        return sorted({node.port for node in options.found})

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        from allosaur import NSCmds

        found: list[_find.Node] = options.found
        for port in sorted({node.port for node in found}):
            cmds = NSCmds()
            for node in found:
                if node.port == port:
                    cmds.remove_node(node.mac)
            _batch.done(client, port, cmds)
        lines = [f"Removed node {node.mac} of port {node.port}." for node in found]
        return Answer("\n".join(lines), {"nodes": [{"port": node.port, "mac": node.mac} for node in found]})


class List(NodeAction):
    """`allosaur node list`."""

    name = "list"
    summary = "list nodes, with their addresses and namespaces"
    changes = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _port(parser, "only nodes of this port (default: all)")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        nodes = _find.of_ports(client, self.ports(client, options))
        rows = [_row(node) for node in nodes]
        text = _format.table(_COLUMNS, rows) if rows else "There are no nodes."
        return Answer(text, {"nodes": [node.fields() for node in nodes]})


class Exec(NodeAction):
    """`allosaur node exec`."""

    name = "exec"
    summary = "run a program in the network namespace of a node"
    changes = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _node(parser)
        parser.add_argument(
            "program",
            nargs=argparse.REMAINDER,
            metavar="-- PROGRAM ...",
            help="the program with its arguments, behind --",
        )
        _port(parser, "the port that the node is on (default: any)")

    def check(self, options: argparse.Namespace) -> None:
        words = options.program[1:] if options.program[:1] == ["--"] else options.program
        if not words or words[0].startswith("-"):
            raise bad_input(
                "node exec: write the program behind --, and options before NODE: "
                f"node exec {options.node} -- ip address"
            )
        options.program = words

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        (node,) = _find.named(client, [options.node], options.port)
        ended = _program.run(node.namespace, options.program, keep=options.json)
        fields: dict[str, Any] = {
            "port": node.port,
            "mac": node.mac,
            "namespace": node.namespace,
            "program": options.program,
            "exit_code": ended.exit_code,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
        }
        return Answer("", fields)

    def exit_code(self, answer: Answer) -> int:
        return int(answer.fields["exit_code"])


class Counters(NodeAction):
    """`allosaur node counters`."""

    name = "counters"
    summary = "show the frames and losses of ports' nodes"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _port(parser, "only nodes of this port (default: all)")
        parser.add_argument("--zero", action="store_true", help="show also those that are zero")
        parser.add_argument("--clear", action="store_true", help="let them begin at zero, and show nothing")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        ports = self.ports(client, options)
        if options.clear:
            for port in ports:
                client.set_namespace(port, "clear_counters")
            return Answer("Cleared.", {"cleared": ports})
        found = {port: _counters(client, port, options.zero) for port in ports}
        rows = [
            [str(port), name, _format.count(one["value"]), one["unit"], one["help"]]
            for port, counters in found.items()
            for name, one in counters.items()
        ]
        header = ("port", "counter", "value", "unit", "meaning")
        text = _format.table(header, rows, texts=("counter", "unit", "meaning"))
        values = {
            port: {name: one["value"] for name, one in counters.items()} for port, counters in found.items()
        }
        return Answer(text if rows else "Nothing was counted.", {"counters": values})


class Clear(NodeAction):
    """`allosaur node clear`."""

    name = "clear"
    summary = "remove all nodes and shared namespaces of ports"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _port(parser, "only nodes of this port (default: all)")

    def answer(self, client: STLClient, options: argparse.Namespace) -> Answer:
        removed = {}
        for port in self.ports(client, options):
            removed[port] = len(client.get_ns_nodes(port))
            _batch.done(client, port, _remove_all())
        lines = [f"Port {port}: removed {_format.count(count)} nodes." for port, count in removed.items()]
        return Answer("\n".join(lines), {"removed": removed})


ACTIONS: tuple[NodeAction, ...] = (Add(), Remove(), List(), Exec(), Counters(), Clear())


def _port(parser: argparse.ArgumentParser, text: str, default: int | None = None) -> None:
    parser.add_argument("-p", "--port", type=_options.number, default=default, metavar="N", help=text)


def _node(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    text = "its MAC address, an IP address of it, or the name of its namespace"
    parser.add_argument("node", type=_find.name, nargs=nargs, metavar="NODE", help=text)


def _remove_all() -> NSCmds:
    from allosaur import NSCmds

    cmds = NSCmds()
    cmds.remove_all()
    return cmds


def _row(node: _find.Node) -> list[str]:
    info = node.info
    ipv6 = info["ipv6"].get("src") or ("link-local" if info["ipv6"]["enabled"] else "")
    vlan = ",".join(map(str, info["vlan"]["tags"]))
    ipv4 = info["ipv4"]
    return [node.mac, str(node.port), vlan, ipv4.get("src", ""), ipv4.get("dst", ""), ipv6, node.namespace]


def _counters(client: STLClient, port: int, zeros: bool) -> dict[str, dict[str, Any]]:
    meta = client.set_namespace(port, "counters_get_meta")["result"]["data"]
    values = client.set_namespace(port, "counters_get_values", zeros=zeros)["result"][""]
    return {
        row["name"]: {"value": int(values[str(row["id"])]), "unit": row["units"], "help": row["help"]}
        for row in meta
        if str(row["id"]) in values
    }
