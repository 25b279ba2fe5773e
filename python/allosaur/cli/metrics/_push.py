"""Reads a server's metrics and sends them to a collector, by OTLP over HTTP; again and again, or once.

What is sent are sums since the beginning, so a reading that did not reach the collector is not sent
again: the next one says the same and more.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_OK, CommandError, bad_input, brief
from allosaur.cli.metrics import _otlp

if TYPE_CHECKING:
    from prometheus_client import Metric

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable of the environment with further headers, as all that speak OTLP have it: `NAME=VALUE,...`."""
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
_TIMEOUT_S = 10.0
_PAGE_BYTES_MAX = 64 << 20
_ANSWER_BYTES_MAX = 1 << 20
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_LATER = {429, 502, 503, 504}
"""The answers after which a client may try again (OTLP/HTTP, "Failures")."""


class Unreachable(Exception):
    """The server or the collector is not there now; it may be later."""


class Exporter:
    """Sends one server's metrics to one collector."""

    def __init__(self, source: str, collector: str, headers: Mapping[str, str]) -> None:
        """`source` and `collector` are whole URLs: that of `/metrics`, and that of `/v1/metrics`."""
        self._source = source
        self._collector = collector
        self._headers = headers
        self._readings = _otlp.Readings(urllib.parse.urlsplit(source).netloc)

    def send(self) -> int:
        """Read and send once; return how many series there were.

        Raises :class:`Unreachable`, and :class:`CommandError` for what stays wrong.
        """
        now_ns = time.time_ns()
        document = self._readings.document(self._read(), now_ns)
        self._post(json.dumps(document, separators=(",", ":")).encode())
        return _otlp.points(document)

    def _read(self) -> list[Metric]:
        request = urllib.request.Request(self._source, headers={"Accept": OPENMETRICS})
        # The server is in the lab: no proxy has a part in it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            page, _ = _exchange(opener, request, _PAGE_BYTES_MAX)
            return read(page)
        except urllib.error.HTTPError as error:
            said = error.read(200).decode(errors="replace").strip()
            if error.code in _LATER:
                raise Unreachable(f"{self._source} answers {error.code}: {said}") from error
            raise CommandError(
                f"{self._source} answers {error.code}, not metrics: is it a server's?"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._source}: {_reason(error)}; is there a server with --http?") from error
        except ValueError as error:
            raise CommandError(f"{self._source} is not a server's metrics: {brief(error)}") from error

    def _post(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **self._headers}
        request = urllib.request.Request(self._collector, gzip.compress(body, 1), headers, method="POST")
        try:
            answer, kind = _exchange(urllib.request.build_opener(), request, _ANSWER_BYTES_MAX)
        except urllib.error.HTTPError as error:
            said = brief(Exception(error.read(200).decode(errors="replace")))
            if error.code in _LATER:
                raise Unreachable(f"{self._collector} answers {error.code}: {said}") from error
            raise CommandError(
                f"{self._collector} refuses the metrics ({error.code}): {said}; "
                "does it take OTLP over HTTP in JSON there?"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._collector}: {_reason(error)}; is there a collector?") from error
        if kind.startswith("application/json"):
            _warn_of_rejected(answer)


def read(page: bytes) -> list[Metric]:
    """Read a page of OpenMetrics. Raises `ValueError` for what is none."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    try:
        return list(text_string_to_metric_families(page.decode()))  # type: ignore[no-untyped-call]
    except (LookupError, TypeError, AttributeError) as error:  # so its parser says that a line is none
        raise ValueError(f"it is not OpenMetrics: {error}") from error


def run(exporter: Exporter, interval_s: float | None) -> int:
    """Send once, or without end; return the exit code. Raises :class:`CommandError`."""
    if interval_s is None:
        try:
            print(f"Sent {exporter.send()} series.")
        except Unreachable as error:
            raise CommandError(str(error)) from error
        return EXIT_OK
    try:
        _go_on(exporter, interval_s)
    except KeyboardInterrupt:  # nothing is to be tidied up, so it ends at once, whatever it waits for
        return EXIT_INTERRUPTED


def _go_on(exporter: Exporter, interval_s: float) -> NoReturn:
    """Send again and again, and say when that does not work, once, and when it works again."""
    trouble = ""
    due_s = time.monotonic()
    while True:
        before, trouble = trouble, ""
        try:
            exporter.send()
        except Unreachable as error:
            trouble = str(error)
        if trouble != before:
            print(f"warning: {trouble}" if trouble else "It goes on.", file=sys.stderr, flush=True)
        due_s = max(due_s + interval_s, time.monotonic())
        time.sleep(max(0.0, due_s - time.monotonic()))


def source_url(text: str) -> str:
    """Return the URL of `/metrics`, of a port, a host with a port, or a URL. Raises :class:`CommandError`."""
    if text.isdecimal():
        text = f"127.0.0.1:{text}"
    return _url("--from", text if "://" in text else f"http://{text}", "/metrics")


def collector_url(text: str) -> str:
    """Return the URL that metrics are posted to: `/v1/metrics` where no path is given."""
    return _url("--otlp", text, "/v1/metrics")


def headers() -> dict[str, str]:
    """Return the further headers that the environment asks for. Raises :class:`CommandError`."""
    found = {}
    for pair in filter(None, (pair.strip() for pair in os.environ.get(HEADERS, "").split(","))):
        name, equals, value = pair.partition("=")
        value = urllib.parse.unquote(value.strip())
        if not equals or not _HEADER_NAME.fullmatch(name.strip()) or not _HEADER_VALUE.fullmatch(value):
            # Its value may be a secret.
            raise bad_input(f"{HEADERS} has no right value for {name.strip()!r}: give NAME=VALUE,NAME=VALUE")
        found[name.strip()] = value
    return found


def _url(option: str, text: str, path: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise bad_input(f"{option} {text}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise bad_input(f"{option} {text}: give a URL, such as http://127.0.0.1:4318")
    return urllib.parse.urlunsplit(parts._replace(path=parts.path.rstrip("/") or path, fragment=""))


def _exchange(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, bytes_max: int
) -> tuple[bytes, str]:
    """Return body and type of an answer."""
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        body: bytes = answer.read(bytes_max + 1)
        if len(body) > bytes_max:
            raise CommandError(f"{request.full_url} answers with more than {bytes_max >> 20} MiB")
        return body, answer.headers.get_content_type()


def _warn_of_rejected(answer: bytes) -> None:
    """Say what a collector did not take of what it accepted (OTLP, "Partial Success")."""
    try:
        partial: Any = json.loads(answer or b"{}").get("partialSuccess") or {}
        rejected, message = int(partial.get("rejectedDataPoints", 0)), str(partial.get("errorMessage", ""))
    except (ValueError, AttributeError, TypeError):
        return
    if rejected or message:
        print(f"warning: the collector rejects {rejected} values: {message}", file=sys.stderr, flush=True)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return brief(reason) if isinstance(reason, Exception) else str(reason)
