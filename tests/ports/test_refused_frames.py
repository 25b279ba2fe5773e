"""Frames that an interface refuses: counted as lost on the port, and no hindrance to others."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXCont, STLTXSingleBurst
from allosaur.server import LocalServer
from scapy.all import IP, UDP, Ether

GIVE_UP_S = 20.0
KINDS = ("af_packet", "af_xdp")
#: Of Linux: an interface that is a file to this process.
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
PROFILE = """
from allosaur import STLPktBuilder, STLStream, STLTXSingleBurst
from scapy.all import IP, UDP, Ether


class Bursts:
    def get_streams(self, **_more):
        streams = []
        for size, packets in ((60, 400), (1514, 20)):
            packet = Ether(dst="02:00:00:00:00:09") / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(dport=12)
            mode = STLTXSingleBurst(pps=400, total_pkts=packets)
            streams.append(STLStream(packet=STLPktBuilder(packet / bytes(size - 42)), mode=mode))
        return streams


def register():
    return Bursts()
"""


def udp(size: int) -> Any:
    """A UDP packet of so many bytes without FCS."""
    packet = Ether(dst="02:00:00:00:00:09") / IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1025, dport=12)
    return packet / bytes(size - len(packet))


def burst(size: int, packets: int, pps: float = 1_000) -> STLStream:
    return STLStream(packet=STLPktBuilder(udp(size)), mode=STLTXSingleBurst(total_pkts=packets, pps=pps))


def run(client: STLClient, *streams: STLStream) -> dict[str, Any]:
    """Send streams to their end; what the port counts then is final."""
    client.remove_all_streams(ports=[0])
    client.add_streams(list(streams), ports=[0])
    client.start(ports=[0])
    client.wait_on_traffic(ports=[0])
    stats: dict[str, Any] = client.get_stats()[0]
    return stats


def until(what: str, holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + GIVE_UP_S
    while not holds():
        assert time.monotonic() < give_up, f"it is never so: {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_longer_than_the_other_ends_mtu_are_lost_on_the_port(network: Any, kind: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(far, "ip", "link", "set", other, "mtu", "1400")
    with LocalServer(ports=[f"{kind}:{near}"]) as server, server.client() as client:
        client.reset()
        client.clear_stats()
        stats = run(client, burst(60, 2_000), burst(1514, 30, pps=15))
        assert (stats["opackets"], stats["oerrors"], stats["missed_packets"]) == (2_000, 30, 0)
        assert stats["obytes"] == 2_000 * 64
        assert {size: count for size, count in stats["tx_by_size"].items() if count} == {"64": 2_000}
        assert network.received(far, other) == (2_000, 2_000 * 60)
        assert client.get_xstats(0)["tx_errors"] == 30
        # What was refused is gone, also when the other end takes such frames again.
        network.run(far, "ip", "link", "set", other, "mtu", "1500")
        stats = run(client, burst(60, 7), burst(1514, 5))
        assert (stats["opackets"], stats["oerrors"]) == (2_012, 30)
        assert network.received(far, other)[0] == 2_012


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_nothing_but_refused_frames_ends(network: Any, kind: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(far, "ip", "link", "set", other, "mtu", "1400")
    with LocalServer(ports=[f"{kind}:{near}"]) as server, server.client() as client:
        client.reset()
        stats = run(client, burst(1514, 3_000, pps=3_000))
        assert (stats["opackets"], stats["obytes"], stats["oerrors"]) == (0, 0, 3_000)
        assert network.received(far, other)[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_mtu_that_is_mended_while_traffic_runs_lets_frames_leave(network: Any, kind: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(far, "ip", "link", "set", other, "mtu", "1400")
    with LocalServer(ports=[f"{kind}:{near}"]) as server, server.client() as client:
        client.reset()
        stream = STLStream(packet=STLPktBuilder(udp(1514)), mode=STLTXCont(pps=1_000))
        client.add_streams(stream, ports=[0])
        client.start(ports=[0])
        until("frames are lost", lambda: client.get_stats()[0]["oerrors"] > 0)
        network.run(far, "ip", "link", "set", other, "mtu", "1500")
        until("frames leave", lambda: network.received(far, other)[0] > 100)
        client.stop(ports=[0])
        assert client.get_stats()[0]["opackets"] == network.received(far, other)[0]


@pytest.mark.parametrize("end", ["ours", "the other"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaves_after_a_stop(network: Any, kind: str, end: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    down = (None, near) if end == "ours" else (far, other)
    with LocalServer(ports=[f"{kind}:{near}"]) as server, server.client() as client:
        client.reset()
        stream = STLStream(packet=STLPktBuilder(udp(60)), mode=STLTXCont(pps=20_000))
        client.add_streams(stream, ports=[0])
        client.start(ports=[0])
        until("frames leave", lambda: network.received(far, other)[0] > 0)
        network.run(down[0], "ip", "link", "set", down[1], "down")
        until("frames wait", lambda: client.get_stats()[0]["queue_full"] > 0)
        client.stop(ports=[0])
        stopped = client.get_stats()[0]
        assert stopped["oerrors"] > 0, "what waited is lost, and counted"
        network.run(down[0], "ip", "link", "set", down[1], "up")
        until("the link is up", lambda: client.get_port_info(ports=[0])[0]["link"] == "UP")
        stats = run(client, burst(60, 10))
        assert stats["opackets"] == stopped["opackets"] + 10
        assert stats["oerrors"] == stopped["oerrors"]
        assert network.received(far, other)[0] == stats["opackets"]


def test_a_tap_that_nobody_reads_loses_what_has_no_room_and_no_more(network: Any) -> None:
    tap, name = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK), f"tap{os.getpid() % 10**6}"
    try:
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        network.run(None, "ip", "link", "set", name, "addrgenmode", "none", "up")
        with LocalServer(ports=[name]) as server, server.client() as client:
            client.reset()
            stats = run(client, burst(60, 5_000, pps=10_000))
            assert stats["opackets"] + stats["oerrors"] == 5_000
            assert 0 < stats["opackets"] < 5_000
            left = stats["opackets"]
            while left:
                left -= len(os.read(tap, 2_000)) == 60
            with pytest.raises(BlockingIOError):
                os.read(tap, 2_000)
            # There is room again.
            assert run(client, burst(60, 10))["opackets"] == stats["opackets"] + 10
    finally:
        os.close(tap)


def test_the_result_of_a_run_names_what_was_lost_on_the_port(network: Any, tmp_path: Path) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(far, "ip", "link", "set", other, "mtu", "1400")
    path = tmp_path / "profile.py"
    path.write_text(PROFILE)
    command = [sys.executable, "-m", "allosaur.cli", "run", str(path), "--local", "--local-ports", near]
    ended = subprocess.run([*command, "-m", "1", "-d", "60", "--json"], capture_output=True, text=True)
    assert ended.returncode == 1, ended
    result = json.loads(ended.stdout)
    port = result["ports"]["0"]
    assert (port["tx_packets"], port["tx_lost_packets"], port["offered_packets"]) == (400, 20, 420)
    assert "20 of port 0's packets never left it" in result["verdict"]
