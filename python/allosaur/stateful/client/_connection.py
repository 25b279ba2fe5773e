"""What the parts of a stateful client share: the session, the owner's key, and the states of profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._errors import STLArgumentError, STLError, STLTimeoutError
from ...client._connection import Connection
from ...client._places import ALL_PROFILES
from ...rpc._fragments import upload
from ._session import BUSY, State, StatefulSession

#: What a method takes as ``pid_input``: the name of a profile, "*" for all, or several names.
Pids = str | Sequence[str]
#: A server may take long to take a large profile apart, whatever the client's timeout for tasks.
_CHANGE_TIMEOUT_S_MIN = 60.0


class StatefulConnection(Connection):
    """A connection to a server for stateful traffic, or the settings for one."""

    def session(self) -> StatefulSession:
        """The session. Raises ``STLConnectionError`` when there is none."""
        session = super().session()
        assert isinstance(session, StatefulSession)  # the kind that the client opens
        return session

    def call(self, method: str, **params: Any) -> Any:
        """Make a request."""
        return self.session().rpc.call(method, **params)

    def handler(self) -> str:
        """The key of the owner. Raises ``STLError`` when that is not us."""
        return self.session().owner_handler()

    def owned(self, method: str, **params: Any) -> Any:
        """Make a request that only the owner may make."""
        return self.call(method, handler=self.handler(), **params)

    def upload(self, method: str, profile_id: str, text: str) -> None:
        """Give the server a large text, in pieces; only the owner may."""
        upload(text, partial(self.owned, method, profile_id=profile_id))

    def pids(self, pid_input: Pids, known: bool = True) -> list[str]:
        """The profiles that an argument names; with ``known`` they must be there. Raises ``STLError``."""
        session = self.session()
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

    def state_of(self, profile_id: str) -> int:
        """The state of a profile."""
        return self.session().profiles.get(profile_id, State.IDLE)

    def is_busy(self, profile_id: str = ALL_PROFILES) -> bool:
        """Whether there is, or may be, traffic of a profile."""
        if profile_id == ALL_PROFILES:
            return any(state in BUSY for state in list(self.session().profiles.values()))
        return self.state_of(profile_id) in BUSY

    def wait_for(self, done: Callable[[], bool], what: str) -> None:
        """Wait for a change that the server makes by itself. Raises ``STLTimeoutError``."""
        timeout_s = max(self.task_timeout_s, _CHANGE_TIMEOUT_S_MIN)
        if not self.session().wait(done, timeout_s):
            raise STLTimeoutError(timeout_s, what)
