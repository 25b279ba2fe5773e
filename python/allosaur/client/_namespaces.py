"""What a client does with Linux nodes: hosts of the server's kernel on the network of a port."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

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

    def set_bird_node(self, node_port: int, mac: str, **args: Any) -> NoReturn:
        """BIRD routing daemons in namespaces are not supported: raises ``STLError``."""
        raise STLError(
            "set_bird_node is not supported by this server: it has no BIRD. A routing daemon runs in "
            "a node's namespace (NSCmds.add_node), which `ip netns exec` enters"
        )

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
