"""`allosaur http` and `http-server` on ports in memory: what it asks for, how often, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("binary")
Allosaur = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "connections", "requests"),
    [
        (["http://48.0.0.7:8080/a?b=c"], 100, 100),
        (["--requests-per-connection", "5"], 20, 100),
        (["https://48.0.0.7/", "--tls", "1.3", "--resume", "50%", "--host", "site.example"], 100, 100),
        (["--method", "POST", "--body", "text", "--size", "5000", "--header", "Accept: */*"], 100, 100),
    ],
)
def test_requests_are_offered_at_the_rate(
    words: list[str], connections: int, requests: int, allosaur: Allosaur
) -> None:
    words = [*words, "--local", "--rate", "100", "-d", "1", "--json"]
    found = allosaur("http", *words, in_time=True).json()
    assert found["ok"], found["reasons"]
    clients = found["outcomes"]["clients"]
    method = "POST" if "POST" in words else "GET"
    assert clients["completed"] == connections
    assert clients[f"http_requests.{method}"] == clients["http_responses.200"] == requests
    assert found["times"]["response"]["count"] == requests
    assert ("tls_handshakes.full" in clients) == ("--tls" in words)
    if method == "POST":
        assert clients["http_body_bytes.sent"] == 5000 * requests


def test_a_status_that_is_not_expected_fails_by_name(allosaur: Allosaur) -> None:
    ended = allosaur("http", "--local", "--rate", "20", "-d", "1", "--status", "404", "--json")
    assert ended.code == 1
    errors = {(one["side"], one["counter"]): one["count"] for one in ended.json()["errors"]}
    assert errors == {("client", "http_failures.status"): 20}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "URL is missing"),
        (["https://site.example/"], "needs an IPv4 address"),
        (["ftp://10.0.0.1/"], "no URL of http or https"),
        (["--local", "--rate", "0"], "not a number of requests"),
        (["--local", "--sources", "all"], "no network of IPv4"),
        (["--local", "--header", "nothing"], "write NAME: VALUE"),
        (["--local", "--method", "GET IT"], "is no method"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], said: str, allosaur: Allosaur) -> None:
    ended = allosaur("http", *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_server_is_looked_into_by_clients_of_ours(allosaur: Allosaur, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_bytes(b"text")
    words = ["--root", str(tmp_path), "--route", "/api/* status=201", "--local", "-d", "1", "--json"]
    found = allosaur("http-server", *words, in_time=True).json()
    assert found["ok"], found["reasons"]
    servers = found["outcomes"]["servers"]
    assert servers["http_responses.200"] == 10
    assert servers["http_body_bytes.sent"] == 40


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "0"], "is no port"),
        (["--root", "/nowhere/at/all"], "--root: there is no"),
        (["--root", __file__], "is a folder of 0 files"),
        (["--route", "/a b=c"], "give status=N"),
        (["--route", "/a size=x"], "give status=N"),
        (["--route", "a"], "must begin with /"),
        (["--tls", "--key", __file__], "belong together"),
        (["--certificate", __file__, "--key", __file__], "give both"),
    ],
)
def test_what_cannot_be_served_is_refused(words: list[str], said: str, allosaur: Allosaur) -> None:
    ended = allosaur("http-server", "--local", *words)
    assert ended.code == 2
    assert said in ended.err
