"""UDP between us and sockets of the Linux kernel, and through its NAT: all messages arrive, and right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parent / "udp_peer.py"
PORT = 5353
FLOWS = 500


@pytest.fixture
def files(real: ModuleType, tmp_path: Path) -> tuple[Path, Path]:
    """A request and a response that fills its frame."""
    request, response = tmp_path / "request", tmp_path / "response"
    request.write_bytes(real.body(100, seed=11))
    response.write_bytes(real.body(1_400, seed=12))
    return request, response


def messages(talks: ModuleType, files: tuple[Path, Path], **options: Any) -> Any:
    """Clients that ask once and wait for the answer, and servers that answer."""
    request, response = (file.read_bytes() for file in files)
    client = talks.ASTFProgram(stream=False)
    client.send_msg(request)
    client.recv_msg(1)
    server = talks.ASTFProgram(stream=False)
    server.recv_msg(1)
    server.send_msg(response)
    return talks.profile(client, server, port=PORT, **options)


def peer(namespace: str, *words: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", namespace, sys.executable, str(PROGRAM), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_our_clients_ask_a_socket(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, files: tuple[Path, Path]
) -> None:
    host = real.Host(network, "web")
    profile = messages(
        talks,
        files,
        servers=(host.address, host.address),
        cps=1_000,
        limit=FLOWS,
        prefixes=("2001:db8:16::", host.prefix) if ipv6 else None,
    )
    answering = peer(host.namespace, "answer", str(PORT), *map(str, files))
    with talks.generator([host.near, "dummy"], [host]) as client:
        clients = talks.run(client, profile)["client"]
    answering.terminate()
    assert json.loads(answering.communicate()[0]) == {"right": FLOWS, "wrong": 0}
    assert clients["udps_connects"] == clients["udps_closed"] == FLOWS
    assert (clients["udps_sndpkt"], clients["udps_rcvpkt"]) == (FLOWS, FLOWS)
    assert clients["udps_rcvbyte"] == FLOWS * 1_400
    assert clients["udps_keepdrops"] == clients["err_cwf"] == clients["err_l4_cs"] == 0


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_sockets_ask_our_servers(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, files: tuple[Path, Path]
) -> None:
    host = real.Host(network, "people", number=1)
    prefixes = ("2001:db8:16::", "2001:db8:48::") if ipv6 else None
    address = "2001:db8:48::3000:1" if ipv6 else "48.0.0.1"
    with talks.generator(["dummy", host.near], [host]) as client:
        talks.start(client, messages(talks, files, prefixes=prefixes))
        asking = peer(host.namespace, "ask", address, str(PORT), *map(str, files), str(FLOWS))
        assert json.loads(asking.communicate()[0]) == {"right": FLOWS, "wrong": 0}
        client.stop()
        client.wait_on_traffic(timeout=talks.PATIENCE_S)
        servers = talks.counted(client)["server"]
    assert servers["udps_accepts"] == servers["udps_closed"] == FLOWS
    assert (servers["udps_rcvpkt"], servers["udps_sndpkt"]) == (FLOWS, FLOWS)
    assert servers["err_l4_cs"] == servers["err_no_template"] == 0


def test_messages_pass_a_nat(
    network: Any, devices: ModuleType, talks: ModuleType, files: tuple[Path, Path]
) -> None:
    nat = devices.Nat(network)
    nat.introduce(0, range(10, 60))
    profile = messages(
        talks,
        files,
        clients=("10.0.0.10", "10.0.0.59"),
        servers=("10.0.1.2", "10.0.1.2"),
        cps=1_000,
        limit=FLOWS,
    )
    with talks.generator(nat.ports) as client:
        talks.send_to(client, nat)
        traffic = talks.run(client, profile)
        table = nat.connections()
    clients, servers = traffic["client"], traffic["server"]
    assert clients["udps_closed"] == servers["udps_closed"] == FLOWS
    assert clients["udps_rcvbyte"] == servers["udps_sndbyte"] == FLOWS * 1_400
    assert servers["udps_rcvbyte"] == clients["udps_sndbyte"] == FLOWS * 100
    assert clients["udps_keepdrops"] == servers["udps_keepdrops"] == 0
    assert nat.counters()["invalid"] == 0
    assert {entry["reply-dst"] for entry in table if entry["protocol"] == "udp"} == {"10.0.1.1"}
    assert len([entry for entry in table if entry["protocol"] == "udp"]) == FLOWS
