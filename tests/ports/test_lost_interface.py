"""An interface that goes, comes back under its name, or gets another MTU while the server has it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLError, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer
from scapy.all import IP, UDP, Ether

GIVE_UP_S = 20.0
PROFILE = """
from allosaur import STLPktBuilder, STLStream, STLTXCont
from scapy.all import IP, UDP, Ether


class Large:
    def get_streams(self, **_more):
        packet = Ether() / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(dport=12) / bytes(1400)
        return [STLStream(packet=STLPktBuilder(packet), mode=STLTXCont(pps=100))]


def register():
    return Large()
"""


def health(server: LocalServer) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{server.http_url}/healthz", timeout=GIVE_UP_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def status(server: LocalServer, *options: str) -> str:
    address = f"127.0.0.1:{server.rpc_port}"
    command = [sys.executable, "-m", "allosaur.cli", "status", "--server", address, *options]
    command += ["--pub-port", str(server.pub_port)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def until(what: str, holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + GIVE_UP_S
    while not holds():
        assert time.monotonic() < give_up, f"it is never so: {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["af_packet", "af_xdp"])
def test_an_interface_that_is_gone_is_named_and_one_made_anew_needs_a_restart(
    network: Any, kind: str
) -> None:
    near, other = network.veth()
    with LocalServer(ports=[f"{kind}:{near}", "memory"], http=0) as server, server.client() as client:
        client.reset()
        packet = Ether() / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1025, dport=12)
        client.add_streams(STLStream(packet=STLPktBuilder(packet), mode=STLTXCont(pps=100)), ports=[0])
        assert health(server) == (200, "ok\n")
        assert "link down" not in status(server)
        network.run(None, "ip", "link", "del", near)
        until("the link is down", lambda: not client.get_port(0).is_link_up)
        code, text = health(server)
        assert (code, f"port 0 ({near}): the interface is gone" in text) == (503, True), text
        assert "link down (the interface is gone)" in status(server)
        with pytest.raises(STLError, match="interface is gone: make it again, and restart the server"):
            client.start(ports=[0])
        network.run(None, "ip", "link", "add", near, "type", "veth", "peer", "name", other)
        for end in (near, other):
            network.run(None, "ip", "link", "set", end, "addrgenmode", "none", "up")
        anew = "the interface was removed and made anew"
        until("it is seen", lambda: anew in status(server))
        assert json.loads(status(server, "--json"))["ports"][0]["link_down"] == anew
        assert anew in health(server)[1]
        with pytest.raises(STLError, match=r"made anew.*restart the server"):
            client.start(ports=[0])


def test_an_mtu_that_is_cut_in_a_run_is_named_as_the_cause_of_the_loss(network: Any, tmp_path: Path) -> None:
    near, other = network.veth()
    path = tmp_path / "profile.py"
    path.write_text(PROFILE)
    with LocalServer(ports=[near, other]) as server, server.client(username="watcher") as client:
        command = [sys.executable, "-m", "allosaur.cli", "run", str(path), "-d", "forever", "--json"]
        command += ["--server", f"127.0.0.1:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until("packets arrive", lambda: client.get_stats()[1]["ipackets"] > 0)
        network.run(None, "ip", "link", "set", other, "mtu", "1300")
        until("packets are lost on the port", lambda: client.get_stats()[0]["oerrors"] > 0)
        until("it is told", lambda: bool(client.get_port(1).link_changes))
        begun.terminate()
        out, err = begun.communicate(timeout=60)
    result = json.loads(out)
    assert not result["ok"], err
    cause = "the link of port 1 got an MTU of 1,300 bytes (1,500 when the server started; longer packets are"
    assert cause in result["verdict"]
    assert result["ports"]["0"]["tx_lost_packets"] > 0
