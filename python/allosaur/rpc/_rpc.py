"""JSON-RPC 2.0 over a transport: one call, or a batch in order, and the bytes of a message.

A message is JSON text, plain or in the zipped envelope: a magic number and the length of the text (4 bytes
each, big endian), then a zlib stream.

Two answers of a server mean "ask again", and are not shown to the caller. One lock lets the user's thread
and the event thread share it.
"""

from __future__ import annotations

import itertools
import json
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import STLConnectionError, STLRpcError, STLTimeoutError
from ._transport import Transport

#: A batch is split so that no request is larger: the server refuses 999,999 bytes.
BATCH_BYTES_MAX = 500_000

#: Smaller requests travel plain: zipping them (and so their answers) costs more time than it saves.
ZIP_BYTES_MIN = 1_024

_MAGIC = 0xABE85CEA
_HEADER = struct.Struct(">II")

#: The most bytes of text that one message may unpack to: a guard, not a limit of the protocol.
MESSAGE_BYTES_MAX = 256 * 1024 * 1024

_TRY_AGAIN = -32001
_IN_PROGRESS = -32002
_RETRY_INTERVAL_S = 0.3

#: One request: the method and its parameters. Who makes many may give the members of the JSON object as text.
Call = tuple[str, dict[str, Any] | bytes]


@dataclass(frozen=True)
class _Request:
    method: str
    number: str
    text: bytes


@dataclass(frozen=True)
class Reply:
    """What the server said to one request: a result, or an error."""

    method: str
    result: Any = None
    error: STLRpcError | None = None

    def unwrap(self) -> Any:
        """The result. Raises the error."""
        if self.error is not None:
            raise self.error
        return self.result


class Rpc:
    """Requests to one server."""

    def __init__(self, transport: Transport, timeout_s: float = 3.0, task_timeout_s: float = 30.0) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._task_timeout_s = task_timeout_s
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self.api_handle: str | None = None
        #: Requests of so many bytes travel zipped; None for none.
        self.zip_bytes_min: int | None = ZIP_BYTES_MIN
        #: Told of each message that goes out ("request") and comes back ("reply"), the latter as a frame.
        self.trace: Callable[[str, bytes], None] = lambda kind, text: None

    def call(self, method: str, **params: Any) -> Any:
        """Make one request and return its result.

        Raises ``STLRpcError`` when the server refuses, ``STLConnectionError`` when it is silent.
        """
        return self.batch([(method, params)])[0].unwrap()

    def batch(self, calls: Iterable[Call]) -> list[Reply]:
        """Make requests in order; each has its reply, errors included, in the same order.

        Of several messages each is made while the server works on the one before.
        """
        messages = iter(_split(self._request(method, params) for method, params in calls))
        first, second = next(messages, None), next(messages, None)
        if first is None or second is None:
            return [] if first is None else self._exchange(first)
        from concurrent.futures import ThreadPoolExecutor

        replies: list[Reply] = []
        with ThreadPoolExecutor(1) as sender:
            sent = sender.submit(self._exchange, first)
            for requests in itertools.chain([second], messages):
                replies += sent.result()
                sent = sender.submit(self._exchange, requests)
            return replies + sent.result()

    def _request(self, method: str, params: dict[str, Any] | bytes) -> _Request:
        number = f"a{next(self._ids)}"
        if isinstance(params, bytes):
            head = encode({"jsonrpc": "2.0", "method": method, "id": number})
            members = [params, self._own_member()] if params else [self._own_member()]
            text = head[:-1] + b',"params":{' + b",".join(member for member in members if member) + b"}}"
            return _Request(method, number, text)
        if self.api_handle is not None:
            params = {**params, "api_h": self.api_handle}
        body = {"jsonrpc": "2.0", "method": method, "id": number, "params": params}
        return _Request(method, number, encode(body))

    def _own_member(self) -> bytes:
        return b"" if self.api_handle is None else b'"api_h":' + encode(self.api_handle)

    def _exchange(self, requests: Sequence[_Request]) -> list[Reply]:
        texts = [request.text for request in requests]
        frame = self._send(texts[0] if len(texts) == 1 else b"[" + b",".join(texts) + b"]")
        try:
            answer = decode(frame)
        except ValueError as error:
            raise STLConnectionError(
                f"what answers at {self._transport.address} does not speak JSON-RPC ({error}): "
                f"give the RPC port of the server as sync_port"
            ) from error
        answers = answer if isinstance(answer, list) else [answer]
        if len(answers) != len(requests):
            # A request that the server could not read at all is answered by one error without an id.
            return [self._reply(request, answers[0] if answers else None) for request in requests]
        return [self._settle(request, item) for request, item in zip(requests, answers, strict=True)]

    def _send(self, text: bytes) -> bytes:
        is_zipped = self.zip_bytes_min is not None and len(text) >= self.zip_bytes_min
        frame = pack(text) if is_zipped else text
        with self._lock:
            self.trace("request", text)
            answer = self._transport.request(frame, self._timeout_s)
            self.trace("reply", answer)
        return answer

    def _settle(self, request: _Request, answer: Any) -> Reply:
        """Turn an answer into a reply, asking again where the server says so."""
        reply = self._reply(request, answer)
        deadline = time.monotonic() + self._task_timeout_s
        while reply.error is not None and reply.error.code in (_TRY_AGAIN, _IN_PROGRESS):
            if time.monotonic() > deadline:
                raise STLTimeoutError(self._task_timeout_s, f"'{request.method}' on the server")
            time.sleep(_RETRY_INTERVAL_S)
            if reply.error.code == _IN_PROGRESS:
                request = self._request("get_async_results", {"ticket_id": int(reply.error.text)})
            reply = self._ask_again(request)
        return reply

    def _ask_again(self, request: _Request) -> Reply:
        answer = decode(self._send(request.text))
        return self._reply(request, answer[0] if isinstance(answer, list) and answer else answer)

    def _reply(self, request: _Request, answer: Any) -> Reply:
        method = request.method
        if not isinstance(answer, dict) or not ("result" in answer or "error" in answer):
            raise STLConnectionError(
                f"the answer of {self._transport.address} to '{method}' has neither a result nor an error: "
                f"is this the RPC port of the server?"
            )
        if "error" in answer:
            return Reply(method, error=_error(method, answer["error"]))
        if answer.get("id") != request.number:
            raise STLConnectionError(
                f"the answer of {self._transport.address} to '{method}' belongs to another request: "
                f"connect again"
            )
        return Reply(method, result=answer["result"])


