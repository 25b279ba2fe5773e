"""`allosaur run` of streams, flows and emulated clients at once, through one router of the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur.server import LocalServer

STREAMS = """
from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.all import IP, UDP, Ether


class Burst:
    def get_streams(self):
        packet = Ether(dst={mac!r}) / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1025, dport=12)
        mode = STLTXSingleBurst(total_pkts=500, pps=500)
        return [STLStream(packet=STLPktBuilder(pkt=packet / bytes(18)), mode=mode)]


def register():
    return Burst()
"""
FLOWS = """
from allosaur import *


class Asks:
    def get_profile(self):
        hosts = [ASTFIPGenDist([f"10.0.{{link}}.2", f"10.0.{{link}}.2"]) for link in (2, 3)]
        client, server = ASTFProgram(), ASTFProgram()
        client.send(b"ask")
        client.recv(6)
        server.recv(3)
        server.send(b"answer")
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=client, ip_gen=ASTFIPGen(*hosts), cps=20),
            server_template=ASTFTCPServerTemplate(program=server),
        )
        return ASTFProfile(default_ip_gen=ASTFIPGen(*hosts), templates=template)


def register():
    return Asks()
"""
CLIENTS = """
from allosaur import EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Ipv4, Mac


class Hosts:
    def get_profile(self, tunables):
        mac, ipv4 = Mac("02:00:00:70:00:01"), Ipv4("10.0.0.100")
        hosts = [EMUClientObj(mac[i], ipv4=ipv4[i], ipv4_dg={gateway!r}) for i in range(5)]
        arp = {{"arp": {{}}}}
        return EMUProfile(EMUNamespaceObj(EMUNamespaceKey(0), hosts, plugs=arp, def_c_plugs=arp))


def register():
    return Hosts()
"""
NAMES = ["streams", "flows", "clients"]


@pytest.fixture
def router(network: Any, devices: ModuleType) -> Any:
    """A router of two pairs of our ports."""
    return devices.Router(network, links=4)


def run(router: Any, folder: Path, gateway: str = "10.0.0.1") -> tuple[int, dict[str, Any]]:
    """Run all three; give the exit code and the document."""
    texts = (STREAMS.format(mac=router.mac(0)), FLOWS.format(), CLIENTS.format(gateway=gateway))
    profiles = [folder / f"{name}.py" for name in NAMES]
    for path, text in zip(profiles, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with LocalServer(ports=router.ports, emu=True) as server:
        with server.client() as client:
            client.reset()
            for port in range(4):
                client.set_l2_mode(port=port, dst_mac=router.mac(port))
        where = ["--server", f"127.0.0.1:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        command = [sys.executable, "-m", "allosaur.cli", "run", *map(str, profiles), *where]
        more = ["--emu-port", str(server.emu_port), "-d", "1", "--json"]
        done = subprocess.run(
            [*command, *more], capture_output=True, text=True, env=environment, timeout=120, check=False
        )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def reasons(result: dict[str, Any]) -> dict[str, list[str]]:
    return {name: one["reasons"] for name, one in result["loads"].items() if not one["ok"]}


def test_three_kinds_at_once_through_a_router(router: Any, tmp_path: Path) -> None:
    code, result = run(router, tmp_path)
    assert (code, reasons(result)) == (0, {}), result["verdict"]
    streams, flows, clients = (result["loads"][name] for name in NAMES)
    assert (streams["total"]["tx_packets"], streams["lost_packets"]) == (500, 0)
    assert flows["outcomes"]["clients"]["completed"] == flows["clients"]["begun_flows"] > 0
    assert clients["clients"] == {"asked": 5, "there": 5, "ready": 5, "waiting": {}, "namespaces": 1}
    kernel = router.counters()
    assert kernel["in0"] >= 500
    # Of each flow at least SYN, ACK and FIN go through the kernel.
    assert kernel["in2"] >= 3 * flows["clients"]["begun_flows"]


@pytest.mark.parametrize(
    ("rule", "gateway", "failed"),
    [
        ("udp dport 12 drop", "10.0.0.1", "streams"),
        ("tcp dport 80 drop", "10.0.0.1", "flows"),
        (None, "10.0.0.99", "clients"),
    ],
)
def test_each_kind_that_the_router_fails_alone_fails_the_whole_by_name(
    router: Any, tmp_path: Path, rule: str | None, gateway: str, failed: str
) -> None:
    if rule is not None:
        hook = "chain pass {\n type filter hook forward priority 0;\n " + rule + "\n}\n"
        router.rules("table inet bad {\n " + hook + "}\n")
    code, result = run(router, tmp_path, gateway)
    assert code == 1
    assert list(reasons(result)) == [failed], result["verdict"]
    assert all(one.startswith(f"{failed}: ") for one in result["reasons"])
