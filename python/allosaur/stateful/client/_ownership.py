"""Who owns a server for stateful traffic: it has one owner, for all ports."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..._errors import STLError
from ...client._ownership import Ownership
from ...client._places import ALL_PROFILES
from ._connection import StatefulConnection
from ._runs import Runs


class StatefulOwnership(Ownership):
    """Owning the server."""

    def __init__(self, connection: StatefulConnection, runs: Runs) -> None:
        super().__init__(connection)
        self._server = connection
        self._runs = runs

    def acquire(  # type: ignore[override]
        self, force: bool = False, lease_s: float | None = None, ports: Sequence[int] | None = None
    ) -> None:
        """Own stateful mode with its ports; ``force`` takes it and them from whoever has them.

        ``ports`` are pairs, such as ``[2, 3]``, of a server that has both modes: others stay stateless.
        Without it we get all ports of the server; when it has both modes and ``force`` is false, all that
        nobody has in stateless mode.

        With ``lease_s``, 1 to 3600, the server stops what this client has started, and is released, when
        it does not hear of the client for so many seconds, because it was killed or cut off. A client that
        is connected is heard by itself.
        Raises ``STLError`` when it belongs to somebody, also when that is us from another place.
        """
        session = self._server.session()
        # What happened to the ports until now must not be taken for something newer.
        session.drain_events()
        who: dict[str, Any] = {"user": self._connection.username, "session_id": session.session_id}
        session.lease_s = lease_s
        if lease_s is not None:
            who["lease_s"] = lease_s
        if ports is not None:
            if "modes" not in session.version:
                raise STLError("ports: a server of TRex's gives all its ports to one owner; leave it out")
            who["ports"] = list(ports)
        answer = session.rpc.call("acquire", force=force, **who)
        with session.changed:
            session.handler = answer["handler"]
            for port in session.ports.values():
                if str(port.port_id) not in answer["ports"] and port.is_acquired:
                    port.give_up()
            for port_id, handler in answer["ports"].items():
                port = self._connection.port(int(port_id))
                port.handler, port.status["owner"] = str(handler), self._connection.username
                port.loss = None
        for profile_id, text in (answer.get("exception") or {}).items():
            self._connection.say(logging.WARNING, f"profile '{profile_id}': {text}")
        session.sync()

    def release(self, force: bool = False) -> None:
        """Own the server no longer. ``force`` is accepted: existing scripts give it."""
        self._server.owned("release")
        session = self._server.session()
        with session.changed:
            session.handler = None
            for port in session.ports.values():
                port.give_up()

    def let_go(self, stop_traffic: bool, release_ports: bool) -> None:
        """Stop all traffic if the server is ours, and release it."""
        if self._server.session().handler is None:
            return
        if stop_traffic:
            super().let_go(stop_traffic, release_ports=False)
            self._runs.stop(pid_input=ALL_PROFILES)
        if release_ports:
            self.release()

    def _what_is_owned(self, ports: list[int]) -> str:
        return "the server"
