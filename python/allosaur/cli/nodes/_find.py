"""Nodes by what people call them: a MAC address, an IP address, or the name of a namespace."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _options, _remedies
from allosaur.cli._errors import bad_input

if TYPE_CHECKING:
    from allosaur import STLClient

_NAMED_MAX = 5
"""So many nodes are named where several are meant."""


@dataclass(frozen=True)
class Node:
    """A node of a port, with what the server tells of it."""

    port: int
    info: Mapping[str, Any]

    @property
    def mac(self) -> str:
        """Its MAC address."""
        return str(self.info["ether"]["src"])

    @property
    def namespace(self) -> str:
        """The name of its namespace."""
        return str(self.info["linux-ns"])

    def names(self) -> Iterator[str]:
        """All that it may be called."""
        yield self.mac
        yield self.namespace
        for family in ("ipv4", "ipv6"):
            if address := self.info[family].get("src"):
                yield str(ipaddress.ip_address(address))

    def fields(self) -> dict[str, Any]:
        """The node as JSON has it."""
        return {"port": self.port, **self.info}


def of_ports(client: STLClient, ports: Sequence[int] | None = None) -> list[Node]:
    """Return the nodes of ports, or of all."""
    chosen = client.get_all_ports() if ports is None else ports
    return [Node(port, info) for port in chosen for info in client.get_ns_nodes(port)]


def named(client: STLClient, names: Sequence[str], port: int | None) -> list[Node]:
    """Return the node of each name, on a port or on any. Raises :class:`CommandError`."""
    nodes = of_ports(client, None if port is None else [port])
    return [_one(nodes, name, port) for name in dict.fromkeys(names)]


def name(text: str) -> str:
    """Read the name of a node, in the form in which it is compared."""
    try:
        return _options.address(text)
    except argparse.ArgumentTypeError:
        return text.strip().lower()


def _one(nodes: Sequence[Node], name: str, port: int | None) -> Node:
    found = [node for node in nodes if name in node.names()]
    where = "no port" if port is None else f"port {port}"
    if not found:
        a = "a" if port is None else "no"
        raise bad_input(
            f"{where} has {a} node {name}: give its MAC address, an IP address of it or the name of its "
            f"namespace, as `{_remedies.command('ns list', 'node list')}` shows them"
        )
    if len(found) > 1:
        told = ", ".join(f"{node.mac} on port {node.port}" for node in found[:_NAMED_MAX])
        more = ", ..." if len(found) > _NAMED_MAX else ""
        raise bad_input(f"{len(found)} nodes are {name} ({told}{more}): give a MAC address, with --port")
    return found[0]
