"""What the far kernel leaves to its interface, checksums and segments, as a port of ours receives it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

from allosaur import STLClient
from allosaur.server import LocalServer
from scapy.all import IP, TCP, UDP, Ether

_SETTLE_S = 10.0


def addressed(network: Any) -> tuple[str, str, str]:
    """A pair of veth whose far end is a host with an address. Gives its namespace, and both ends."""
    far = network.namespace("far")
    near, other = network.veth(far)
    network.run(far, "ip", "address", "add", "10.0.0.1/24", "dev", other)
    network.run(far, "ip", "neighbor", "add", "10.0.0.2", "lladdr", network.mac(None, near), "dev", other)
    return far, near, other


def checksums_are_whole(network: Any, description: str) -> None:
    """Receive datagrams whose checksums the far kernel left to the hardware; `description` is of the port."""
    far, near, _ = addressed(network)
    with LocalServer(ports=[description.format(near)]) as server, server.client() as client:
        client.reset()
        client.set_service_mode(ports=[0])
        capture = client.start_capture(rx_ports=[0])["id"]
        script = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            "[s.sendto(bytes([n] * (n + 1)), ('10.0.0.2', 9)) for n in range(20)]"
        )
        network.run(far, "python3", "-c", script)
        seen: list[dict[str, Any]] = []
        awaited(client, capture, seen, lambda: len(seen) >= 20)
        more: list[dict[str, Any]] = []
        client.stop_capture(capture, more)
        seen += more
    assert len(seen) == 20
    for packet in seen:
        frame = Ether(packet["binary"])
        found = frame[UDP].chksum
        del frame[UDP].chksum
        assert Ether(bytes(frame))[UDP].chksum == found


def awaited(client: STLClient, capture: int, seen: list[dict[str, Any]], enough: Callable[[], bool]) -> None:
    """Fetch what is captured until it is enough."""
    until = time.monotonic() + _SETTLE_S
    while not enough():
        assert time.monotonic() < until, f"{len(seen)} packets came, and not enough"
        more: list[dict[str, Any]] = []
        client.fetch_capture_packets(capture, more)
        seen += more


def segments_arrive(network: Any, description: str) -> Any:
    """Receive what the far kernel leaves to the hardware to cut into segments. Gives the statistics."""
    far, near, other = addressed(network)
    data = bytes(range(256)) * 50
    script = (
        "import socket; s = socket.create_connection(('10.0.0.2', 9));"
        "s.sendall(bytes(range(256)) * 50); s.recv(1)"
    )
    seen: list[dict[str, Any]] = []
    with LocalServer(ports=[description.format(near)]) as server, server.client() as client:
        client.reset()
        client.set_l2_mode(port=0, dst_mac=network.mac(far, other))
        client.set_service_mode(ports=[0])
        capture = client.start_capture(rx_ports=[0], bpf_filter="tcp")["id"]
        command = ["ip", "netns", "exec", far, "python3", "-c", script]
        sender = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            awaited(client, capture, seen, lambda: len(seen) > 0)
            syn = Ether(seen[0]["binary"])[TCP]
            answer = TCP(sport=9, dport=syn.sport, seq=7, ack=syn.seq + 1, flags="SA", window=20_000)
            answer.options = [("MSS", 1000)]
            packet = Ether() / IP(src="10.0.0.2", dst="10.0.0.1") / answer
            client.push_packets([bytes(packet)], ports=[0])
            # The initial window is ten segments, and an acknowledgment comes first.
            awaited(client, capture, seen, lambda: len(seen) >= 12)
            stats = client.get_stats()
        finally:
            sender.kill()
            sender.wait()
    segments = [Ether(packet["binary"]) for packet in seen[1:] if len(packet["binary"]) > 54]
    assert len(segments) >= 10
    for number, frame in enumerate(segments[:10]):
        offset = 1000 * number
        assert frame[TCP].seq == (syn.seq + 1 + offset) % 2**32
        assert bytes(frame[TCP].payload) == data[offset : offset + 1000]
        sums = frame[IP].chksum, frame[TCP].chksum
        del frame[IP].chksum, frame[TCP].chksum
        frame = Ether(bytes(frame))
        assert (frame[IP].chksum, frame[TCP].chksum) == sums
    return stats
