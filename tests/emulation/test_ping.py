"""Emulated clients ping each other, and Linux pings them."""

from __future__ import annotations

import sys
from typing import Any

from allosaur.server import LocalServer

# Asks each host once, all at the same time, and prints those that answered with all that was asked.
PING = """
import socket, struct, sys
line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
line.settimeout(30)
data = bytes(range(48))
total = sum(struct.unpack("!28H", struct.pack("!BBHHH", 8, 0, 0, 7, 1) + data))
while total >> 16:
    total = (total & 0xFFFF) + (total >> 16)
for host in sys.argv[1:]:
    line.sendto(struct.pack("!BBHHH", 8, 0, total ^ 0xFFFF, 7, 1) + data, (host, 0))
waiting = set(sys.argv[1:])
while waiting:
    answer, (host, _) = line.recvfrom(2000)
    if answer[20] == 0 and answer[24:] == struct.pack("!HH", 7, 1) + data:
        waiting.discard(host)
        print(host)
"""
ARP_AND_ICMP = {"arp": {}, "icmp": {}}
PINGS = 20


def ping(door: Any, doors: Any, tunnel: dict[str, Any], number: int) -> dict[str, int]:
    """Have a client ping its gateway, and give the statistics once all answers are there."""
    who = {"tun": tunnel, "mac": doors.mac(number)}
    doors.await_it(
        lambda: any(door.call("ctx_client_get_info", tun=tunnel, macs=[who["mac"]])[0]["dgw"]["rmac"]),
        f"client {number} never found its gateway",
    )
    door.call("icmp_c_start_ping", **who, amount=PINGS, pace=100, timeout=30)
    found: dict[str, int] = door.await_counter("repliesInOrder", PINGS, "icmp_c_get_ping_stats", **who)
    return found


def test_clients_of_two_ports_find_and_ping_each_other(door: Any, doors: Any) -> None:
    near, far = (door.add_namespace(port, arp={}, icmp={}) for port in (0, 1))
    door.add_clients(near, range(1, 51), **ARP_AND_ICMP)
    door.add_clients(far, range(51, 101), gateway=doors.ipv4(7), **ARP_AND_ICMP)
    for number in (51, 100):
        found = ping(door, doors, far, number)
        assert found["requestsSent"] == PINGS
    assert door.counters("arp_ns_cnt", tun=near)["pktTxReply"] >= 1
    assert door.counters("icmp_ns_cnt", tun=near)["pktRxIcmpQuery"] >= 2 * PINGS


def test_linux_pings_a_hundred_of_them(network: Any, doors: Any) -> None:
    host = network.namespace("host")
    near, far = network.veth(host)
    network.run(host, "ip", "address", "add", "10.1.255.254/16", "dev", far)
    with (
        LocalServer(ports=[f"af_packet:{near}"], emu=True) as server,
        doors.Door(server.emu_port) as door,
    ):
        tunnel = door.add_namespace(0, arp={}, icmp={})
        door.add_clients(tunnel, range(1, 101), gateway="10.1.255.254", **ARP_AND_ICMP)
        hosts = [doors.ipv4(number) for number in range(1, 101)]
        answered = network.run(host, sys.executable, "-c", PING, *hosts)
        assert sorted(answered.split()) == sorted(hosts)
        neighbors = network.run(host, "ip", "neighbor", "show", "dev", far)
        for number in range(1, 101):
            octets = ":".join(f"{byte:02x}" for byte in doors.mac(number))
            assert f"{doors.ipv4(number)} lladdr {octets}" in neighbors
