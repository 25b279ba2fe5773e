"""HTTP/1.1 in the place of a program: clients that judge each response, servers that answer by path."""

from __future__ import annotations

import mimetypes
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ._arguments import U32_MAX, U64_MAX, listed, number, whole
from ._buffers import Buffers
from ._commands import ASTFCmd, ASTFCmdSend
from ._errors import ASTFError, ASTFErrorBadParamCombination, ASTFErrorWrongType
from ._http_values import HTTPValue, Values, check_template, checked_values

_SECONDS_MAX = 1e6
_STATUS_MIN, _STATUS_MAX = 200, 599
_HASH_DIGITS = 64
_FILES_MAX, _FILES_BYTES_MAX = 900, 32 << 20
_ROUTE_NUMBERS = {"status": int, "size": int, "chunk": int, "delay": float}
Headers = Mapping[str, str] | Sequence[tuple[str, str]]
"""Header lines: a dict, or pairs where a name comes twice."""


class HTTPMessage:
    """What a request and a route have in common: fields, and a body that is sent."""

    def __init__(self, fields: Mapping[str, Any], body: ASTFCmdSend | None) -> None:
        self._fields = _given(fields)
        self.body = body

    def to_json(self, buffers: Buffers) -> dict[str, Any]:
        """The message in the words of the protocol; ``buffers`` takes its body."""
        return {**self._fields, **(buffers.sent(self.body) if self.body else {})}


#: Requests that a client sends at once at most.
PIPELINE_MAX = 128


class HTTPRequest(HTTPMessage):
    """A request of a client, and what its response must be.

    ``headers`` are lines beside ``Host`` and ``Content-Length``, which are written by themselves. ``body``
    are the bytes that are sent; with ``size`` it is repeated until there are so many.

    Where its ``HTTPClient`` has ``values``, ``${name}`` in the path, in the text of a header and in a
    ``body`` that is text without ``size`` is one of them, and ``$$`` is a ``$``.

    A response is a success with one of the ``status`` (a number or a list; without any, 200 to 399) and,
    where they are given, a body of ``body_bytes`` bytes with the hash ``body_sha256`` (64 digits). All
    else is counted as a failure by its name. Raises ``ASTFError``.
    """

    def __init__(
        self,
        path: str = "/",
        method: str = "GET",
        headers: Headers | None = None,
        body: bytes | str | None = None,
        size: int | None = None,
        status: int | Sequence[int] | None = None,
        body_bytes: int | None = None,
        body_sha256: str | None = None,
    ) -> None:
        where = "HTTPRequest"
        statuses = [] if status is None else [status] if isinstance(status, int) else list(status)
        for one in statuses:
            whole(where, "status", one, _STATUS_MIN, _STATUS_MAX)
        fields = {
            "path": _text(where, "path", path),
            "method": _text(where, "method", method),
            "headers": _headers(where, headers),
            "status": statuses or None,
            "body_bytes": None if body_bytes is None else whole(where, "body_bytes", body_bytes, 0, U64_MAX),
            "body_sha256": _hash(where, body_sha256),
        }
        super().__init__(fields, _body(where, body, size))
        self._text = body if isinstance(body, str) and size is None else None

    def _check(self, where: str, values: Mapping[str, HTTPValue]) -> None:
        """Refuse what uses values that are not there. Raises ``ASTFError``."""
        check_template(where, "path", self._fields["path"], values)
        for name, text in self._fields.get("headers", ()):
            check_template(where, f"the header {name!r}", text, values)
        if self._text is not None:
            check_template(where, "body", self._text, values)

    def _with_values(self, buffers: Buffers) -> dict[str, Any]:
        """The request in the words of the protocol, with values in its body."""
        return self.to_json(buffers) if self._text is None else {**self._fields, "body": self._text}


