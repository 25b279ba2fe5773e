"""Fields of an application that were changed from Python, as a real nginx saw them: its log tells."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from allosaur.server import LocalServer

SERVER = "10.0.0.1"
CLIENTS = ["16.0.0.1", "16.0.0.100"]
BROWSERS = ["Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", "curl/8.9.1", "Wget/1.24", "Lynx/2.9.2"]
REQUEST = (
    b"GET /page.html?id=1 HTTP/1.1\r\n"
    b"Host: somewhere.example\r\n"
    b"User-Agent: nobody\r\n"
    b"Connection: close\r\n\r\n"
)
CONFIGURATION = """
daemon off;
user root;
worker_processes 1;
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    log_format told '$remote_addr|$status|$http_host|$http_user_agent|$arg_id';
    access_log {folder}/access.log told;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen {address}:80; root {folder}/root; }}
}}
"""
LINE = re.compile(r"(?P<client>[^|]*)\|(?P<status>\d+)\|(?P<host>[^|]*)\|(?P<agent>[^|]*)\|(?P<id>.*)")


class Nginx:
    """A real web server in a namespace, with a log of who asked for what."""

    def __init__(self, network: Any, folder: Path) -> None:
        self.namespace, [(self.near, self.far)] = network.router("web", links=1)
        network.run(self.namespace, "ip", "route", "add", "16.0.0.0/16", "via", "10.0.0.2", "dev", self.far)
        self.mac = network.mac(self.namespace, self.far)
        self._folder = folder
        (folder / "root").mkdir()
        (folder / "root" / "page.html").write_bytes(b"x" * 5000)
        self._configuration = folder / "nginx.conf"
        self._configuration.write_text(CONFIGURATION.format(folder=folder, address=SERVER), encoding="utf-8")

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Run it for as long as a ``with`` block lasts."""
        command = ["ip", "netns", "exec", self.namespace, "nginx", "-p", str(self._folder)]
        process = subprocess.Popen([*command, "-c", str(self._configuration)], stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 10
            while not (self._folder / "nginx.pid").exists():
                assert process.poll() is None and time.monotonic() < deadline, "nginx did not start"
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.communicate(timeout=10)

    def told(self) -> list[re.Match[str]]:
        """The lines of its log."""
        lines = (self._folder / "access.log").read_text(encoding="utf-8").splitlines()
        return [match for line in lines if (match := LINE.fullmatch(line))]


@pytest.fixture
def nginx(network: Any, tmp_path: Path) -> Iterator[Nginx]:
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx: scripts/setup.sh --tests installs it")
    web = Nginx(network, tmp_path)
    with web.serving():
        yield web


def profile(connections: int, **draw: Any) -> ASTFProfile:
    """Clients that ask for a page until the server closes; nobody of ours serves."""
    ip_gen = ASTFIPGen(
        dist_client=ASTFIPGenDist(CLIENTS),
        dist_server=ASTFIPGenDist([SERVER, SERVER]),
    )
    asks, nobody = ASTFProgram(), ASTFProgram()
    asks.send(REQUEST)
    asks.recv(5000)
    asks.wait_for_peer_close()
    nobody.recv(1)
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=asks, ip_gen=ip_gen, cps=200, limit=connections),
        server_template=ASTFTCPServerTemplate(program=nobody),
    )
    template.replace_header("Host", "www.example")
    template.replace_header("User-Agent", BROWSERS, **draw)
    template.replace_pattern(rb"id=(\d)", "7")
    return ASTFProfile(default_ip_gen=ip_gen, templates=template)


@pytest.mark.parametrize("order", ["seq", "rand"])
def test_a_real_server_sees_what_each_connection_drew(nginx: Nginx, tmp_path: Path, order: str) -> None:
    connections = 200
    # The second port is a sink: nobody of ours serves.
    with LocalServer(ports=[nginx.near, "dummy"], stateful=True) as server, server.client() as client:
        client.reset()
        client.set_l2_mode(port=0, dst_mac=nginx.mac)
        client.load_profile(profile(connections, distribution=order))
        client.start(duration=60)
        client.wait_on_traffic(timeout=100)
        stats = client.get_traffic_stats()["client"]
    assert stats["tcps_connects"] == stats["tcps_closed"] == connections
    told = nginx.told()
    assert len(told) == connections
    assert {line["status"] for line in told} == {"200"}
    assert {line["host"] for line in told} == {"www.example"}
    assert {line["id"] for line in told} == {"7"}
    agents = Counter(line["agent"].rstrip() for line in told)
    assert set(agents) == set(BROWSERS)
    if order == "seq":
        assert set(agents.values()) == {connections // len(BROWSERS)}
    assert len({line["client"] for line in told}) == 100, "each client of the pool asked"
