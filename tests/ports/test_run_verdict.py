"""`allosaur run` through a router that loses packets, while another program sends to the same ports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur.server import LocalServer

#: One packet in a hundred is lost by count: a run that is late would lose another number.
pytestmark = pytest.mark.alone

PACKETS = 3_000
"""Of each direction: the router drops every hundredth."""
LOST = PACKETS // 100
NOISE_PPS = 240
PROFILE = """
from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.all import IP, UDP, Ether

MACS = {macs!r}


class Bursts:
    def get_streams(self, direction=0):
        here, there = ("10.0.0.2", "10.0.1.2") if direction == 0 else ("10.0.1.2", "10.0.0.2")
        packet = Ether(dst=MACS[direction]) / IP(src=here, dst=there) / UDP(sport=1025, dport=12) / bytes(18)
        mode = STLTXSingleBurst(total_pkts={packets}, pps=1_500)
        return [STLStream(name=f"to {{there}}", packet=STLPktBuilder(pkt=packet), mode=mode)]


def register():
    return Bursts()
"""
NOISE = """
import socket, sys, time
to = []
for interface in sys.argv[2:]:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    to.append(sock)
while True:
    for sock in to:
        sock.sendto(bytes(20), ("255.255.255.255", 9))
    time.sleep(1 / float(sys.argv[1]))
"""


@pytest.fixture
def router(network: Any, devices: ModuleType) -> Any:
    return devices.Router(network)


@contextlib.contextmanager
def noise(router: Any) -> Iterator[None]:
    """Let a program of the router's broadcast on both of its links."""
    script = [sys.executable, "-c", NOISE, str(NOISE_PPS), router.far(0), router.far(1)]
    program = subprocess.Popen(["ip", "netns", "exec", router.namespace, *script])
    try:
        yield
    finally:
        program.terminate()
        program.wait()


def drop_every_hundredth(router: Any) -> None:
    rules = [
        f'iifname "{router.far(link)}" udp dport 12 numgen inc mod 100 == 0 counter name "unlucky{link}" drop'
        for link in (0, 1)
    ]
    router.rules(
        "table inet lossy { counter unlucky0 { }\n counter unlucky1 { }\n chain pass {\n"
        " type filter hook forward priority 0;\n" + "\n".join(rules) + "\n}\n}\n"
    )


def start(
    server: LocalServer, router: Any, folder: Path, *options: str, packets: int = PACKETS
) -> subprocess.Popen[str]:
    """Begin to send the profile both ways through the router, by the command line."""
    profile = folder / "bursts.py"
    macs = [router.mac(0), router.mac(1)]
    profile.write_text(PROFILE.format(macs=macs, packets=packets), encoding="utf-8")
    where = ["--server", f"127.0.0.1:{server.rpc_port}", "--pub-port", str(server.pub_port)]
    command = [sys.executable, "-m", "allosaur.cli", "run", str(profile), "--ports", "0,1", *where]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, *options], stdout=pipe, stderr=pipe, text=True, env=environment, cwd=folder
    )


def run(router: Any, folder: Path, *options: str) -> tuple[int, str]:
    """Do that to the end; give the exit code and what was printed."""
    with LocalServer(ports=router.ports) as server:
        begun = start(server, router, folder, *options)
        out, err = begun.communicate(timeout=120)
    assert begun.returncode in (0, 1), err
    return begun.returncode, out


def test_packets_of_others_hide_no_loss(router: Any, tmp_path: Path) -> None:
    drop_every_hundredth(router)
    report = tmp_path / "report.html"
    with noise(router):
        code, out = run(router, tmp_path, "--json", "--report", str(report))
    dropped = router.counters()
    assert (dropped["unlucky0"], dropped["unlucky1"]) == (LOST, LOST)
    assert code == 1
    result = json.loads(out)
    assert (result["ok"], result["counted_by"]) == (False, "groups")
    assert result["lost_packets"] == 2 * LOST
    assert [one["lost_packets"] for one in result["directions"]] == [LOST, LOST]
    assert [one["received_by_port"] for one in result["directions"]] == [
        {"1": PACKETS - LOST},
        {"0": PACKETS - LOST},
    ]
    assert result["duplicate_packets"] == 0
    # The noise is there, and more of it than was lost.
    for port in ("0", "1"):
        assert result["ports"][port]["other_packets"] > LOST
        assert result["ports"][port]["rx_packets"] > PACKETS
    assert f"{2 * LOST} packets were sent and not received (1 %)" in result["verdict"]
    assert f"{2 * LOST} packets were sent and not received (1 %)" in report.read_text(encoding="utf-8")


def test_the_table_says_who_lost_what(router: Any, tmp_path: Path) -> None:
    drop_every_hundredth(router)
    with noise(router):
        code, out = run(router, tmp_path)
    assert code == 1
    rows = {line[:24].strip(): line.split() for line in out.splitlines() if line.strip()}
    assert rows["sent and lost"][-3:] == [str(LOST), str(LOST), str(2 * LOST)]
    assert int(rows["other packets received"][-1].replace(",", "")) > 2 * LOST
    assert f"FAILED: {2 * LOST} packets were sent and not received (1 %)" in out


def test_packets_of_others_are_no_failure(router: Any, tmp_path: Path) -> None:
    with noise(router):
        code, out = run(router, tmp_path, "--json")
    result = json.loads(out)
    assert (code, result["ok"], result["lost_packets"]) == (0, True, 0), result
    assert all(result["ports"][port]["other_packets"] > 0 for port in ("0", "1"))


def test_an_interface_that_goes_away_is_named(network: Any, router: Any, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    with LocalServer(ports=router.ports) as server, server.client(username="watcher") as client:
        options = ["-d", "forever", "--json", "--report", str(report)]
        begun = start(server, router, tmp_path, *options, packets=10_000_000)
        assert begun.stderr is not None
        assert "sending" in begun.stderr.readline()
        # The whole pair goes, as when a card is pulled.
        network.run(None, "ip", "link", "del", router.ports[1])
        deadline = time.monotonic() + 30
        while client.get_port(1).is_link_up and time.monotonic() < deadline:
            time.sleep(0.05)
        begun.send_signal(signal.SIGINT)
        out, err = begun.communicate(timeout=60)
        log = server.stderr
    result = json.loads(out)
    assert not result["ok"], err
    assert "the link of port 1 went down (the interface is gone)" in result["verdict"]
    assert any("link of port 1 went down" in warning for warning in result["warnings"])
    assert "he link of port 1 went down" in report.read_text(encoding="utf-8")
    assert f"the link of {router.ports[1]} went down: the interface is gone" in log


def test_what_to_look_at_when_all_is_lost(router: Any, tmp_path: Path) -> None:
    router.run("ip", "route", "del", "10.0.1.0/24")
    code, out = run(router, tmp_path, "--json")
    result = json.loads(out)
    assert (code, result["directions"][0]["lost_percent"]) == (1, 100.0)
    hints = "\n".join(result["hints"])
    assert f"frames of port 0 go to {router.mac(0)}, as the profile says" in hints
    assert "allosaur capture --rx 1" in hints
    # The router says by ICMP that it knows no way.
    assert "port 0 received" in hints and "allosaur capture --rx 0 -f icmp" in hints
