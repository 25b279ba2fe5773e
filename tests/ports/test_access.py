"""A server that asks who connects from another machine for a name and token."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from allosaur import ASTFClient, STLClient, STLConnectionError
from allosaur.rpc._credentials import Credentials
from allosaur.rpc._transport import ZmqTransport
from allosaur.server import LocalServer, ServerStartError, find_binary

# One end is in the network of the machine, where tests of other processes have theirs.
NETWORK = f"10.{64 + os.getpid() // 256 % 64}.{os.getpid() % 256}"
OURS, THEIRS = f"{NETWORK}.2", f"{NETWORK}.1"
TOKEN = "0123456789abcdef"


class Guarded(NamedTuple):
    """A server behind a veth, and a folder for files with tokens."""

    server: LocalServer
    namespace: str
    folder: Path
    network: Any

    def client(self, line: str | None, kind: type[STLClient] = STLClient) -> STLClient:
        """A client on this side with such a line in its file."""
        file = written(self.folder / "client", line) if line is not None else None
        ports = {"sync_port": self.server.rpc_port, "async_port": self.server.pub_port}
        return kind(server=THEIRS, rpc_auth=file, verbose_level="none", **ports)


def written(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(f"{text}\n")
    file.chmod(mode)
    return file


@pytest.fixture
def guarded(network: Any, tmp_path: Path) -> Iterator[Guarded]:
    far = network.namespace("far")
    near, other = network.veth(far)
    for space, link, ip, peer_space, peer, peer_ip in [
        (None, near, OURS, far, other, THEIRS),
        (far, other, THEIRS, None, near, OURS),
    ]:
        network.run(space, "ip", "address", "add", f"{ip}/24", "dev", link)
        mac = network.mac(peer_space, peer)
        network.run(space, "ip", "neighbor", "replace", peer_ip, "lladdr", mac, "dev", link)
    inside = tmp_path / "allosaur-server"
    inside.write_text(f'#!/bin/sh\nexec ip netns exec {far} {find_binary()} "$@"\n')
    inside.chmod(0o755)
    tokens = written(tmp_path / "tokens", f"ann:{TOKEN}\nbob:{TOKEN}-bob")
    with LocalServer(listen="*", binary=inside, options=["--rpc-auth", str(tokens)]) as server:
        yield Guarded(server, far, tmp_path, network)


def test_a_token_lets_in_and_loopback_needs_none(guarded: Guarded) -> None:
    for line, kind in [(f"ann:{TOKEN}", STLClient), (f"# mine\nbob : {TOKEN}-bob", ASTFClient)]:
        client = guarded.client(line, kind)
        client.connect()
        assert len(client.get_all_ports()) == 2
        client.disconnect()
    where = [f"127.0.0.1:{guarded.server.rpc_port}", "--pub-port", str(guarded.server.pub_port)]
    status = [sys.executable, "-m", "allosaur.cli", "status", "--server", *where, "--json"]
    assert '"ports"' in guarded.network.run(guarded.namespace, *status)


def test_who_has_no_token_or_a_wrong_one_is_refused_and_told_why(guarded: Guarded) -> None:
    for line, told in [
        (None, "asks for a token, let ALLOSAUR_RPC_AUTH name a file"),
        ("ann:fedcba9876543210", r"no such name and token \('ann'\)"),
        (f"eve:{TOKEN}", r"no such name and token \('eve'\)"),
    ]:
        with pytest.raises(STLConnectionError, match=told):
            guarded.client(line).connect()
    log = guarded.server.stderr
    assert f"refused 'ann' from {OURS}: wrong name or token" in log
    assert f"refused 'eve' from {OURS}" in log
    assert TOKEN not in log


def test_an_address_that_is_wrong_too_often_is_not_listened_to(guarded: Guarded) -> None:
    while "not listened to" not in guarded.server.stderr:
        with pytest.raises(STLConnectionError, match="no such name and token"):
            guarded.client("ann:fedcba9876543210").connect()
    with pytest.raises(STLConnectionError, match="too many from here"):
        guarded.client(f"ann:{TOKEN}").connect()


def test_the_environment_names_the_file(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOSAUR_RPC_AUTH", str(written(guarded.folder / "mine", f"ann:{TOKEN}")))
    client = guarded.client(None)
    client.connect()
    client.disconnect()


@pytest.mark.parametrize(
    ("text", "mode", "listen", "told"),
    [
        (f"ann:{TOKEN}", 0o644, "192.0.2.1", "chmod 600"),
        ("ann:short", 0o600, "192.0.2.1", "line 1: a token has 16 to 255 bytes"),
        ("", 0o600, "192.0.2.1", "nobody is in it"),
        (f"ann:{TOKEN}", 0o600, "127.0.0.1", "--listen ADDRESS"),
    ],
)
def test_what_a_server_cannot_guard_with_is_refused(
    tmp_path: Path, text: str, mode: int, listen: str, told: str
) -> None:
    file = written(tmp_path / "tokens", text, mode)
    with (
        pytest.raises(ServerStartError, match=told) as error,
        LocalServer(listen=listen, options=["--rpc-auth", str(file)]),
    ):
        pass
    assert error.value.exit_code == 2


def test_a_server_that_takes_no_tokens_says_so(server: LocalServer) -> None:
    transport = ZmqTransport("127.0.0.1", server.rpc_port, server.pub_port, Credentials("ann", TOKEN))
    transport.open(5)
    with pytest.raises(STLConnectionError, match="takes no tokens"):
        transport.request(b"{}", 20)
    transport.close()


def test_the_command_line_says_why_a_server_refuses(guarded: Guarded) -> None:
    address = f"{THEIRS}:{guarded.server.rpc_port}"
    command = [sys.executable, "-m", "allosaur.cli", "status", "--server", address]
    command += ["--pub-port", str(guarded.server.pub_port)]
    for line, why in [
        (None, "if it asks for a token, let ALLOSAUR_RPC_AUTH name a file"),
        (f"ann:{TOKEN}x", "it has no such name and token ('ann')"),
    ]:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        variables.pop("ALLOSAUR_RPC_AUTH", None)
        if line is not None:
            variables["ALLOSAUR_RPC_AUTH"] = str(written(guarded.folder / "client", line))
        ended = subprocess.run(command, env=variables, capture_output=True, text=True)
        assert ended.returncode == 3, ended
        assert why in ended.stderr
        assert "no server answers" not in ended.stderr
