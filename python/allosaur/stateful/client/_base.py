"""The stateful client's connection, who owns the server, and how it reads the name of a profile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..._errors import STLArgumentError, STLError, STLTimeoutError
from ...client._client import STLClient
from ...client._places import ALL_PROFILES
from ...client._session import Session
from ._session import BUSY, State, StatefulSession

#: What a method takes as ``pid_input``: the name of a profile, "*" for all, or several names.
Pids = str | Sequence[str]
#: A server may take long to take a large profile apart, whatever the client's timeout for tasks.
_CHANGE_TIMEOUT_S_MIN = 60.0


class StatefulBase(STLClient):
    """Connecting, owning, and the states of profiles.

    The methods here take other parameters than those of the stateless client that have the same name:
    scripts for TRex count on both. The stateless ones are ``start_stl``, ``stop_stl`` and so on.
    """

    _session_kind: ClassVar[type[Session]] = StatefulSession

    def get_mode(self) -> str:
        """The kind of traffic that this client is for: "ASTF", stateful."""
        return "ASTF"

    def acquire(  # type: ignore[override]
        self, force: bool = False, lease_s: float | None = None
    ) -> None:
        """Own the server with all its ports; ``force`` takes it from whoever has it.

        With ``lease_s``, 1 to 3600, the server stops what this client has started, and is released, when
        it does not hear of the client for so many seconds, because it was killed or cut off. A client that
        is connected is heard by itself.
        Raises ``STLError`` when it belongs to somebody, also when that is us from another place.
        """
        session = self._stateful()
        # What happened to the ports until now must not be taken for something newer.
        session.drain_events()
        who: dict[str, Any] = {"user": self.username, "session_id": session.session_id}
        session.lease_s = lease_s
        if lease_s is not None:
            who["lease_s"] = lease_s
        answer = session.rpc.call("acquire", force=force, **who)
        with session.changed:
            session.handler = answer["handler"]
            for port_id, handler in answer["ports"].items():
                port = self._connection.port(int(port_id))
                port.handler, port.status["owner"] = str(handler), self.username
                port.loss = None
        for profile_id, text in (answer.get("exception") or {}).items():
            self._connection.say(logging.WARNING, f"profile '{profile_id}': {text}")
        session.sync()

    def release(self, force: bool = False) -> None:
        """Own the server no longer. ``force`` is accepted: existing scripts give it."""
        self._stateful().rpc.call("release", handler=self._handler())
        self._let_go()

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Stop all traffic if the server is ours, release it, and disconnect.

        Does nothing when not connected. A server that is gone is no error here.
        """
        if self._connection.live is None:
            return
        session = self._connection.live
        assert isinstance(session, StatefulSession)  # _session_kind says so
        try:
            if session.lost_reason is None and session.handler is not None:
                if stop_traffic:
                    self._stop_everything()
                if release_ports:
                    self.release()
                session.drain_events()
        except STLError as error:
            self._connection.say(logging.WARNING, f"while disconnecting: {error}")
        finally:
            self._connection.close()

    def sync(self) -> dict[str, int]:
        """Read the states of all profiles, as numbers; see ``get_profiles_state`` for their names."""
        self._stateful().sync()
        return dict(self._stateful().profiles)

    def _what_is_owned(self, ports: list[int]) -> str:
        return "the server"

    def _stop_everything(self) -> None:
        raise NotImplementedError

    def _let_go(self) -> None:
        session = self._stateful()
        with session.changed:
            session.handler = None
            for port in session.ports.values():
                port.handler, port.status["owner"] = None, ""

    def _stateful(self) -> StatefulSession:
        session = self._connection.session()
        assert isinstance(session, StatefulSession)  # _session_kind says so
        return session

    def _handler(self) -> str:
        return self._stateful().owner_handler()

    def _owned(self, method: str, **params: Any) -> Any:
        """A request that only the owner may make."""
        return self._stateful().rpc.call(method, handler=self._handler(), **params)

    def _pids(self, pid_input: Pids, known: bool = True) -> list[str]:
        """The profiles that an argument names; with ``known`` they must be there. Raises ``STLError``."""
        session = self._stateful()
        named = pid_input.split() if isinstance(pid_input, str) else list(pid_input)
        if not named or not all(isinstance(name, str) for name in named):
            raise STLArgumentError("pid_input", pid_input, "the name of a profile")
        if ALL_PROFILES in named:
            if not known:
                raise STLArgumentError("pid_input", pid_input, "names of profiles, not all of them")
            return [name for name, state in session.profiles.items() if state != State.DELETE]
        missing = [name for name in named if name not in session.profiles]
        if known and missing:
            there = ", ".join(f"'{name}'" for name in session.profiles) or "none"
            raise STLError(f"there is no profile '{missing[0]}', the profiles are: {there}")
        return list(dict.fromkeys(named))

    def _state_of(self, profile_id: str) -> int:
        return self._stateful().profiles.get(profile_id, State.IDLE)

    def _is_busy(self, profile_id: str = ALL_PROFILES) -> bool:
        states = list(self._stateful().profiles.values())
        return (
            any(state in BUSY for state in states)
            if profile_id == ALL_PROFILES
            else (self._state_of(profile_id) in BUSY)
        )

    def _wait_for(self, done: Callable[[], bool], what: str) -> None:
        """Wait for a change that the server makes by itself. Raises ``STLTimeoutError``."""
        timeout_s = max(self._connection.task_timeout_s, _CHANGE_TIMEOUT_S_MIN)
        if not self._stateful().wait(done, timeout_s):
            raise STLTimeoutError(timeout_s, what)
