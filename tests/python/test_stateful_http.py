"""HTTP in the profile language: values and pipelining on the wire, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    ASTFError,
    HTTPClient,
    HTTPCounter,
    HTTPRandom,
    HTTPRequest,
    HTTPRoute,
    HTTPServer,
    HTTPToken,
    HTTPValues,
)


def client(*requests: str | HTTPRequest, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = HTTPClient(list(requests), **fields).to_json()["http_client"]
    return made


def test_values_are_said_by_name_and_used_in_texts() -> None:
    order = HTTPRequest("/orders", "POST", {"Cookie": "id=${id}"}, '{"item": ${n}, "$$": 1}')
    fixed = HTTPRequest("/fixed", "POST", body="${n}", size=100)
    said = client(
        order,
        fixed,
        pipeline=4,
        values={
            "n": HTTPCounter(1, 9, step=2, digits=3),
            "word": ["a", "b"],
            "kind": HTTPValues(["x"], "seq", each="connection"),
            "r": HTTPRandom(5, 7),
            "id": HTTPToken(8, each="connection"),
        },
    )
    assert said["pipeline"] == 4
    assert said["values"] == [
        {"name": "n", "counter": {"first": 1, "last": 9, "digits": 3, "step": 2}, "each": "request"},
        {"name": "word", "list": ["a", "b"], "distribution": "rand", "each": "request"},
        {"name": "kind", "list": ["x"], "distribution": "seq", "each": "connection"},
        {"name": "r", "random": {"first": 5, "last": 7, "digits": 0}, "each": "request"},
        {"name": "id", "token": 8, "each": "connection"},
    ]
    assert said["requests"][0] == {
        "path": "/orders",
        "method": "POST",
        "headers": [["Cookie", "id=${id}"]],
        "body": '{"item": ${n}, "$$": 1}',
    }
    # Bytes that are repeated are constant.
    assert "body" not in said["requests"][1] and "buf_index" in said["requests"][1]


def test_without_values_a_text_is_what_it_is() -> None:
    said = client(HTTPRequest("/${x}", "POST", body="$"))
    assert said["requests"][0]["path"] == "/${x}"
    assert "buf_index" in said["requests"][0]
    assert "values" not in said and "pipeline" not in said


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: client("/", pipeline=0), "HTTPClient: pipeline"),
        (lambda: client("/", pipeline=129), "HTTPClient: pipeline"),
        (lambda: client("/", values="x"), "give a dict of values by name"),
        (lambda: client("/", values={"x": "ab"}), "give a list of texts"),
        (lambda: client("/", values={"x": []}), "has 0 texts"),
        (
            lambda: client("/", "/${y}", values={"x": ["a"]}),
            r"requests\[1\]: path .* values has no 'y', only x",
        ),
        (lambda: client("/$x", values={"x": ["a"]}), r"write \$\$ for a \$"),
        (
            lambda: client(HTTPRequest("/", headers={"A": "${y}"}), values={"x": ["a"]}),
            "the header 'A' is",
        ),
        (lambda: client(HTTPRequest("/", body="${y}"), values={"x": ["a"]}), "body is"),
        (lambda: HTTPRoute.parse("'/a"), "with quotes in pairs"),
        (lambda: HTTPRoute.parse("/a header=x"), "or header=NAME:VALUE"),
        (lambda: HTTPRoute.parse("/a status=99"), "HTTPRoute: status"),
        (lambda: HTTPRoute.files("/nowhere/at/all"), "a folder of 0 files"),
        (lambda: HTTPCounter(5, 4), "HTTPCounter: first"),
        (lambda: HTTPCounter(0, 4, step=0), "HTTPCounter: step"),
        (lambda: HTTPRandom(0, 10**18), "HTTPRandom: last"),
        (lambda: HTTPToken(0), "HTTPToken: length"),
        (lambda: HTTPToken(each="flow"), "HTTPToken: each is 'flow', give 'request' or 'connection'"),
        (lambda: HTTPValues(["a"], "first"), "give 'rand' or 'seq'"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ASTFError, match=said):
        make()


def test_routes_are_read_from_lines_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "index.html").write_bytes(b"text")
    (tmp_path / "x*.bin").write_bytes(b"")
    line = "/api/* status=201 size=5 chunk=2 delay=0.5 header='X-A: b c'"
    server = HTTPServer([HTTPRoute.parse(line), *HTTPRoute.files(tmp_path)])
    routes = server.to_json()["http_server"]["routes"]
    first = {name: value for name, value in routes[0].items() if name != "buf_index"}
    assert first == {
        "path": "/api/*",
        "status": 201,
        "headers": [["X-A", "b c"]],
        "chunk_bytes": 2,
        "delay_usec": 5e5,
    }
    assert [route["path"] for route in routes[1:]] == ["/a%20b/index.html", "/a%20b/", "/x%2A.bin"]
    assert routes[1]["headers"] == [["Content-Type", "text/html"]]
    assert "buf_index" in routes[1] and "buf_index" not in routes[3]
