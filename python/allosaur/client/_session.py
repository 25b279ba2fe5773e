"""A connection: the handshake, the ports, and the state that events keep up to date."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from .._errors import STLConnectionError, STLRpcError, WrongModeError
from ..rpc._events import EventLog, EventPump, EventType, describe
from ..rpc._rpc import Rpc
from ..rpc._transport import Transport
from ..rpc.types.ports import PortStatus
from ._places import DEFAULT_PROFILE, PortProfileID
from ._port import Port, PortLoss

#: A signal that comes when a thread is about to wait wakes nobody: Ctrl-C is seen after this.
_WAIT_MAX_S = 0.5


class Session:
    """From connect to disconnect with one server."""

    #: The API that this client speaks, with its version; the server accepts it or says what it has.
    api: ClassVar[tuple[str, int, int]] = ("STL", 5, 1)
    #: The mode of the servers that this is for, and the traffic of it in words.
    mode: ClassVar[tuple[str, str]] = ("STL", "stateless")

    def __init__(self, transport: Transport, username: str, timeout_s: float, task_timeout_s: float) -> None:
        self.transport = transport
        self.username = username
        self.session_id = random.SystemRandom().randint(1, (1 << 32) - 1)
        self.rpc = Rpc(transport, timeout_s, task_timeout_s)
        self.log = EventLog()
        self.ports: dict[int, Port] = {}
        self.version: dict[str, Any] = {}
        self.system_info: dict[str, Any] = {}
        self.supported_commands: frozenset[str] = frozenset()
        #: Why the connection is gone, if it is.
        self.lost_reason: str | None = None
        #: When that was noticed.
        self.lost_at = 0.0
        #: After how many seconds without a word of ours the server releases what we have, if it does.
        self.lease_s: float | None = None
        # Guards the ports' states; told whenever one changes.
        self.changed = threading.Condition()
        self._timeout_s = timeout_s
        self._events: EventPump | None = None

    def open(self) -> None:
        """Shake hands with the server. Raises ``STLConnectionError`` or ``STLRpcError``."""
        try:
            self.transport.open(self._timeout_s)
            self.rpc.api_handle = self._agree()
            self._events = EventPump(
                self.rpc, self.transport, self.session_id, self._take_event, self._take_loss
            )
            self._events.start()
            self._read_server()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the thread and close the sockets."""
        if self._events is not None:
            self._events.stop()
            self._events = None
        self.transport.close()

    def drain_events(self) -> None:
        """Handle what the server has to tell, now: after it, no old event is on its way."""
        if self._events is not None:
            self._events.drain()

    def wait(self, done: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``done`` after a change of the ports' states; False when the time is over.

        Raises ``STLConnectionError`` when the server goes away.
        """
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        with self.changed:
            while not (finished := self.lost_reason is not None or done()):
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    break
                self.changed.wait(min(left_s, _WAIT_MAX_S))
        if self.lost_reason is not None and not done():
            raise STLConnectionError(f"the server at {self.transport.address} went away: {self.lost_reason}")
        return finished

    def refresh(self, port: Port) -> None:
        """Read the status of a port."""
        if self._events is None:
            raise STLConnectionError("not connected: call connect() first")
        with self._events.order:
            status: PortStatus = self.rpc.call(
                "get_port_status", port_id=port.port_id, profile_id="*", block=False
            )
            with self.changed:
                port.take_status(dict(status))
                self.changed.notify_all()

    @property
    def group_ports(self) -> list[int]:
        """The ports whose packet groups the server counts: none where it has no packet groups."""
        return list(self.ports) if "get_active_pgids" in self.supported_commands else []

    def _agree(self) -> str:
        """The key of the server's API. Raises ``WrongModeError`` when it is for another kind of traffic."""
        name, major, minor = self.api
        try:
            key: str = self.rpc.call("api_sync_v2", name=name, major=major, minor=minor)["api_h"]
            return key
        except STLRpcError as error:
            if "configuration mismatch" not in error.text:
                raise
            other = "STLClient" if name == "ASTF" else "ASTFClient"
            raise WrongModeError(
                f"the server is not for {self.mode[1]} traffic ({error.text}): use {other}, or start a "
                f"server that is",
                is_stateful=name != "ASTF",
            ) from error

    def _read_server(self) -> None:
        self.version = self.rpc.call("get_version")
        mode, traffic = self.mode
        theirs = self.version.get("mode", "STL")
        if theirs != mode:
            raise WrongModeError(
                f"the server runs in {theirs} mode: this client is for {traffic} traffic",
                is_stateful=theirs == "ASTF",
            )
        self.system_info = self.rpc.call("get_system_info")
        self.supported_commands = frozenset(self.rpc.call("get_supported_cmds"))
        facts = {int(info["index"]): info for info in self.system_info.get("ports", [])}
        for index in range(int(self.system_info["port_count"])):
            self.ports[index] = Port(index, facts.get(index, {"index": index}))
            self.refresh(self.ports[index])

    def _take_event(self, kind: int, data: dict[str, Any]) -> None:
        self.log.add(*describe(kind, data, self.session_id), origin="server")
        if kind == EventType.SERVER_STOPPED:
            self._take_loss(f"it stopped: {data.get('cause', 'no cause given')}")
        port = self.ports.get(data.get("port_id", -1))
        if port is None or kind not in {event.value for event in EventType}:
            return
        event = EventType(kind)
        with self.changed:
            if event is EventType.PORT_ACQUIRED and data.get("session_id") != self.session_id:
                self._lose(port, PortLoss(str(data.get("who", "")), data.get("session_id", 0), time.time()))
                port.status["owner"] = data.get("who", "")
            elif event is EventType.PORT_ACQUIRED:
                port.status["owner"] = self.username
            elif event is EventType.PORT_RELEASED:
                if data.get("session_id") == self.session_id:
                    self._lose(port, PortLoss(None, self.session_id, time.time()))
                port.status["owner"] = ""
            links = len(port.link_changes)
            port.take_event(event, data)
            if len(port.link_changes) > links:
                change = port.link_changes[-1]
                self.log.add(
                    f"the link of port {port.port_id} {change.words}",
                    "info" if change.is_up and change.mtu is None else "warning",
                    origin="server",
                )
            self.changed.notify_all()

    def _lose(self, port: Port, loss: PortLoss) -> None:
        if port.is_acquired:
            port.handler, port.loss = None, loss

    def _take_loss(self, reason: str) -> None:
        self.log.add(f"lost the server: {reason}", "warning")
        with self.changed:
            self.lost_at = time.time()
            self.lost_reason = reason
            self.changed.notify_all()


def at_place(error: STLRpcError, where: int | PortProfileID, what: str = "") -> STLRpcError:
    """The server's refusal, saying which port (and profile, when it has a name) it was about."""
    if isinstance(where, PortProfileID) and where.profile_id == DEFAULT_PROFILE:
        where = where.port_id
    return STLRpcError(error.method, error.code, error.text, where=f"port {where}{what}: ")
