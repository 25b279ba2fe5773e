"""`allosaur http-server` in front of curl: files, sizes and answers by path, over HTTP and HTTPS."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur.server import LocalServer

DATA = Path(__file__).resolve().parents[1] / "data" / "tls"
PAIR = ["--certificate", str(DATA / "server.pem"), "--key", str(DATA / "server.key")]
NAME = "radius.example.org"
SERVER = "48.0.0.1"
PATIENCE_S = 60
PAGE = b"<p>text</p>"


@pytest.fixture
def people(network: Any, real: ModuleType) -> Any:
    return real.Host(network, "people", number=1)


@contextmanager
def serving(people: Any, talks: ModuleType, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in front of a host, until it is interrupted."""
    ports = ["dummy", people.near]
    with LocalServer(ports=ports, stateful=True) as server:
        with server.client() as client:
            client.reset()
            talks.join(client, ports, [people])
        where = ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        line = [sys.executable, "-m", "allosaur.cli", "http-server", *words, *where, "--json"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def ended(process: subprocess.Popen[str]) -> Any:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert out, err
    return json.loads(out)


def fetched(people: Any, url: str, *options: str) -> tuple[str, str]:
    """The body of an answer, and its status, type and size."""
    form = "\n%{http_code} %{content_type} %{size_download}"
    # Until it serves, nobody answers.
    again = ["--connect-timeout", "2", "--retry", str(PATIENCE_S), "--retry-delay", "1", "--retry-all-errors"]
    said = str(people.run("curl", "-s", *again, *options, "-w", form, url))
    body, _, facts = said.rpartition("\n")
    return body, facts


@pytest.mark.parametrize("is_tls", [False, True])
def test_curl_gets_files_sizes_and_answers(
    is_tls: bool, people: Any, talks: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "index.html").write_bytes(PAGE)
    (tmp_path / "a b" / "one.txt").write_bytes(b"1" * 5_000)
    words = ["--root", str(tmp_path), "--size", "77", "--port", "8443"]
    words += ["--route", "/api/* status=201 size=5 header='X-A: b' delay=0.01"]
    base, options = f"http://{SERVER}:8443", []
    if is_tls:
        words += ["--tls", *PAIR]
        base = f"https://{NAME}:8443"
        options = ["--resolve", f"{NAME}:8443:{SERVER}", "--cacert", str(DATA / "ca.pem")]
    with serving(people, talks, *words) as process:
        page = PAGE.decode()
        assert fetched(people, f"{base}/", *options) == (page, f"200 text/html {len(PAGE)}")
        assert fetched(people, f"{base}/index.html", *options)[0] == page
        assert fetched(people, f"{base}/a%20b/one.txt", *options) == ("1" * 5_000, "200 text/plain 5000")
        said, facts = fetched(people, f"{base}/api/x", "-i", *options)
        assert "X-A: b" in said and facts.startswith("201 ")
        assert fetched(people, f"{base}/else", *options)[1] == "200  77"
        found = ended(process)
    servers = found["outcomes"]["servers"]
    assert (servers["http_responses.200"], servers["http_responses.201"]) == (4, 1)
    assert not [name for name in servers if name.startswith("http_failures")]
