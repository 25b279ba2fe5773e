"""The server's events: a thread that waits for the notification and fetches what happened.

What an event means for a port is for the client, which is called event by event, in order. There is no
polling: the server publishes a frame when something happened, and the thread fetches the events by an
ordinary request. A lost connection is noticed by the socket's monitor.
"""

from __future__ import annotations

import atexit
import enum
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._errors import STLConnectionError
from ._rpc import Rpc
from ._transport import Signal, Transport

_EVENTS_KEPT = 10_000
_SUBSCRIBE_TIMEOUT_S = 5.0
_SUBSCRIBE_RETRY_S = 0.02
_EXIT_TIMEOUT_S = 2.0


class EventType(enum.IntEnum):
    """The events of the protocol that this client knows."""

    PORT_STARTED = 0
    PORT_STOPPED = 1
    PORT_PAUSED = 2
    PORT_RESUMED = 3
    PORT_FINISHED = 4
    PORT_ACQUIRED = 5
    PORT_RELEASED = 6
    PORT_ERROR = 7
    PORT_ATTRIBUTE = 8
    PROFILE_STARTED = 10
    PROFILE_STOPPED = 11
    PROFILE_PAUSED = 12
    PROFILE_RESUMED = 13
    PROFILE_FINISHED = 14
    PROFILE_ERROR = 17
    STATE_CHANGED = 50
    PROFILE_STATE_CHANGED = 60
    PROFILE_CLEARED = 61
    SERVER_STOPPED = 100


_PORT_WORDS = {
    EventType.PORT_STARTED: "has started",
    EventType.PORT_STOPPED: "has stopped",
    EventType.PORT_PAUSED: "has paused",
    EventType.PORT_RESUMED: "has resumed",
    EventType.PORT_FINISHED: "job done",
    EventType.PORT_ERROR: "reported an error",
    EventType.PORT_ATTRIBUTE: "changed its attributes",
}
_PROFILE_WORDS = {
    EventType.PROFILE_STARTED: "has started",
    EventType.PROFILE_STOPPED: "has stopped",
    EventType.PROFILE_PAUSED: "has paused",
    EventType.PROFILE_RESUMED: "has resumed",
    EventType.PROFILE_FINISHED: "job done",
    EventType.PROFILE_ERROR: "reported an error",
}
#: The states of a server for stateful traffic and of its profiles, by number.
STATE_WORDS = ("Idle", "Loaded", "Parsing", "Building", "Transmitting", "Cleaning up", "Deleting")
_STATE_EVENTS = {EventType.STATE_CHANGED, EventType.PROFILE_STATE_CHANGED, EventType.PROFILE_CLEARED}
_WARNINGS = {EventType.PORT_ERROR, EventType.PROFILE_ERROR, EventType.SERVER_STOPPED}


@dataclass(frozen=True)
class Event:
    """One line of the log: ``origin`` is server or local, ``ev_type`` is info, warning or error."""

    msg: str
    ev_type: str = "info"
    origin: str = "server"
    ts: float = field(default_factory=time.time)

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.ts))
        origin, kind = f"[{self.origin}]", f"[{self.ev_type}]"
        return f"{when} - {origin:<8}{kind:<10} - {self.msg}"