def _error(method: str, error: Any) -> STLRpcError:
    fields = error if isinstance(error, dict) else {"message": str(error)}
    text = fields.get("specific_err") or fields.get("message") or "the server gave no reason"
    code = fields.get("code")
    return STLRpcError(method, code if isinstance(code, int) else 0, str(text))


def _split(requests: Iterable[_Request]) -> Iterable[list[_Request]]:
    """The requests of one message each time; they are made only when their turn comes."""
    chunk: list[_Request] = []
    chunk_bytes = 0
    for request in requests:
        request_bytes = len(request.text) + 1
        if chunk and chunk_bytes + request_bytes > BATCH_BYTES_MAX:
            yield chunk
            chunk, chunk_bytes = [], 0
        chunk.append(request)
        chunk_bytes += request_bytes
    if chunk:
        yield chunk


def pack(text: bytes) -> bytes:
    """Put a text into the zipped envelope."""
    return _HEADER.pack(_MAGIC, len(text)) + zlib.compress(text, 1)


def unpack(frame: bytes) -> bytes:
    """Take the text out of a frame, zipped or plain.

    Raises ``ValueError`` when the envelope is damaged.
    """
    if len(frame) < _HEADER.size:
        return frame
    magic, text_bytes = _HEADER.unpack_from(frame)
    if magic != _MAGIC:
        return frame
    if text_bytes > MESSAGE_BYTES_MAX:
        raise ValueError(f"the message says that it unpacks to {text_bytes} bytes")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(frame[_HEADER.size :], text_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"the zipped message is damaged: {error}") from error
    if len(text) != text_bytes or not inflater.eof:
        raise ValueError(f"the zipped message is cut off, or is not of {text_bytes} bytes as its header says")
    return text


def encode(value: Any) -> bytes:
    """JSON text of a value, without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def decode(frame: bytes) -> Any:
    """The JSON value of a frame. Raises ``ValueError`` when it is damaged or not JSON."""
    return json.loads(unpack(frame))