class HTTPRoute(HTTPMessage):
    """How a server answers a path, or with a ``*`` at its end all paths that begin so.

    ``body`` are the bytes of the answer; with ``size`` it is repeated until there are so many. They come
    with their length, or in chunks of ``chunk`` bytes, after ``delay`` seconds. Raises ``ASTFError``.
    """

    def __init__(
        self,
        path: str = "*",
        status: int = 200,
        headers: Headers | None = None,
        body: bytes | str | None = None,
        size: int | None = None,
        chunk: int | None = None,
        delay: float = 0,
    ) -> None:
        where = "HTTPRoute"
        fields = {
            "path": _text(where, "path", path),
            "status": whole(where, "status", status, _STATUS_MIN, _STATUS_MAX),
            "headers": _headers(where, headers),
            "chunk_bytes": None if chunk is None else whole(where, "chunk", chunk, 1, U32_MAX),
            "delay_usec": _usec(where, "delay", delay) or None,
        }
        super().__init__(fields, _body(where, body, size))

    @classmethod
    def parse(cls, line: str) -> HTTPRoute:
        """A route in a line: ``PATH status=N size=N chunk=N delay=SECONDS header=NAME:VALUE``.

        Words with spaces stand in quotes. Raises ``ASTFError``.
        """
        try:
            path, *words = shlex.split(line)
        except ValueError:
            raise ASTFError(
                f"HTTPRoute: {line!r} is no line, give PATH and words, with quotes in pairs"
            ) from None
        fields: dict[str, Any] = {}
        headers: list[tuple[str, str]] = []
        for word in words:
            name, _, value = word.partition("=")
            try:
                if name == "header":
                    header, text = value.split(":", 1)
                    headers.append((header.strip(), text.strip()))
                else:
                    fields[name] = _ROUTE_NUMBERS[name](value)
            except (KeyError, ValueError):
                raise ASTFError(
                    f"HTTPRoute: {line!r} has {word!r}, give status=N, size=N, chunk=N, delay=SECONDS "
                    "or header=NAME:VALUE"
                ) from None
        return cls(path, headers=headers, **fields)

    @classmethod
    def files(cls, root: str | Path) -> list[HTTPRoute]:
        """A route for each file of a folder, read now; ``index.html`` answers for its folder, too.

        Up to 900 files of 32 MiB in all. Raises ``ASTFError``.
        """
        root = Path(root)
        found = sorted(path for path in root.rglob("*") if path.is_file())
        total = sum(path.stat().st_size for path in found)
        if not 0 < len(found) <= _FILES_MAX or total > _FILES_BYTES_MAX:
            raise ASTFError(
                f"HTTPRoute: {str(root)!r} is a folder of {len(found)} files with {total} bytes, give one of "
                f"1 to {_FILES_MAX} files of {_FILES_BYTES_MAX} bytes in all, or sizes by path"
            )
        routes = []
        for path in found:
            # Quoted as in URLs, a star too, which would stand for any end of a path.
            name = "/" + "/".join(quote(part, safe="") for part in path.relative_to(root).parts)
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            names = [name, name.removesuffix(path.name)] if path.name == "index.html" else [name]
            routes += [cls(one, headers={"Content-Type": kind}, body=path.read_bytes()) for one in names]
        return routes