class EventLog:
    """The last events, oldest first. Safe to use from several threads."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self._lock = threading.Lock()

    def add(self, msg: str, ev_type: str = "info", origin: str = "local") -> None:
        """Write a line."""
        with self._lock:
            self._events.append(Event(msg, ev_type, origin))

    def events(self, ev_type_filter: str | list[str] | None = None) -> list[Event]:
        """All events, or those of the given types."""
        wanted = [ev_type_filter] if isinstance(ev_type_filter, str) else ev_type_filter
        with self._lock:
            return [event for event in self._events if not wanted or event.ev_type in wanted]

    def pop(self) -> Event | None:
        """Take the oldest event out."""
        with self._lock:
            return self._events.popleft() if self._events else None

    def clear(self) -> None:
        """Forget all events."""
        with self._lock:
            self._events.clear()


class EventPump:
    """Brings events from the server to the client, in order.

    ``on_event`` is called with the kind and the data of each event, ``on_lost`` once when the
    server went away. Both are called in the pump's thread, or in the thread that calls ``drain``.
    """

    def __init__(
        self,
        rpc: Rpc,
        transport: Transport,
        session_id: int,
        on_event: Callable[[int, dict[str, Any]], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._rpc = rpc
        self._transport = transport
        self._session_id = session_id
        self._on_event = on_event
        self._on_lost = on_lost
        #: Held while something of the server's state is read and taken over, so that what was read
        #: first is also taken over first.
        self.order = threading.RLock()
        self._heard = threading.Event()
        self._subscription = transport.subscribe()
        self._thread = threading.Thread(target=self._run, name="allosaur-events", daemon=True)

    def start(self) -> None:
        """Start the thread and return when the server's frames arrive.

        A subscription takes a moment to reach the server; what is published before is not heard.
        So the server is asked to publish until a frame came. Raises ``STLConnectionError`` when
        none comes.
        """
        # A script that ends without `disconnect()`: the thread must be gone before ZeroMQ closes its sockets.
        atexit.register(self._end_with_program)
        self._thread.start()
        deadline = time.monotonic() + _SUBSCRIBE_TIMEOUT_S
        while not self._heard.is_set():
            self._rpc.call("publish_now", key=self._session_id, baseline=False)
            self._heard.wait(_SUBSCRIBE_RETRY_S)
            if time.monotonic() > deadline:
                raise STLConnectionError(
                    f"the server at {self._transport.address} answers, but nothing arrives from its "
                    f"publisher: give the server's --pub-port as async_port, and see that no firewall "
                    f"blocks it"
                )

    def stop(self) -> None:
        """End the thread."""
        atexit.unregister(self._end_with_program)
        self._subscription.close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def drain(self) -> None:
        """Fetch and handle the events that the server holds for this session, now."""
        with self.order:
            answer = self._rpc.call("get_async_events", session_id=self._session_id, user="sub")
            for event in (answer or {}).get("data") or []:
                if event.get("name") == "trex-event":
                    self._on_event(int(event.get("type", -1)), event.get("data") or {})

    def _end_with_program(self) -> None:
        self._subscription.close()
        # It may wait for a server that does not answer; a program that ends waits only so long for it.
        self._thread.join(_EXIT_TIMEOUT_S)

    def _run(self) -> None:
        while (signal := self._subscription.receive()) is not Signal.CLOSED:
            # After a lost connection a request shows whether the server is still there.
            self._heard.set()
            try:
                self.drain()
            except Exception as error:
                # A busy server may be slow to answer: the next frame tries again. Everything else
                # would leave the client deaf, and must be known to whoever waits for an event.
                if isinstance(error, STLConnectionError) and signal is Signal.FRAME:
                    continue
                self._on_lost(str(error) or type(error).__name__)
                return


def describe(kind: int, data: dict[str, Any], session_id: int) -> tuple[str, str]:
    """The text and the type (info, warning) of an event; ``session_id`` is who "you" is."""
    try:
        event = EventType(kind)
    except ValueError:
        return f"the server reported an event of unknown kind {kind}", "warning"
    port = data.get("port_id")
    level = "warning" if event in _WARNINGS else "info"
    if event in _PORT_WORDS:
        return f"Port {port} {_PORT_WORDS[event]}", level
    if event in _PROFILE_WORDS:
        return f"Profile {port}.{data.get('profile_id')} {_PROFILE_WORDS[event]}", level
    if event in _STATE_EVENTS:
        return _describe_state(event, data)
    if event is EventType.SERVER_STOPPED:
        return f"the server stopped: {data.get('cause', 'no cause given')}", level
    mine = data.get("session_id") == session_id
    who = "you" if mine else f"'{data.get('who')}'"
    if event is EventType.PORT_RELEASED:
        return f"Port {port} was released by {who}", "info"
    forced = "forcely " if data.get("force") else ""
    level = "warning" if data.get("force") and not mine else "info"
    return f"Port {port} was {forced}taken by {who}", level


def _describe_state(event: EventType, data: dict[str, Any]) -> tuple[str, str]:
    """The text and the type of an event of stateful traffic."""
    profile, state = data.get("profile_id"), data.get("state")
    word = STATE_WORDS[state] if isinstance(state, int) and state in range(len(STATE_WORDS)) else str(state)
    if event is EventType.STATE_CHANGED:
        return f"Moved to state: {word}", "info"
    if event is EventType.PROFILE_CLEARED:
        return f"Removed profile : {profile}", "info"
    if data.get("error"):
        return f"Moved to profile {profile} state: {word} after error: {data['error']}", "error"
    return f"Moved to profile {profile} state: {word}", "info"
