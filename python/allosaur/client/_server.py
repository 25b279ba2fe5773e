"""What a client asks of the server as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._errors import STLArgumentError, STLError, STLTypeError
from ..metrics import Metrics
from ..rpc._rpc import Rpc
from ._connection import Connection


class Server:
    """Settings of the server, and small questions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def probe_server(self) -> dict[str, Any]:
        """What runs there: ``version``, ``mode`` and when it was built. Needs no ``connect()``.

        Raises ``STLConnectionError`` when nothing answers.
        """
        if self._connection.live is not None:
            return dict(self._connection.session().version)
        transport = self._connection.new_transport()
        try:
            transport.open(self._connection.timeout_s)
            answer: dict[str, Any] = Rpc(
                transport, self._connection.timeout_s, self._connection.task_timeout_s
            ).call("get_version")
            return answer
        finally:
            transport.close()

    def get_status(self) -> dict[str, Any]:
        """Who owns which port, and what runs since when: ``mode``, ``uptime_s``, ``ports``, ``profiles``.

        A port has ``port_id``, ``owner`` (None, or ``user``, ``session_id``, ``lease_s``), ``state`` and
        ``profiles``; a profile ``profile_id``, ``state``, ``streams`` and ``run`` (None, or ``running_s``,
        ``duration_s``, ``multiplier``). Raises ``STLError`` on a server of TRex's, which has no such command.
        """
        if "get_status" not in self._connection.session().supported_commands:
            raise STLError("the server does not tell what runs: it is not a server of Allosaur's")
        status: dict[str, Any] = self._connection.session().rpc.call("get_status")
        return status

    def get_metrics(self, prefixes: Iterable[str] | None = None, *, families: bool = True) -> Metrics:
        """All that the server counts, by the names that Prometheus has for it: ``allosaur_port_packets``.

        With ``prefixes`` only metrics whose names begin with one of them. Counters count from the server's
        start. Without ``families`` it is not told what the metrics are, which makes the answer short. Raises
        ``STLError`` on a server of TRex's, which has no such command.
        """
        if "get_metrics" not in self._connection.session().supported_commands:
            raise STLError("the server does not tell its metrics: it is not a server of Allosaur's")
        wanted = list(prefixes or [])
        reply = self._connection.session().rpc.call("get_metrics", prefixes=wanted, families=families)
        return Metrics.from_reply(reply)

    def set_global_cfg(self, params: dict[str, Any]) -> None:
        """Change settings of the whole server.

        ``sched_max_stretch`` (microseconds) is how late the scheduler may run, ``process_at_cp`` and
        ``do_mbuf_cache`` are for stateful traffic. Raises ``STLError`` for others.
        """
        if not isinstance(params, dict):
            raise STLTypeError("params", type(params), dict)
        self._connection.session().rpc.call("set_global_cfg", **params)

    def get_global_cfg(self) -> dict[str, Any]:
        """The settings of ``set_global_cfg``."""
        settings: dict[str, Any] = self._connection.session().rpc.call("get_global_cfg")
        return settings

    def set_timeout(self, timeout_sec: float) -> None:
        """How long to wait for one answer in seconds, before ``connect()``."""
        if isinstance(timeout_sec, bool) or not isinstance(timeout_sec, (int, float)) or timeout_sec <= 0:
            raise STLArgumentError("timeout_sec", timeout_sec, "more than 0 seconds")
        if self._connection.is_open():
            raise STLError("the timeout can be set only while not connected: call disconnect() first")
        self._connection.timeout_s = float(timeout_sec)

    def server_shutdown(self, force: bool = False) -> None:
        """End the server. ``force`` does it although others own ports."""
        self._connection.session().rpc.call("shutdown", user=self._connection.username, force=force)

    def get_connection_info(self) -> dict[str, Any]:
        """Server, ports and user of the connection."""
        self._connection.session()
        return {
            "username": self._connection.username,
            "server": self._connection.server,
            "sync_port": self._connection.sync_port,
            "async_port": self._connection.async_port,
        }

    def get_server_version(self) -> dict[str, Any]:
        """What the server says of its version."""
        return dict(self._connection.session().version)

    def has_both_modes(self) -> bool:
        """Whether the server has streams on some ports and flows on others; a TRex server has one mode."""
        return len(self._connection.session().version.get("modes", [])) > 1

    def get_server_system_info(self) -> dict[str, Any]:
        """What the server says of its machine, cores and ports."""
        return dict(self._connection.session().system_info)

    def get_server_supported_cmds(self) -> list[str]:
        """The methods that the server knows."""
        return sorted(self._connection.session().supported_commands)
