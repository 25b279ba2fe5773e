"""What a client does with Linux nodes: hosts of the server's kernel on the network of a port."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._errors import STLArgumentError, STLError, STLTimeoutError, STLTypeError
from ._connection import Connection
from ._node_commands import NSCmdResult, NSCmds
from ._places import Ports

#: How often it is asked how far a batch is: at first, and at most. A short one is done at once.
_INTERVAL_S, _INTERVAL_MAX_S = 0.01, 0.5
#: So many of the commands that failed are told.
_ERRORS_TOLD = 3


class Namespaces:
    """Batches of commands for nodes, one at a time on each port."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        #: Of each port, the ticket of the batch that is being done.
        self._tickets: dict[int, int] = {}
        #: Of each port, results that were fetched and not taken yet.
        self._results: dict[int, list[Any]] = {}

    def set_namespace_start(self, port: int, ns_cmds: NSCmds) -> None:
        """Have a batch for the nodes of a port done; ``wait_for_async_results`` gives the results.

        The port must be in service mode. Raises ``STLError``.
        """
        if not isinstance(ns_cmds, NSCmds):
            raise STLTypeError("ns_cmds", type(ns_cmds), NSCmds)
        self._connection.service_ports([port])
        params = self._connection.owned_params(port, batch=ns_cmds.get_json_str(), block=False)
        reply = self._connection.session().rpc.call("conf_ns_batch", **params)
        self._tickets[port] = int(reply["ticket_id"])
        self._results.pop(port, None)

    def wait_for_async_results(
        self, port: int, timeout: float | None = None, cb: Callable[[dict[str, Any]], None] | None = None
    ) -> list[Any]:
        """Wait for the results of a batch: None or ``{"result": ...}`` of each command.

        After ``timeout`` seconds the batch is cancelled. ``cb`` is told now and then how far it is: a dict
        with ``total_cmds``, ``exec_cmds`` and ``errs_cmds``. Raises ``STLError`` when a command failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        intervals = _intervals_s()
        while (progress := self._ask(port)) is not None:
            if cb is not None:
                cb(progress)
            if deadline is not None and time.monotonic() >= deadline:
                self.cancel_async_task(port)
                raise STLTimeoutError(timeout or 0.0, f"the batch of nodes of port {port}")
            time.sleep(next(intervals))
        return _checked(self._results.pop(port))

    def cancel_async_task(self, port: int) -> None:
        """End the batch of a port: of its commands those that were not begun are not done."""
        self._connection.session().rpc.call("cancel_async_task", ticket_id=self._ticket(port))
        del self._tickets[port]

    def get_ns_nodes(self, port: int) -> list[dict[str, Any]]:
        """All nodes of a port, whoever owns it, as ``NSCmds.get_nodes_info`` tells them.

        A server of TRex's tells them to the owner of the port only, in service mode.
        """
        session = self._connection.session()
        if "get_ns_nodes" not in session.supported_commands:
            macs = self.set_namespace(port, "get_nodes")["result"]["nodes"]
            told = self.set_namespace(port, "get_nodes_info", macs_list=macs)
            return list(told["result"]["nodes"])
        ticket = session.rpc.call("get_ns_nodes", port_id=port)["ticket_id"]
        intervals = _intervals_s()
        while isinstance(reply := session.rpc.call("get_async_results", ticket_id=ticket), dict):
            time.sleep(next(intervals))
        (told,) = _checked(reply)
        return list(told["result"]["nodes"])

    def is_async_results_ready(self, port: int) -> bool:
        """Whether the results of a batch are there."""
        return self._ask(port) is None

    def set_namespace(self, port: int, method: str, **args: Any) -> Any:
        """Have one command done, a method of ``NSCmds`` with its arguments; gives its result."""
        cmds = NSCmds()
        add = getattr(cmds, method, None)
        if add is None or method.startswith("_"):
            raise STLArgumentError("method", method, "a method of NSCmds such as 'get_nodes'")
        add(**args)
        self.set_namespace_start(port, cmds)
        return self.wait_for_async_results(port)[0]

    def namespace_remove_all(self, ports: Ports = None) -> None:
        """Remove all nodes of ports; without ``ports`` of all that are ours."""
        for port in self._connection.service_ports(ports):
            self.set_namespace(port, "remove_all")

    def set_bird_node(
        self,
        node_port: int,
        mac: str,
        ipv4: str | None = None,
        ipv4_subnet: int | None = None,
        ipv6_enabled: bool | None = None,
        ipv6: str | None = None,
        ipv6_subnet: int | None = None,
        vlans: int | Sequence[int] | None = None,
        tpids: int | Sequence[int] | None = None,
        mtu: int | None = None,
    ) -> None:
        """Add a node in the namespace of BIRD: an interface of BIRD's on the network of a port.

        A node that is there already, and is the same, stays. The server must have BIRD (``--bird-server``),
        and the port must be in service mode. Raises ``STLError``.
        """
        if (ipv4 is None) != (ipv4_subnet is None):
            raise STLError("give ipv4 and ipv4_subnet, or neither")
        if self._has_bird_node(node_port, mac, ipv4, ipv4_subnet):
            return
        cmds = NSCmds()
        cmds.add_node(mac, is_bird=True)
        if ipv4 is not None:
            cmds.set_ipv4(mac, ipv4, subnet=ipv4_subnet, shared_ns=True)
        if ipv6_enabled is not None:
            cmds.set_ipv6(mac, ipv6_enabled, src_ipv6=ipv6, subnet=ipv6_subnet, shared_ns=True)
        if vlans is not None:
            cmds.set_vlan(mac, vlans, tpids)
        if mtu is not None:
            cmds.set_mtu(mac, mtu)
        self.set_namespace_start(node_port, cmds)
        self.wait_for_async_results(node_port)

    def _has_bird_node(self, port: int, mac: str, ipv4: str | None, ipv4_subnet: int | None) -> bool:
        """Whether BIRD has this node. Raises ``STLError`` when the node is another."""
        told = {node["ether"]["src"]: node for node in self.get_ns_nodes(port)}
        node = told.get(mac.lower())
        if node is None:
            return False
        has = node["is_bird"], node["ipv4"].get("src"), node["ipv4"].get("subnet")
        if has == (True, ipv4, ipv4_subnet):
            return True
        raise STLError(f"port {port} has a node {mac} already, and it is another: remove_node removes it")

    def _ask(self, port: int) -> dict[str, Any] | None:
        """How far the batch of a port is; None when its results are there."""
        if port in self._results:
            return None
        reply = self._connection.session().rpc.call("get_async_results", ticket_id=self._ticket(port))
        if isinstance(reply, dict):
            return reply
        self._results[port] = reply
        del self._tickets[port]
        return None

    def _ticket(self, port: int) -> int:
        ticket = self._tickets.get(port)
        if ticket is None:
            raise STLError(f"port {port} has no batch of nodes to wait for: start one first")
        return ticket


def _intervals_s() -> Iterator[float]:
    """How long to wait before each time that it is asked how far a batch is."""
    interval = _INTERVAL_S
    while True:
        yield interval
        interval = min(2 * interval, _INTERVAL_MAX_S)


def _checked(results: list[Any]) -> list[Any]:
    """Return results. Raises ``STLError`` when a command failed."""
    errors = NSCmdResult(results).errors()
    if not errors:
        return results
    more = len(errors) - _ERRORS_TOLD
    raise STLError("; ".join(errors[:_ERRORS_TOLD]) + (f"; and {more} more" if more > 0 else ""))
