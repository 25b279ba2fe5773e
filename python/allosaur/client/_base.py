"""The client's connection, its settings, and how it reads a ``ports`` argument."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from .._errors import STLArgumentError, STLConnectionError, STLError, STLRpcError
from ..rpc._events import Event
from ..rpc._rpc import Call
from ..rpc._transport import Transport, ZmqTransport
from ._places import ALL_PROFILES, PortProfileID, Ports, numbers, place, places
from ._port import Port, PortProfile
from ._session import Session, at_place

_TIMEOUT_S = 3.0
_TASK_TIMEOUT_S = 30.0
_LEVELS = {
    "none": logging.CRITICAL + 1,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


class ClientBase:
    """Connecting, disconnecting, the event log."""

    CORE_MASK_SPLIT = 1
    CORE_MASK_PIN = 2
    CORE_MASK_SINGLE = 3

    _session_kind: ClassVar[type[Session]] = Session

    def __init__(
        self,
        username: str | None = None,
        server: str = "localhost",
        sync_port: int = 4501,
        async_port: int = 4500,
        verbose_level: str = "error",
        logger: logging.Logger | None = None,
        sync_timeout: float | None = None,
        async_timeout: float | None = None,
        transport: Transport | None = None,
    ) -> None:
        if verbose_level not in _LEVELS:
            raise STLArgumentError("verbose_level", verbose_level, list(_LEVELS))
        self.username = username if username is not None else _current_user()
        self._server = server
        self._sync_port = sync_port
        self._async_port = async_port
        self._logger = logger if logger is not None else logging.getLogger("allosaur.client")
        self._level = _LEVELS[verbose_level]
        self._timeout_s = _TIMEOUT_S if sync_timeout is None else float(sync_timeout)
        self._task_timeout_s = _TASK_TIMEOUT_S if async_timeout is None else float(async_timeout)
        self._own_transport = transport
        self._live: Session | None = None
        self._last_log: list[Event] = []

    def __enter__(self) -> Any:
        self.connect()
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()

    def connect(self) -> None:
        """Connect to the server. Raises ``STLError``; the message says where it looked and what to do."""
        self.disconnect()
        transport = self._new_transport()
        session = self._session_kind(transport, self.username, self._timeout_s, self._task_timeout_s)
        self._say(logging.INFO, f"connecting to {transport.address}")
        session.open()
        self._live = session

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Stop the traffic of the ports that are ours, release them, and disconnect.

        Does nothing when not connected. A server that is gone is no error here.
        """
        if self._live is None:
            return
        session, owned = self._live, self.get_acquired_ports()
        try:
            if session.lost_reason is None:
                if stop_traffic:
                    active = [port for port in owned if session.ports[port].is_active]
                    self._each("stop_traffic", active, profile_id=ALL_PROFILES)
                if release_ports:
                    self._each("release", owned)
                session.drain_events()
        except STLError as error:
            self._say(logging.WARNING, f"while disconnecting: {error}")
        finally:
            self._last_log = session.log.events()
            self._live = None
            session.close()

    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._live is not None and self._live.lost_reason is None

    def ping_rpc_server(self) -> dict[str, Any]:
        """The server's time, ``{"ts": seconds}``. Raises ``STLError`` when it does not answer."""
        answer: dict[str, Any] = self._session().rpc.call("ping")
        return answer

    def server_shutdown(self, force: bool = False) -> None:
        """End the server. ``force`` does it although others own ports."""
        self._session().rpc.call("shutdown", user=self.username, force=force)

    def get_connection_info(self) -> dict[str, Any]:
        """Server, ports and user of the connection."""
        self._session()
        return {
            "username": self.username,
            "server": self._server,
            "sync_port": self._sync_port,
            "async_port": self._async_port,
        }

    def get_server_version(self) -> dict[str, Any]:
        """What the server says of its version."""
        return dict(self._session().version)

    def get_server_system_info(self) -> dict[str, Any]:
        """What the server says of its machine, cores and ports."""
        return dict(self._session().system_info)

    def get_server_supported_cmds(self) -> list[str]:
        """The methods that the server knows."""
        return sorted(self._session().supported_commands)

    def get_events(self, ev_type_filter: str | list[str] | None = None) -> list[Event]:
        """What happened since connect, oldest first; optionally only 'info' or 'warning'."""
        if self._live is None:
            wanted = [ev_type_filter] if isinstance(ev_type_filter, str) else ev_type_filter
            return [event for event in self._last_log if not wanted or event.ev_type in wanted]
        return self._live.log.events(ev_type_filter)

    def get_warnings(self) -> list[Event]:
        """The warnings since connect."""
        return self.get_events("warning")

    def get_info(self) -> list[Event]:
        """The events that are not warnings."""
        return self.get_events("info")

    def clear_events(self) -> None:
        """Forget the events."""
        self._last_log = []
        if self._live is not None:
            self._live.log.clear()

    def pop_event(self) -> Event | None:
        """Take the oldest event out of the log."""
        return self._live.log.pop() if self._live is not None else None

    def has_events(self) -> bool:
        """Whether the log has events that ``pop_event`` would give."""
        return bool(self.get_events())

    @property
    def logger(self) -> logging.Logger:
        """The logger that the client writes to."""
        return self._logger

    def get_verbose(self) -> str:
        """How much is written to the logger: what ``set_verbose`` set."""
        return next(name for name, level in _LEVELS.items() if level == self._level)

    def set_verbose(self, level: str) -> None:
        """How much is written to the logger: none, critical, error, warning, info or debug."""
        if level not in _LEVELS:
            raise STLArgumentError("level", level, list(_LEVELS))
        self._level = _LEVELS[level]

    def get_acquired_ports(self) -> list[int]:
        """The ports that this client owns."""
        ports = self._live.ports if self._live is not None else {}
        return [port_id for port_id, port in ports.items() if port.is_acquired]

    def _new_transport(self) -> Transport:
        return self._own_transport or ZmqTransport(self._server, self._sync_port, self._async_port)

    def _say(self, level: int, text: str) -> None:
        if level >= self._level:
            self._logger.log(level, text)

    def _session(self) -> Session:
        if self._live is None:
            raise STLConnectionError("not connected: call connect() first")
        if self._live.lost_reason is not None:
            raise STLConnectionError(
                f"the server at {self._live.transport.address} went away "
                f"({self._live.lost_reason}): connect() again"
            )
        return self._live

    def _ports(self, ports: Ports, default: Callable[[], list[int]], owned: bool = True) -> list[int]:
        """The port numbers of a ``ports`` argument. Raises ``STLError``."""
        chosen = default() if ports is None else numbers(ports)
        self._check_ports(chosen, owned)
        return list(dict.fromkeys(chosen))

    def _places(self, ports: Ports, default: Callable[[], list[PortProfileID]]) -> list[PortProfileID]:
        """The profiles of our ports that a ``ports`` argument names. Raises ``STLError``.

        Without ``ports`` they are those of ``default``. "0.*" is all profiles that have streams.
        """
        if ports is None:
            self._session()
            return default()
        named = places(ports)
        self._check_ports([one.port_id for one in named], owned=True)
        chosen: list[PortProfileID] = []
        for one in named:
            known = dict(self._port(one.port_id).profiles)
            if one.profile_id == ALL_PROFILES:
                chosen += [place(one.port_id, name) for name, profile in known.items() if profile.is_loaded]
            elif one.profile_id in known:
                chosen.append(one)
            else:
                shown = ", ".join(f"'{one.port_id}.{name}'" for name in sorted(known))
                raise STLArgumentError("ports", str(one), f"a profile of the port: {shown}")
        return list(dict.fromkeys(chosen))

    def _check_ports(self, chosen: list[int], owned: bool) -> None:
        session = self._session()
        for port_id in chosen:
            if port_id not in session.ports:
                known = ", ".join(str(port) for port in session.ports)
                raise STLArgumentError("ports", port_id, f"ports of the server: {known}")
        if owned and (foreign := [port_id for port_id in chosen if not session.ports[port_id].is_acquired]):
            raise STLError(f"port(s) {foreign}: must be acquired, call acquire() or reset() first")

    def _our_places(self, wanted: Callable[[PortProfile], bool]) -> list[PortProfileID]:
        """The profiles of our ports of which something holds."""
        return [
            place(port_id, name)
            for port_id in self.get_acquired_ports()
            for name, profile in list(self._port(port_id).profiles.items())
            if wanted(profile)
        ]

    def _port(self, port_id: int) -> Port:
        return self._session().ports[port_id]

    def _profile(self, where: PortProfileID) -> PortProfile:
        return self._port(where.port_id).profile(where.profile_id)

    def _owned_params(self, port_id: int, **params: Any) -> dict[str, Any]:
        return {"handler": self._port(port_id).handler, "port_id": port_id, **params}

    def _each(self, method: str, ports: Iterable[int], **params: Any) -> list[Any]:
        """The same request for each of our ports. Raises the first refusal, after all were made."""
        ports = list(ports)
        return self._all([(method, self._owned_params(port, **params)) for port in ports], ports)

    def _each_place(self, method: str, chosen: Iterable[PortProfileID], **params: Any) -> list[Any]:
        """The same request for each profile. Raises the first refusal, after all were made."""
        chosen = list(chosen)
        calls = [
            (method, self._owned_params(one.port_id, profile_id=one.profile_id, **params)) for one in chosen
        ]
        return self._all(calls, chosen)

    def _all(self, calls: list[Call], where: Sequence[int | PortProfileID]) -> list[Any]:
        if not calls:
            return []
        replies = self._session().rpc.batch(calls)
        for one, reply in zip(where, replies, strict=True):
            if isinstance(reply.error, STLRpcError):
                raise at_place(reply.error, one)
        return [reply.result for reply in replies]


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
