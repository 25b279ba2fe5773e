"""HTTP against nginx, curl and wrk: statuses and bodies agree, and failures have their names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import TLS, HTTPClient, HTTPCounter, HTTPRequest, HTTPRoute, HTTPServer, HTTPValues

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"
PAIR = (DATA / "server.pem", DATA / "server.key")
NAME = "radius.example.org"
SERVER = "48.0.0.1"
CONNECTIONS = 100
#: Bytes of nginx's files by name: one, a segment, many.
FILES = {"one": 1, "small": 1_000, "large": 300_000}


@pytest.fixture
def host(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "web")


@pytest.fixture
def people(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "people", number=1)


def counted(client: Any, side: str) -> dict[str, int]:
    """What a side counted of HTTP and TLS, by name and label, but what is 0."""
    rows = client.get_flow_outcomes("_")["applications"]
    return {f"{row['name']}.{row['label']}": row[side] for row in rows if row[side]}


def failures(found: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in found.items() if name.startswith("http_failures")}


def anything() -> HTTPServer:
    return HTTPServer(HTTPRoute())


def files(real: ModuleType) -> dict[str, bytes]:
    return {name: real.body(size) for name, size in FILES.items()}


def expecting(name: str, content: bytes) -> HTTPRequest:
    """A request for a file whose every byte is judged."""
    digest = hashlib.sha256(content).hexdigest()
    return HTTPRequest(f"/{name}", body_bytes=len(content), body_sha256=digest, status=200)


@pytest.mark.parametrize("version", [None, "1.2", "1.3"])
def test_our_clients_are_served_by_nginx(
    version: str | None, host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    contents = files(real)
    asked = [expecting(name, content) for name, content in contents.items()]
    asked += [HTTPRequest("/none", status=404), HTTPRequest("/small", "HEAD", body_bytes=0)]
    tls = TLS(version=version, server_name=NAME, authorities=DATA / "ca.pem") if version else None
    with real.Nginx(host, tmp_path, contents, tls=PAIR) as nginx:
        profile = talks.profile(
            HTTPClient(asked, host=NAME),
            anything(),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
            port=443 if version else 80,
            tls=(tls, None),
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            traffic = talks.run(client, profile)
            outcomes, found = client.get_flow_outcomes("_"), counted(client, "client")
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert outcomes["client"]["completed"] == CONNECTIONS
    assert failures(found) == {}
    requests = len(asked) * CONNECTIONS
    assert found["http_requests.GET"] + found["http_requests.HEAD"] == requests
    assert outcomes["times"]["response"]["count"] == requests
    ours = {int(name[-3:]): count for name, count in found.items() if name.startswith("http_responses")}
    assert ours == Counter(int(status) for _, status, *_ in nginx.requests())
    assert ours == {200: 4 * CONNECTIONS, 404: CONNECTIONS}
    # What nginx says of 404 has a body, too.
    assert found["http_body_bytes.received"] > sum(FILES.values()) * CONNECTIONS


@pytest.mark.parametrize("is_tls", [False, True])
def test_nginx_is_asked_with_values_and_ahead_of_its_answers(
    is_tls: bool, host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    asked = [
        HTTPRequest("/${name}?n=${n}", headers={"X-Bytes": "${n}.${user}"}, status=200),
        HTTPRequest("/none", headers={"X-Bytes": "${n}.${user}"}, body="${n}", status=404),
    ]
    client = HTTPClient(
        asked,
        host=NAME,
        requests_per_connection=6,
        pipeline=4,
        values={
            "n": HTTPCounter(1, 10_000),
            "name": HTTPValues(["one", "small"], "seq"),
            "user": HTTPCounter(1, CONNECTIONS, each="connection"),
        },
    )
    tls = TLS(server_name=NAME) if is_tls else None
    with real.Nginx(host, tmp_path, files(real), tls=PAIR) as nginx:
        profile = talks.profile(
            client,
            anything(),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
            port=443 if is_tls else 80,
            tls=(tls, None),
        )
        with talks.generator([host.near, "dummy"], [host]) as generator:
            talks.run(generator, profile)
            found = counted(generator, "client")
    assert failures(found) == {}
    assert (found["http_responses.200"], found["http_responses.404"]) == (3 * CONNECTIONS, 3 * CONNECTIONS)
    logged = nginx.requests()
    numbers = [line[3].split(".") for line in logged]
    # Each number once, and each user for all requests of one connection.
    assert sorted(int(n) for n, _ in numbers) == list(range(1, 6 * CONNECTIONS + 1))
    assert set(Counter(user for _, user in numbers).values()) == {6}
    paths = Counter(line[0].split("?")[0] for line in logged)
    assert paths == {"/one": 1.5 * CONNECTIONS, "/small": 1.5 * CONNECTIONS, "/none": 3 * CONNECTIONS}
    for line, (number, _) in zip(logged, numbers, strict=True):
        assert line[0] in ("/none", f"/one?n={number}", f"/small?n={number}")


def test_a_status_or_body_that_is_not_expected_fails_by_name(
    host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    asked = [
        HTTPRequest("/none"),
        HTTPRequest("/small", body_bytes=999),
        HTTPRequest("/small", body_sha256="0" * 64),
        HTTPRequest("/small"),
    ]
    with real.Nginx(host, tmp_path, files(real)):
        profile = talks.profile(
            HTTPClient(asked),
            anything(),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            talks.run(client, profile)
            found = counted(client, "client")
    assert failures(found) == {
        "http_failures.status": CONNECTIONS,
        "http_failures.body_length": CONNECTIONS,
        "http_failures.body_hash": CONNECTIONS,
    }


def test_plain_text_on_the_port_of_tls_is_a_status(
    host: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    with real.Nginx(host, tmp_path, files(real), tls=PAIR):
        profile = talks.profile(
            HTTPClient("/small"),
            anything(),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
            port=443,
        )
        with talks.generator([host.near, "dummy"], [host]) as client:
            talks.run(client, profile)
            found = counted(client, "client")
    # "The plain HTTP request was sent to HTTPS port".
    assert found["http_responses.400"] == CONNECTIONS
    assert failures(found) == {"http_failures.status": CONNECTIONS}


def routes(content: bytes) -> HTTPServer:
    return HTTPServer(
        [
            HTTPRoute("/file", body=content),
            HTTPRoute("/chunked", body=content, chunk=1_000),
            HTTPRoute("/upload", status=201),
            HTTPRoute("/late", body=content, delay=0.2),
        ]
    )


def serving(talks: ModuleType, server: HTTPServer, tls: TLS | None = None) -> Any:
    return talks.profile(HTTPClient("/"), server, limit=0, port=443 if tls else 80, tls=(None, tls))


@pytest.mark.parametrize("is_tls", [False, True])
def test_curl_is_served_by_ours(is_tls: bool, people: Any, real: ModuleType, talks: ModuleType) -> None:
    content = real.body(50_000)
    tls = TLS(certificate=PAIR[0], key=PAIR[1], alpn=["http/1.1", "http/1.0"]) if is_tls else None
    port = 443 if is_tls else 80
    options = ["--resolve", f"{NAME}:{port}:{SERVER}", "--cacert", str(DATA / "ca.pem")]
    base = f"{'https' if is_tls else 'http'}://{NAME}"
    whole = (real.sha256(content), len(content))
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, serving(talks, routes(content), tls))
        for path in ("file", "chunked", "late", "file?x=[1-20]"):
            digest, size = real.Fetched(people, f"{base}/{path}", *options).result()
            assert (digest, size) == whole if "[" not in path else size == 20 * len(content)
        upload = ["--data-binary", "x" * 100_000, "-H", "Expect: 100-continue"]
        assert real.curl(people, f"{base}/upload", *options, *upload)[1] == 0
        chunks = ["-H", "Transfer-Encoding: chunked", "--data-binary", "y" * 10_000]
        assert real.curl(people, f"{base}/upload", *options, *chunks)[1] == 0
        assert real.curl(people, f"{base}/file", "--http1.0", *options) == whole
        talks.wait_until(lambda: counted(client, "server").get("http_responses.200") == 24)
        found = counted(client, "server")
    assert failures(found) == {}
    assert found["http_requests.GET"] == found["http_responses.200"] == 24
    assert found["http_requests.POST"] == found["http_responses.201"] == 2
    assert found["http_body_bytes.received"] == 110_000


def test_what_is_no_request_is_refused_and_counted(people: Any, talks: ModuleType) -> None:
    def said(request: bytes) -> str:
        script = (
            "import socket,sys\n"
            f"one = socket.create_connection(({SERVER!r}, 80), timeout=10)\n"
            f"one.sendall({request!r})\n"
            "sys.stdout.write(b''.join(iter(lambda: one.recv(4096), b'')).decode().split('\\r')[0])\n"
        )
        return str(people.run("python3", "-c", script))

    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, serving(talks, routes(b"text")))
        assert said(b"what is this\r\n\r\n") == "HTTP/1.1 400 Bad Request"
        assert said(b"GET / HTTP/2.0\r\n\r\n").startswith("HTTP/1.1 505 ")
        assert said(b"GET / HTTP/1.1\r\nA: " + b"a" * 20_000).startswith("HTTP/1.1 431 ")
        assert said(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").startswith(
            "HTTP/1.1 400 "
        )
        assert said(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith("HTTP/1.1 404 ")
        found = counted(client, "server")
    assert failures(found) == {"http_failures.malformed": 3, "http_failures.head_too_long": 1}


def test_requests_may_follow_each_other_before_their_answers(people: Any, talks: ModuleType) -> None:
    times = 30
    ask = b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n" * times
    ask += b"GET /late HTTP/1.1\r\nConnection: close\r\n\r\n"
    script = (
        "import socket\n"
        f"one = socket.create_connection(({SERVER!r}, 80), timeout=10)\n"
        f"one.sendall({ask!r})\n"
        "print(b''.join(iter(lambda: one.recv(4096), b'')).count(b'HTTP/1.1 200 OK'))\n"
    )
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, serving(talks, routes(b"text")))
        # More than a server reads ahead of its answers.
        assert int(people.run("python3", "-c", script)) == times + 1
        talks.wait_until(lambda: counted(client, "server").get("http_responses.200") == times + 1)
        assert failures(counted(client, "server")) == {}


def test_wrk_counts_what_ours_serve(people: Any, real: ModuleType, talks: ModuleType) -> None:
    content = real.body(1_000)
    with talks.generator(["dummy", people.near], [people]) as client:
        client.reset()
        talks.start(client, serving(talks, routes(content)))
        said = people.run("wrk", "-t1", "-c20", "-d1s", f"http://{SERVER}/file")
        requests = int(re.search(r"(\d+) requests in", said)[1])
        # Threads publish what they counted a little later.
        talks.wait_until(lambda: counted(client, "server").get("http_responses.200", 0) >= requests)
        found = counted(client, "server")
    assert requests > 0 and "Non-2xx" not in said and "Socket errors" not in said
    # It stops with some on the way.
    assert requests <= found["http_responses.200"] <= requests + 20
    # What was on its way when it stopped.
    assert set(failures(found)) <= {"http_failures.truncated"}
