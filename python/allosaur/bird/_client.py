"""The client of a server's BIRD, under TRex's name ``PyBirdClient``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .._errors import NoServerError, STLError, STLRpcError, STLTimeoutError
from ..rpc._fragments import pieces
from ..rpc._rpc import Rpc
from ..rpc._transport import Transport, ZmqTransport

#: The version of the commands that the server must have.
_VERSION = "1.0"
#: How long an answer may take, in seconds: BIRD reads a million routes before it comes.
SYNC_TIMEOUT = 120.0
#: Characters of a fragment of a configuration after the first.
_FRAGMENT_CHARS = 400_000
_MORE = "send_another_frag"
#: What an answer to a configuration that BIRD does not take begins with.
_REFUSED = "Unable to parse the line:"
#: In a line of ``get_protocols_info``: the columns of the name and the state.
_NAME, _STATE = 0, 3


class ConnectionException(STLError):
    """The client is not connected, or has not acquired BIRD."""


class ConfigurationException(STLError):
    """BIRD does not take a configuration, and keeps the one it had; the text is BIRD's."""


class PyBirdClient:
    """A client of a server's BIRD: ``connect``, ``acquire``, ``set_config``, ``release``, ``disconnect``.

    One client at a time has BIRD; all may ask for its configuration and its protocols. As ``with`` it is
    connected, has acquired BIRD, and gives it back at the end.
    """

    CLIENT_VERSION = _VERSION

    def __init__(
        self,
        ip: str = "localhost",
        port: int = 4509,
        verbose_level: str = "error",
        logger: Any = None,
        sync_timeout: float | None = None,
        *,
        transport: Transport | None = None,
    ) -> None:
        self.ip = ip
        self.port = port
        #: What the server knows the owner of BIRD by; None before ``acquire``.
        self.handler: int | None = None
        self._timeout_s = SYNC_TIMEOUT if sync_timeout is None else sync_timeout
        # Nothing is published, so no port of events is asked for.
        self._transport = transport or ZmqTransport(ip, port, port)
        self._rpc: Rpc | None = None

    def __enter__(self) -> PyBirdClient:
        self.connect()
        try:
            self.acquire()
        except BaseException:
            self.disconnect()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.handler is not None:
                self.release()
        except STLRpcError:
            # Another has taken BIRD away: there is nothing to give back.
            self.handler = None
        finally:
            self.disconnect()

    def connect(self) -> str:
        """Connect. Raises ``STLConnectionError`` where no server has BIRD."""
        if self._rpc is not None:
            raise ConnectionException("the client is connected already")
        try:
            self._transport.open(self._timeout_s)
        except NoServerError as error:
            raise NoServerError(
                f"no server with BIRD answers at {self._transport.address}: start one with "
                f"'allosaur server --bird-server', or give the right ip and port"
            ) from error
        self._rpc = Rpc(self._transport, self._timeout_s)
        try:
            return str(self._rpc.call("connect", version=_VERSION))
        except BaseException:
            self._close()
            raise

    def acquire(self, force: bool = False) -> int:
        """Take BIRD, with ``force`` away from another client. Gives the handler."""
        self.handler = int(self._call("acquire", force=force))
        return self.handler

    def release(self) -> str:
        """Give BIRD back. Its configuration stays."""
        answer = str(self._call("release", handler=self._own_handler()))
        self.handler = None
        return answer

    def disconnect(self) -> None:
        """Disconnect. BIRD must have been given back."""
        if self.handler is not None:
            raise ConnectionException("the client has acquired BIRD: release() first")
        try:
            self._call("disconnect")
        finally:
            self._close()

    def get_config(self) -> str:
        """The configuration that BIRD has."""
        return str(self._call("get_config"))

    def get_protocols_info(self) -> str:
        """BIRD's protocols and their states, as a table of text."""
        return str(self._call("get_protocols_info"))

    def get_status(self) -> dict[str, Any]:
        """BIRD's ``version``, ``namespace``, ``pid``, ``restarts``, ``state`` and ``is_acquired``."""
        status: dict[str, Any] = self._call("get_status")
        return status

    def set_config(self, new_cfg: str) -> str:
        """Give BIRD another configuration. Gives what the server says, with its warnings.

        Raises ``ConfigurationException`` with the line and the words of BIRD when it does not take it.
        """
        handler = self._own_handler()
        answer = _MORE
        for fragment in pieces(new_cfg, _FRAGMENT_CHARS):
            answer = str(self._call("set_config", handler=handler, **fragment))
            if answer != _MORE:
                break
        if answer.startswith(_REFUSED):
            raise ConfigurationException(answer.removeprefix(_REFUSED).strip('"'))
        return answer

    def set_empty_config(self) -> str:
        """Give BIRD a configuration without routes and peers."""
        return str(self._call("set_empty_config", handler=self._own_handler()))

    def check_protocols_up(
        self,
        protocols_list: Sequence[str],
        timeout: float = 60,
        poll_rate: float = 1,
        verbose: bool = False,
    ) -> bool:
        """Wait until protocols are up, by their names in the configuration.

        Raises ``STLTimeoutError`` when some are not within ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while down := self._down(protocols_list):
            if verbose:
                print(f"not up yet: {', '.join(down)}")
            if time.monotonic() >= deadline:
                raise STLTimeoutError(timeout, f"waiting for {', '.join(down)} of BIRD to be up")
            time.sleep(poll_rate)
        return True

    def _down(self, names: Sequence[str]) -> list[str]:
        """Those that are not up, or are none of BIRD's."""
        lines = (line.split() for line in self.get_protocols_info().splitlines())
        states = {words[_NAME].lower(): words[_STATE].lower() for words in lines if len(words) > _STATE}
        return [name for name in names if states.get(name.lower()) != "up"]

    def _own_handler(self) -> int:
        if self.handler is None:
            raise ConnectionException("the client has not acquired BIRD: acquire() first")
        return self.handler

    def _call(self, method: str, **params: Any) -> Any:
        if self._rpc is None:
            raise ConnectionException(f"{method} needs a connection: connect() first")
        return self._rpc.call(method, **params)

    def _close(self) -> None:
        self._rpc = None
        self._transport.close()