class HTTPProgram:
    """What stands in the place of a program and speaks HTTP/1.1, over TCP or with ``tls`` over TLS."""

    #: There are none.
    commands: tuple[ASTFCmd, ...] = ()
    #: The side that it is for, "client" or "server".
    side = ""

    def is_stream(self) -> bool:
        """Whether it is for TCP: always."""
        return True

    def to_json(
        self, buffers: Buffers | None = None, groups: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """The program in the words of the protocol. ``buffers`` takes the bodies."""
        return {f"http_{self.side}": self._to_json(Buffers() if buffers is None else buffers)}

    @property
    def total_send_bytes(self) -> int:
        """The bytes of all bodies, each counted once."""
        return sum(one.body.buf_len for one in self._messages() if one.body is not None)

    def _to_json(self, buffers: Buffers) -> dict[str, Any]:
        raise NotImplementedError

    def _messages(self) -> Sequence[HTTPMessage]:
        raise NotImplementedError


class HTTPClient(HTTPProgram):
    """Clients of HTTP/1.1: each connection sends ``requests``, one after another.

    ``requests`` are paths or ``HTTPRequest``s. ``host`` is the ``Host`` of all; without one it is the
    address of the server. ``requests_per_connection`` is how many a connection sends, from the first on
    again where that is more than there are; then it closes. With ``pipeline`` it sends so many at once, and
    the next when all their responses are there. ``think`` seconds pass between a response and the next
    request. ``values`` are what requests are made of, by the name that they use them by: each an
    ``HTTPValues``, ``HTTPCounter``, ``HTTPRandom`` or ``HTTPToken``, or a list of texts. A response that
    takes longer than ``timeout`` seconds is a failure, and its connection is reset. Raises ``ASTFError``.
    """

    side = "client"

    def __init__(
        self,
        requests: str | HTTPRequest | Sequence[str | HTTPRequest] = "/",
        host: str | None = None,
        requests_per_connection: int | None = None,
        think: float = 0,
        timeout: float | None = None,
        pipeline: int = 1,
        values: Values | None = None,
    ) -> None:
        where = "HTTPClient"
        given = list(requests) if isinstance(requests, (list, tuple)) else [requests]
        self.requests: list[HTTPRequest] = listed(
            where,
            "requests",
            [HTTPRequest(one) if isinstance(one, str) else one for one in given],
            HTTPRequest,
        )
        if not self.requests:
            raise ASTFError(f"{where}: requests is empty, give a path or an HTTPRequest")
        self.values = checked_values(where, values)
        if self.values:
            for i, request in enumerate(self.requests):
                request._check(f"{where}: requests[{i}]", self.values)
        pipeline = whole(where, "pipeline", pipeline, 1, PIPELINE_MAX)
        fields = {
            "host": None if host is None else _text(where, "host", host),
            "requests_per_connection": None
            if requests_per_connection is None
            else whole(where, "requests_per_connection", requests_per_connection, 1, U32_MAX),
            "pipeline": pipeline if pipeline > 1 else None,
            "values": [value.to_json(name) for name, value in self.values.items()] or None,
            "think_usec": _usec(where, "think", think) or None,
            "timeout_usec": None if timeout is None else _usec(where, "timeout", timeout),
        }
        self._fields = _given(fields)

    def _messages(self) -> Sequence[HTTPRequest]:
        return self.requests

    def _to_json(self, buffers: Buffers) -> dict[str, Any]:
        written = [
            request._with_values(buffers) if self.values else request.to_json(buffers)
            for request in self.requests
        ]
        return {**self._fields, "requests": written}


class HTTPServer(HTTPProgram):
    """Servers of HTTP/1.1: the first of the ``routes`` that fits a path answers it, or else 404.

    ``routes`` is one ``HTTPRoute`` or a list. After ``requests_per_connection`` requests a connection is
    closed; 0 is never. Raises ``ASTFError``.
    """

    side = "server"

    def __init__(
        self,
        routes: HTTPRoute | Sequence[HTTPRoute],
        requests_per_connection: int = 0,
    ) -> None:
        where = "HTTPServer"
        self.routes: list[HTTPRoute] = listed(where, "routes", routes, HTTPRoute)
        if not self.routes:
            raise ASTFError(f"{where}: routes is empty, give an HTTPRoute")
        self._requests = whole(where, "requests_per_connection", requests_per_connection, 0, U32_MAX)

    def _messages(self) -> Sequence[HTTPRoute]:
        return self.routes

    def _to_json(self, buffers: Buffers) -> dict[str, Any]:
        fields = {"requests_per_connection": self._requests} if self._requests else {}
        return {**fields, "routes": [route.to_json(buffers) for route in self.routes]}


def check_side(where: str, program: Any, side: str) -> None:
    """Refuse HTTP of the other side. Raises ``ASTFError``."""
    if isinstance(program, HTTPProgram) and program.side != side:
        raise ASTFErrorBadParamCombination(
            f"{where}: program is an {type(program).__name__}, and this is the {side}'s side: "
            f"give an HTTP{side.capitalize()}"
        )


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _body(where: str, body: bytes | str | None, size: int | None) -> ASTFCmdSend | None:
    if body is None and size is None:
        return None
    if size is None:
        return ASTFCmdSend(body or b"") if body else None
    whole(where, "size", size, 0, U32_MAX)
    return ASTFCmdSend(b"", size=size, fill=body or b"*") if size else None


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give text")
    return value


def _headers(where: str, headers: Headers | None) -> list[list[str]] | None:
    if headers is None:
        return None
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    for pair in pairs:
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not all(isinstance(one, str) for one in pair):
            raise ASTFErrorWrongType(
                f"{where}: headers has {pair!r}, give a dict of texts, or pairs of name and value"
            )
    return [list(pair) for pair in pairs]


def _hash(where: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) != _HASH_DIGITS:
        raise ASTFErrorWrongType(f"{where}: body_sha256 is {value!r}, give {_HASH_DIGITS} hexadecimal digits")
    return value


def _usec(where: str, name: str, seconds: Any) -> float:
    return number(where, name, seconds, 0, _SECONDS_MAX) * 1e6
