"""Requests of the client to a server of emulated clients: one at a time, many in few messages, and by pages.

Lists longer than the server takes at once go out in requests of `CHUNK` each, and these in one message where
no rate is asked for. What comes back is as TRex's client gives it: the result itself, or a list of several.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .._errors import STLArgumentError, STLConnectionError, STLError, STLRpcError
from ..rpc._credentials import credentials_for
from ..rpc._rpc import Rpc, encode, unpack
from ..rpc._transport import Transport, ZmqTransport
from ._profile import EMUClientKey, EMUNamespaceKey

CHUNK = 255
"""The server takes and gives so many things in a request."""
API = {"name": "EMU", "major": 1, "minor": 1}
METHOD_NOT_FOUND = -32601

_LEVELS = {
    "none": logging.CRITICAL + 1,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_TIMEOUT_S = 3.0
_INTERRUPTED = "interupted"
"""As the server spells it, when what is read page by page changed between two of them."""
_ATTEMPTS = 4


class Requests:
    """The connection, or the settings for one."""

    def __init__(
        self,
        server: str,
        sync_port: int,
        verbose_level: str,
        logger: logging.Logger | None,
        sync_timeout: float | None,
        transport: Transport | None,
        rpc_auth: Path | str | None,
    ) -> None:
        self.server = server
        self.sync_port = sync_port
        self.logger = logger if logger is not None else logging.getLogger("allosaur.emulation")
        self.timeout_s = _TIMEOUT_S if sync_timeout is None else float(sync_timeout)
        self.set_level(verbose_level)
        self.version: dict[str, Any] = {}
        self._own_transport = transport
        self._rpc_auth = rpc_auth
        self._transport: Transport | None = None
        self._rpc: Rpc | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._rpc is not None

    def set_level(self, verbose_level: str) -> None:
        """Say how much goes to the log."""
        if verbose_level not in _LEVELS:
            raise STLArgumentError("verbose_level", verbose_level, list(_LEVELS))
        self.verbose_level = verbose_level

    def open(self) -> None:
        """Begin a session. Raises ``STLError``; the message says where it looked and what to do."""
        self.close()
        transport = self._new_transport()
        self.say(logging.INFO, f"connecting to {transport.address}")
        try:
            transport.open(self.timeout_s)
        except STLConnectionError as error:
            raise STLConnectionError(
                f"no server of emulated clients answers at {transport.address} ({_reason(error)}): start one "
                f"with 'allosaur server --emu', or give the right server and sync_port"
            ) from error
        rpc = Rpc(transport, self.timeout_s)
        rpc.trace = self._trace
        if self._own_transport is None and _is_here(self.server):
            # Zipping takes longer than what it saves on loopback.
            rpc.zip_bytes_min = None
        try:
            rpc.api_handle = rpc.call("api_sync_v2", **API)["api_h"]
            self.version = rpc.call("get_version")
        except BaseException:
            transport.close()
            raise
        self._transport, self._rpc = transport, rpc

    def close(self) -> None:
        """End the session. May be called twice."""
        transport, self._transport, self._rpc = self._transport, None, None
        if transport is not None:
            transport.close()

    def probe(self) -> dict[str, Any]:
        """What the server says of its version, without a session."""
        transport = self._new_transport()
        try:
            transport.open(self.timeout_s)
            answer: dict[str, Any] = Rpc(transport, self.timeout_s).call("get_version")
            return answer
        finally:
            transport.close()

    def say(self, level: int, text: str) -> None:
        """Write to the log, if it is told so much."""
        if level >= _LEVELS[self.verbose_level]:
            self.logger.log(level, text)

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make one request and return its result. Raises ``STLError``."""
        return self._session().call(method, **(params or {}))

    def send(self, method: str, params: dict[str, Any], max_rate: float | None = None) -> Any:
        """Make a request, in several where a list in it is long; ``max_rate`` is things a second.

        Raises the first refusal.
        """
        length = max((len(value) for value in params.values() if isinstance(value, list)), default=0)
        return self.send_by(method, params, length, lambda begin, end: _slice(params, begin, end), max_rate)

    def send_by(
        self,
        method: str,
        params: dict[str, Any],
        length: int,
        chunk: Callable[[int, int], dict[str, Any] | bytes],
        max_rate: float | None = None,
    ) -> Any:
        """As `send`, of ``length`` things; ``chunk`` gives those from one number to another in parameters.

        These may be text: the members of a JSON object.
        """
        size = CHUNK if max_rate is None else max(1, min(CHUNK, int(max_rate)))
        short = _short(params, size)
        begins = range(0, length, size) or [0]
        calls = ((method, _with(chunk(begin, min(length, begin + size)), short)) for begin in begins)
        rpc = self._session()
        results: list[Any] = []
        if max_rate is None:
            for number, reply in enumerate(rpc.batch(calls)):
                if reply.error is not None:
                    raise _placed(reply.error, number * size, size, length)
                results += _listed(reply.result)
            return _unwrapped(results)
        begun_s = time.monotonic()
        for number, call in enumerate(calls):
            time.sleep(max(0.0, begun_s + number * size / max_rate - time.monotonic()))
            results += _listed(rpc.batch([call])[0].unwrap())
        return _unwrapped(results)

    def pages(
        self, method: str, count: int | None = None, params: dict[str, Any] | None = None
    ) -> Iterator[list[Any]]:
        """What an iterator of the server gives, page by page. Raises ``STLError`` when the table changes."""
        is_first = True
        while True:
            page = self.call(
                method, {"count": CHUNK if count is None else count, "reset": is_first, **(params or {})}
            )
            if page.get("empty") or page.get("stopped"):
                return
            yield list(page.get("data") or [])
            is_first = False

    def items(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        count: int | None = None,
        attempts: int = 1,
    ) -> list[Any]:
        """All that an iterator of the server gives; again from the start where the table changed."""
        while True:
            attempts -= 1
            try:
                return [item for page in self.pages(method, count, params) for item in page]
            except STLRpcError as error:
                if attempts == 0 or not is_interrupted(error):
                    raise

    def core_items(self, method: str, params: dict[str, Any] | None = None) -> list[Any]:
        """All namespaces or clients, though some may come and go meanwhile."""
        return self.items(method, params, attempts=_ATTEMPTS)

    def to_ns(self, method: str, ns_key: EMUNamespaceKey, **params: Any) -> Any:
        """A request about a namespace."""
        return self.send(method, {**ns_key.conv_to_dict(add_tunnel_key=True), **params})

    def to_client(self, method: str, c_key: EMUClientKey, **params: Any) -> Any:
        """A request about a client."""
        return self.send(method, {**c_key.conv_to_dict(add_ns=True, to_bytes=True), **params})

    def to_clients(self, method: str, c_keys: list[EMUClientKey], max_rate: float | None = None) -> Any:
        """A request about several clients of one namespace."""
        first = c_keys[0].ns_key
        for key in c_keys:
            if key.ns_key != first:
                raise STLError(
                    f"c_keys: clients of one namespace at a time: some are of {first}, some of {key.ns_key}"
                )
        tunnel = first.conv_to_dict(add_tunnel_key=True)

        def macs(begin: int, end: int) -> dict[str, Any]:
            return {"macs": [key.mac.V() for key in c_keys[begin:end]]}

        return self.send_by(method, tunnel, len(c_keys), macs, max_rate)

    def of_each_client(
        self, method: str, c_keys: Sequence[EMUClientKey], params: dict[str, Any]
    ) -> list[Any]:
        """The result of a request about each client, in few messages; None where it is refused."""
        calls = ((method, {**key.conv_to_dict(add_ns=True, to_bytes=True), **params}) for key in c_keys)
        return [None if one.error is not None else one.result for one in self._session().batch(calls)]

    def _session(self) -> Rpc:
        if self._rpc is None:
            raise STLConnectionError("not connected: call connect() first")
        return self._rpc

    def _new_transport(self) -> Transport:
        if self._own_transport is not None:
            return self._own_transport
        # Nothing is published here: the transport's other port is never opened.
        return ZmqTransport(
            self.server, self.sync_port, self.sync_port, credentials_for(self.server, self._rpc_auth)
        )

    def _trace(self, kind: str, frame: bytes) -> None:
        if _LEVELS[self.verbose_level] <= logging.DEBUG:
            text = unpack(frame).decode("utf-8", "replace")
            self.say(logging.DEBUG, f"{kind}: {text}")


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def is_interrupted(error: STLRpcError) -> bool:
    """Whether the server says that a table changed between two pages of it."""
    return _INTERRUPTED in error.text


def _short(params: dict[str, Any], size: int) -> dict[str, Any]:
    return {
        name: value for name, value in params.items() if not isinstance(value, list) or len(value) <= size
    }


def _slice(params: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    """The part of each long list; the short ones go with every request."""
    return {
        name: value[begin:end]
        for name, value in params.items()
        if isinstance(value, list) and value[begin:end]
    }


def _listed(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


def _unwrapped(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else results


def _with(members: dict[str, Any] | bytes, params: dict[str, Any]) -> dict[str, Any] | bytes:
    if isinstance(members, dict):
        return {**members, **params}
    return members + b"," + encode(params)[1:-1]


def _placed(error: STLRpcError, begin: int, size: int, length: int) -> STLRpcError:
    if length <= size:
        return error
    where = f" (in {begin + 1} to {min(length, begin + size)} of {length})"
    return STLRpcError(error.method, error.code, error.text + where)


def _reason(error: STLConnectionError) -> str:
    cause = error.__cause__
    return getattr(cause, "strerror", None) or str(cause or error)
