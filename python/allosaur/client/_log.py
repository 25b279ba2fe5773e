"""What a client tells: the events since it connected, and how much it writes to its logger."""

from __future__ import annotations

from .._errors import STLArgumentError
from ..rpc._events import Event
from ._connection import LEVELS, Connection


class Log:
    """Events and messages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_events(self, ev_type_filter: str | list[str] | None = None) -> list[Event]:
        """What happened since connect, oldest first; optionally only 'info' or 'warning'."""
        if self._connection.live is None:
            wanted = [ev_type_filter] if isinstance(ev_type_filter, str) else ev_type_filter
            return [event for event in self._connection.last_log if not wanted or event.ev_type in wanted]
        return self._connection.live.log.events(ev_type_filter)

    def get_warnings(self) -> list[Event]:
        """The warnings since connect."""
        return self.get_events("warning")

    def get_info(self) -> list[Event]:
        """The events that are not warnings."""
        return self.get_events("info")

    def clear_events(self) -> None:
        """Forget the events."""
        self._connection.last_log = []
        if self._connection.live is not None:
            self._connection.live.log.clear()

    def pop_event(self) -> Event | None:
        """Take the oldest event out of the log."""
        return self._connection.live.log.pop() if self._connection.live is not None else None

    def has_events(self) -> bool:
        """Whether the log has events that ``pop_event`` would give."""
        return bool(self.get_events())

    def get_verbose(self) -> str:
        """How much is written to the logger: what ``set_verbose`` set."""
        return next(name for name, level in LEVELS.items() if level == self._connection.level)

    def set_verbose(self, level: str) -> None:
        """How much is written to the logger: none, critical, error, warning, info or debug.

        With "debug" each request and each reply of the server is written.
        """
        if level not in LEVELS:
            raise STLArgumentError("level", level, list(LEVELS))
        self._connection.level = LEVELS[level]
