"""`allosaur run` through a router that loses packets, while another program sends to the same ports."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur.server import LocalServer

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
        f'iifname "{router.far(link)}" meta l4proto udp numgen inc mod 100 == 0 '
        f'counter name "unlucky{link}" drop'
        for link in (0, 1)
    ]
    router.rules(
        "table inet lossy { counter unlucky0 { }\n counter unlucky1 { }\n chain pass {\n"
        " type filter hook forward priority 0;\n" + "\n".join(rules) + "\n}\n}\n"
    )


def run(router: Any, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Send the profile both ways through the router, by the command line."""
    profile = folder / "bursts.py"
    macs = [router.mac(0), router.mac(1)]
    profile.write_text(PROFILE.format(macs=macs, packets=PACKETS), encoding="utf-8")
    with LocalServer(ports=router.ports) as server:
        where = ["--server", f"127.0.0.1:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        command = [sys.executable, "-m", "allosaur.cli", "run", str(profile), "--ports", "0,1", *where]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.run(
            [*command, *options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=environment,
            cwd=folder,
        )


def test_packets_of_others_hide_no_loss(router: Any, tmp_path: Path) -> None:
    drop_every_hundredth(router)
    report = tmp_path / "report.html"
    with noise(router):
        ended = run(router, tmp_path, "--json", "--report", str(report))
    dropped = router.counters()
    assert (dropped["unlucky0"], dropped["unlucky1"]) == (LOST, LOST)
    assert ended.returncode == 1, ended.stderr
    result = json.loads(ended.stdout)
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
        ended = run(router, tmp_path)
    assert ended.returncode == 1, ended.stderr
    rows = {line[:24].strip(): line.split() for line in ended.stdout.splitlines() if line.strip()}
    assert rows["sent and lost"][-3:] == [str(LOST), str(LOST), str(2 * LOST)]
    assert int(rows["other packets received"][-1].replace(",", "")) > 2 * LOST
    assert f"FAILED: {2 * LOST} packets were sent and not received (1 %)" in ended.stdout


def test_packets_of_others_are_no_failure(router: Any, tmp_path: Path) -> None:
    with noise(router):
        ended = run(router, tmp_path, "--json")
    result = json.loads(ended.stdout)
    assert (ended.returncode, result["ok"], result["lost_packets"]) == (0, True, 0), result
    assert all(result["ports"][port]["other_packets"] > 0 for port in ("0", "1"))
