"""What the parts of a client share: its settings, the session while there is one, and its ports."""

from __future__ import annotations

import getpass
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .._errors import STLArgumentError, STLConnectionError, STLError, STLRpcError
from ..rpc._credentials import credentials_for
from ..rpc._events import Event
from ..rpc._rpc import Call, decode
from ..rpc._transport import Transport, ZmqTransport
from ._places import ALL_PROFILES, PortProfileID, Ports, numbers, place, places
from ._port import Port, PortProfile
from ._session import Session, at_place

LEVELS = {
    "none": logging.CRITICAL + 1,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_TIMEOUT_S = 3.0
_TASK_TIMEOUT_S = 30.0


class Connection:
    """A connection to a server, or the settings for one; it has the session while there is one."""

    def __init__(
        self,
        username: str | None,
        server: str,
        sync_port: int,
        async_port: int,
        verbose_level: str,
        logger: logging.Logger | None,
        sync_timeout: float | None,
        async_timeout: float | None,
        transport: Transport | None,
        rpc_auth: Path | str | None = None,
    ) -> None:
        if verbose_level not in LEVELS:
            raise STLArgumentError("verbose_level", verbose_level, list(LEVELS))
        self.username = username if username is not None else _current_user()
        self.server = server
        self.sync_port = sync_port
        self.async_port = async_port
        self.logger = logger if logger is not None else logging.getLogger("allosaur.client")
        self.level = LEVELS[verbose_level]
        self.timeout_s = _TIMEOUT_S if sync_timeout is None else float(sync_timeout)
        self.task_timeout_s = _TASK_TIMEOUT_S if async_timeout is None else float(async_timeout)
        self._own_transport = transport
        self._rpc_auth = rpc_auth
        self.live: Session | None = None
        #: The events of the last session, once it has ended.
        self.last_log: list[Event] = []

    def open(self, kind: type[Session], begin: Callable[[Session], None]) -> None:
        """Begin a session, and do what else begins with it.

        Raises ``STLError``; the message says where it looked and what to do.
        """
        transport = self.new_transport()
        session = kind(transport, self.username, self.timeout_s, self.task_timeout_s)
        session.rpc.trace = self._trace
        self.say(logging.INFO, f"connecting to {transport.address}")
        session.open()
        try:
            begin(session)
        except BaseException:
            session.close()
            raise
        self.live = session

    def close(self) -> None:
        """End the session, and keep its events."""
        session, self.live = self.live, None
        if session is not None:
            self.last_log = session.log.events()
            session.close()

    def is_open(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self.live is not None and self.live.lost_reason is None

    def acquired_ports(self) -> list[int]:
        """The ports that this client owns."""
        ports = self.live.ports if self.live is not None else {}
        return [port_id for port_id, port in ports.items() if port.is_acquired]

    def new_transport(self) -> Transport:
        """A way to the server, not yet open."""
        if self._own_transport is not None:
            return self._own_transport
        credentials = credentials_for(self.server, self._rpc_auth)
        return ZmqTransport(self.server, self.sync_port, self.async_port, credentials)

    def say(self, level: int, text: str) -> None:
        """Write to the log, if it is told so much."""
        if level >= self.level:
            self.logger.log(level, text)

    def _trace(self, kind: str, frame: bytes) -> None:
        """Write a message to the log at level "debug", as TRex's client does: programs read that."""
        if self.level > logging.DEBUG:
            return
        title = "Sending Request To Server:" if kind == "request" else "Server Response:"
        try:
            text = json.dumps(decode(frame), indent=4, separators=(",", ": "), sort_keys=True)
        except ValueError:  # the call itself will say what is wrong with it
            text = repr(frame)
        self.say(logging.DEBUG, f"\n\n[verbose] {title}\n\n{text}\n")

    def session(self) -> Session:
        """The session. Raises ``STLConnectionError`` when there is none."""
        if self.live is None:
            raise STLConnectionError("not connected: call connect() first")
        if self.live.lost_reason is not None:
            raise STLConnectionError(
                f"the server at {self.live.transport.address} went away "
                f"({self.live.lost_reason}): connect() again"
            )
        return self.live

    def ports_of(self, ports: Ports, default: Callable[[], list[int]], owned: bool = True) -> list[int]:
        """The port numbers of a ``ports`` argument. Raises ``STLError``."""
        chosen = default() if ports is None else numbers(ports)
        self.check_ports(chosen, owned)
        return list(dict.fromkeys(chosen))

    def places_of(self, ports: Ports, default: Callable[[], list[PortProfileID]]) -> list[PortProfileID]:
        """The profiles of our ports that a ``ports`` argument names. Raises ``STLError``.

        Without ``ports`` they are those of ``default``. "0.*" is all profiles that have streams.
        """
        if ports is None:
            self.session()
            return default()
        named = places(ports)
        self.check_ports([one.port_id for one in named], owned=True)
        chosen: list[PortProfileID] = []
        for one in named:
            known = dict(self.port(one.port_id).profiles)
            if one.profile_id == ALL_PROFILES:
                chosen += [place(one.port_id, name) for name, profile in known.items() if profile.is_loaded]
            elif one.profile_id in known:
                chosen.append(one)
            else:
                shown = ", ".join(f"'{one.port_id}.{name}'" for name in sorted(known))
                raise STLArgumentError("ports", str(one), f"a profile of the port: {shown}")
        return list(dict.fromkeys(chosen))

    def check_ports(self, chosen: list[int], owned: bool) -> None:
        """Refuse ports that the server does not have, or that are not ours. Raises ``STLError``."""
        session = self.session()
        for port_id in chosen:
            if port_id not in session.ports:
                known = ", ".join(str(port) for port in session.ports)
                raise STLArgumentError("ports", port_id, f"ports of the server: {known}")
        if owned and (foreign := [port_id for port_id in chosen if not session.ports[port_id].is_acquired]):
            raise STLError(f"port(s) {foreign}: must be acquired, call acquire() or reset() first")

    def our_places(self, wanted: Callable[[PortProfile], bool]) -> list[PortProfileID]:
        """The profiles of our ports of which something holds."""
        return [
            place(port_id, name)
            for port_id in self.acquired_ports()
            for name, profile in list(self.port(port_id).profiles.items())
            if wanted(profile)
        ]

    def port(self, port_id: int) -> Port:
        """What is known of a port."""
        return self.session().ports[port_id]

    def profile(self, where: PortProfileID) -> PortProfile:
        """What is known of a profile of a port."""
        return self.port(where.port_id).profile(where.profile_id)

    def service_ports(self, ports: Ports) -> list[int]:
        """Ports of ours that are in service mode. Raises ``STLError`` when one is not."""
        chosen = self.ports_of(ports, self.acquired_ports)
        without = [port for port in chosen if not self.port(port).is_service]
        if without:
            raise STLError(
                f"port(s) {without}: must be in service mode, call set_service_mode({without}) first, "
                f"or do it in a block of 'with client.service_mode({without}):'"
            )
        return chosen

    def ping(self) -> dict[str, Any]:
        """The server's time, ``{"ts": seconds}``. Raises ``STLError`` when it does not answer."""
        answer: dict[str, Any] = self.session().rpc.call("ping")
        return answer

    def all_ports(self) -> list[int]:
        """All ports of the server."""
        return list(self.session().ports)

    def refresh(self, ports: Iterable[int]) -> None:
        """Read the state of ports from the server."""
        for port_id in ports:
            self.session().refresh(self.port(port_id))

    def owned_params(self, port_id: int, **params: Any) -> dict[str, Any]:
        """The parameters of a request that only the owner of a port may make."""
        return {"handler": self.port(port_id).handler, "port_id": port_id, **params}

    def each(self, method: str, ports: Iterable[int], **params: Any) -> list[Any]:
        """The same request for each of our ports. Raises the first refusal, after all were made."""
        ports = list(ports)
        return self.all([(method, self.owned_params(port, **params)) for port in ports], ports)

    def each_place(self, method: str, chosen: Iterable[PortProfileID], **params: Any) -> list[Any]:
        """The same request for each profile. Raises the first refusal, after all were made."""
        chosen = list(chosen)
        calls = [
            (method, self.owned_params(one.port_id, profile_id=one.profile_id, **params)) for one in chosen
        ]
        return self.all(calls, chosen)

    def all(self, calls: Sequence[Call], where: Sequence[int | PortProfileID]) -> list[Any]:
        """Requests at once, and what each is about. Raises the first refusal, after all were made."""
        if not calls:
            return []
        replies = self.session().rpc.batch(calls)
        for one, reply in zip(where, replies, strict=True):
            if isinstance(reply.error, STLRpcError):
                raise at_place(reply.error, one)
        return [reply.result for reply in replies]


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
