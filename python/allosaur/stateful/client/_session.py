"""A connection to a server for stateful traffic: what its profiles do, kept up to date by events."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from ..._errors import STLConnectionError, STLError
from ...client._port import Port
from ...client._session import Session
from ...rpc._events import EventType


class State(enum.IntEnum):
    """What a profile does; the server as a whole is in the highest state of its profiles."""

    IDLE = 0
    LOADED = 1
    PARSE = 2
    BUILD = 3
    TX = 4
    CLEANUP = 5
    DELETE = 6


#: The names of the states that scripts know.
STATE_NAMES = {
    State.IDLE: "STATE_IDLE",
    State.LOADED: "STATE_ASTF_LOADED",
    State.PARSE: "STATE_ASTF_PARSE",
    State.BUILD: "STATE_ASTF_BUILD",
    State.TX: "STATE_TX",
    State.CLEANUP: "STATE_ASTF_CLEANUP",
    State.DELETE: "STATE_ASTF_DELETE",
}
#: The states in which there is, or may be, traffic.
BUSY = frozenset({State.PARSE, State.BUILD, State.TX, State.CLEANUP})
#: The states between two others, which a profile leaves by itself.
TRANSIENT = frozenset({State.PARSE, State.BUILD, State.CLEANUP, State.DELETE})


class Watch:
    """What happens to a profile while somebody looks: every state, however short."""

    def __init__(self) -> None:
        self.states: list[int] = []
        self.error: str | None = None
        self.is_cleared = False

    @property
    def rests(self) -> bool:
        """Whether the profile came to rest, loaded or not."""
        return self.is_cleared or bool(self.states and self.states[-1] in (State.IDLE, State.LOADED))


class StatefulSession(Session):
    """From connect to disconnect with one server for stateful traffic."""

    api: ClassVar[tuple[str, int, int]] = ("ASTF", 2, 3)
    mode: ClassVar[tuple[str, str]] = ("ASTF", "stateful")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: The key that the server gave for all of it; None while it is not ours.
        self.handler: str | None = None
        self.profiles: dict[str, int] = {}
        self.state: int = State.IDLE
        self.epoch: int = 0
        self._watches: dict[str, list[Watch]] = {}

    def owner_handler(self) -> str:
        """The key of the owner. Raises ``STLError`` when that is not us."""
        if self.handler is None:
            raise STLError("the server is not ours: call acquire() or reset() first")
        return self.handler

    def refresh(self, port: Port) -> None:
        """Read the status of a port."""
        super().refresh(port)
        # What the port does besides its streams is here the stateful traffic, of which events tell.
        with self.changed:
            if port.besides != "PCAP_TX":
                port.besides = "IDLE"

    def sync(self) -> None:
        """Read the states of the profiles."""
        if self._events is None:
            raise STLConnectionError("not connected: call connect() first")
        with self._events.order:
            answer = self.rpc.call("sync", profile_id="sync")
            with self.changed:
                self.state, self.epoch = answer["state"], answer["epoch"]
                self.profiles = dict(answer.get("state_profile") or {})
                self.changed.notify_all()

    @contextmanager
    def watch(self, profile_id: str) -> Iterator[Watch]:
        """See all that happens to a profile for as long as a ``with`` block lasts."""
        one = Watch()
        with self.changed:
            self._watches.setdefault(profile_id, []).append(one)
        try:
            yield one
        finally:
            with self.changed:
                self._watches[profile_id].remove(one)

    def _read_server(self) -> None:
        super()._read_server()
        self.sync()

    def _take_event(self, kind: int, data: dict[str, Any]) -> None:
        port = self.ports.get(int(data.get("port_id", -1)))
        was_ours = port is not None and port.is_acquired
        super()._take_event(kind, data)
        with self.changed:
            is_ours = data.get("session_id") == self.session_id
            if was_ours and (
                (kind == EventType.PORT_ACQUIRED and not is_ours)
                or (kind == EventType.PORT_RELEASED and is_ours)
            ):
                # Somebody else has the mode now, or nobody: there is one owner for all its ports.
                self.handler = None
            elif kind == EventType.STATE_CHANGED:
                self.state, self.epoch = data["state"], data.get("epoch", self.epoch)
            elif kind == EventType.PROFILE_STATE_CHANGED:
                self._take_state(str(data["profile_id"]), data)
            elif kind == EventType.PROFILE_CLEARED:
                self.profiles.pop(str(data["profile_id"]), None)
                for watch in self._watches.get(str(data["profile_id"]), []):
                    watch.is_cleared = True
            else:
                return
            self.changed.notify_all()

    def _take_state(self, profile_id: str, data: dict[str, Any]) -> None:
        self.profiles[profile_id] = data["state"]
        for watch in self._watches.get(profile_id, []):
            watch.states.append(data["state"])
            watch.error = data.get("error") or watch.error
