"""What a client does with Linux nodes: hosts of the server's kernel on the network of a port."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

from .._errors import STLArgumentError, STLError, STLTimeoutError, STLTypeError
from ._connection import Connection
from ._node_commands import NSCmdResult, NSCmds
from ._places import Ports

#: How often it is asked how far a batch is: at first, and at most. A short one is done at once.
_INTERVAL_S, _INTERVAL_MAX_S = 0.01, 0.5


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
        interval = _INTERVAL_S
        while (progress := self._ask(port)) is not None:
            if cb is not None:
                cb(progress)
            if deadline is not None and time.monotonic() >= deadline:
                self._connection.session().rpc.call("cancel_async_task", ticket_id=self._tickets.pop(port))
                raise STLTimeoutError(timeout or 0.0, f"the batch of nodes of port {port}")
            time.sleep(interval)
            interval = min(2 * interval, _INTERVAL_MAX_S)
        results = self._results.pop(port)
        if errors := NSCmdResult(results).errors():
            raise STLError("; ".join(errors))
        return results

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
        ticket = self._tickets.get(port)
        if ticket is None:
            raise STLError(f"port {port} has no batch of nodes to wait for: start one first")
        reply = self._connection.session().rpc.call("get_async_results", ticket_id=ticket)
        if isinstance(reply, dict):
            return reply
        self._results[port] = reply
        del self._tickets[port]
        return None
