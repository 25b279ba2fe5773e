"""Ports on the kernel's interfaces, against the kernel's own counters on the other side."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import time
from types import ModuleType
from typing import Any

import pytest
from allosaur import STLClient, STLError, STLFlowStats, STLPktBuilder, STLStream, STLTXCont, STLTXSingleBurst
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether

CAP_NET_RAW = 13
SETTLE_S = 10.0
#: Readings in which nothing came: a thread of a busy machine may stand still for a while.
STILL = 5


def burst(packet: Any, packets: int, pps: float = 100_000, **options: Any) -> STLStream:
    builder = STLPktBuilder(pkt=packet)
    return STLStream(packet=builder, mode=STLTXSingleBurst(total_pkts=packets, pps=pps), **options)


def udp(size: int = 60, **addresses: str) -> Any:
    """A UDP packet of so many bytes without FCS."""
    packet = Ether() / IP(src="10.0.0.2", dst="10.0.1.2", **addresses) / UDP(sport=1025, dport=12)
    return packet / bytes(size - len(packet))


def run(client: STLClient, streams: list[STLStream], port: int = 0) -> dict[Any, Any]:
    """Send streams from one port to their end. Gives the statistics when nothing moves any more."""
    client.reset()
    client.add_streams(streams, ports=[port])
    client.start(ports=[port])
    client.wait_on_traffic(ports=[port])
    return settled(client)


def settled(client: STLClient) -> dict[Any, Any]:
    """The statistics when all that was sent has arrived, or nothing has come for a while."""
    until = time.monotonic() + SETTLE_S
    stats: dict[Any, Any] = client.get_stats()
    still = 0
    while still < STILL and time.monotonic() < until:
        time.sleep(0.15)
        before, stats = stats["total"]["ipackets"], client.get_stats()
        total = stats["total"]
        if total["ipackets"] == before and before >= total["opackets"]:
            break
        still = still + 1 if total["ipackets"] == before else 0
    return stats


def test_the_kernel_counts_every_packet_that_was_sent(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    with LocalServer(ports=[near, "memory"]) as server, server.client() as client:
        stats = run(client, [burst(udp(60), 30_000, 300_000), burst(udp(1514), 1_000)])
        assert stats[0]["opackets"] == 31_000
        assert network.received(far, other) == (31_000, 30_000 * 60 + 1_000 * 1514)


def test_both_ends_of_a_pair_count_the_same(network: Any) -> None:
    near, other = network.veth()
    with LocalServer(ports=[f"af_packet:{near}", other], cores=2) as server, server.client() as client:
        # All fit into the 8,192 frames of the ring: nothing is lost when who reads it stands still.
        stats = run(client, [burst(udp(60 + 7 * n), 1_600, flow_stats=STLFlowStats(n)) for n in range(1, 6)])
        assert (stats[0]["opackets"], stats[1]["ipackets"]) == (8_000, 8_000)
        assert stats[0]["obytes"] == stats[1]["ibytes"]
        assert stats[0]["ipackets"] == 0, "a port does not receive what it sent itself"
        for n in range(1, 6):
            flow = client.get_pgid_stats([n])["flow_stats"][n]
            assert (flow["tx_pkts"][0], flow["rx_pkts"][1]) == (1_600, 1_600)


def test_vlan_tags_arrive_as_they_were_sent(network: Any) -> None:
    near, other = network.veth()
    inner = IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1025, dport=12) / bytes(range(40))
    frames = [
        bytes(Ether() / tags / inner)
        for tags in [
            Dot1Q(vlan=100, prio=3),
            Dot1AD(vlan=7) / Dot1Q(vlan=4094),
            Dot1Q(vlan=1) / Dot1Q(vlan=2),
        ]
    ]
    with LocalServer(ports=[near, other]) as server, server.client() as client:
        client.reset()
        client.set_service_mode(ports=[0, 1])
        capture = client.start_capture(rx_ports=[1])["id"]
        client.push_packets(frames, ports=[0], ipg_usec=100)
        settled(client)
        seen: list[dict[str, Any]] = []
        client.stop_capture(capture, seen)
        # The MAC addresses are the ports' own.
        assert [packet["binary"][12:] for packet in seen] == [frame[12:] for frame in frames]


def test_a_checksum_that_linux_left_to_the_hardware_is_whole(network: Any, offloads: ModuleType) -> None:
    offloads.checksums_are_whole(network, "{}")


def test_tcp_that_linux_left_uncut_arrives_in_segments(network: Any, offloads: ModuleType) -> None:
    stats = offloads.segments_arrive(network, "{}")
    assert stats[0]["rx_lost_packets"] == 0


def test_a_router_forwards_what_was_sent(network: Any) -> None:
    router, [(near, entry), (far, leaving)] = network.router("router")
    packets = 4_000  # twice that fits into the ring that receives
    with LocalServer(ports=[near, far]) as server, server.client() as client:
        client.reset()
        client.set_l2_mode(port=0, dst_mac=network.mac(router, entry))
        streams = [burst(udp(100), packets, 50_000, flow_stats=STLFlowStats(n)) for n in (1, 2)]
        client.add_streams(streams, ports=[0])
        client.start(ports=[0])
        client.wait_on_traffic(ports=[0])
        stats = settled(client)
        assert (stats[0]["opackets"], stats[1]["ipackets"]) == (2 * packets, 2 * packets)
        flows = client.get_pgid_stats([1, 2])["flow_stats"]
        assert [flows[n]["rx_pkts"][1] for n in (1, 2)] == [packets, packets]
    assert network.received(router, entry)[0] == 2 * packets
    assert network.sent(router, leaving)[0] == 2 * packets


def test_an_interface_that_goes_down_holds_traffic_up_and_loses_none(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    with LocalServer(ports=[near]) as server, server.client() as client:
        client.reset()
        stream = STLStream(packet=STLPktBuilder(pkt=udp()), mode=STLTXCont(pps=20_000))
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], duration=2)
        network.run(None, "ip", "link", "set", near, "down")
        until = time.monotonic() + SETTLE_S
        while client.get_stats()[0]["missed_packets"] == 0:
            assert time.monotonic() < until, "the link is down, and nothing is missed"
            time.sleep(0.05)
        network.run(None, "ip", "link", "set", near, "up")
        client.wait_on_traffic(ports=[0])
        stats = settled(client)
        assert stats[0]["opackets"] + stats[0]["missed_packets"] == 40_000
        assert network.received(far, other)[0] == stats[0]["opackets"]


def test_the_link_is_that_of_the_interface(network: Any) -> None:
    near, other = network.veth()
    with LocalServer(ports=[near, "memory"]) as server, server.client() as client:
        client.reset()
        client.add_streams(burst(udp(), 10), ports=[0])
        for end in (near, other):
            assert client.get_port_info(ports=[0])[0]["link"] == "UP"
            network.run(None, "ip", "link", "set", end, "down")
            assert client.get_port_info(ports=[0])[0]["link"] == "DOWN"
            with pytest.raises(STLError, match=r"Link state is DOWN.*ip link"):
                client.start(ports=[0])
            network.run(None, "ip", "link", "set", end, "up")
        client.start(ports=[0])
        client.wait_on_traffic(ports=[0])
        assert network.received(None, other)[0] == 10
        with pytest.raises(STLError, match="not supported for this NIC"):
            client.set_port_attr(ports=[0], link_up=False)


def test_what_arrives_while_nobody_reads_is_received_or_counted_as_lost(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    packets = 20_000
    script = (
        "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW);"
        f"s.bind(('{other}', 0)); frame = bytes(12) + b'\\x88\\xb5' + bytes(46);"
        f"[s.send(frame) for _ in range({packets})]"
    )
    with LocalServer(ports=[near]) as server, server.client() as client:
        client.reset()
        os.kill(server.pid or 0, signal.SIGSTOP)
        try:
            network.run(far, "python3", "-c", script)
        finally:
            os.kill(server.pid or 0, signal.SIGCONT)
        stats = settled(client)
        # The kernel is asked ten times a second.
        assert 0 < stats[0]["ipackets"] < packets
        assert stats[0]["ipackets"] + stats[0]["rx_lost_packets"] == packets
        assert stats[0]["ierrors"] == stats[0]["rx_lost_packets"]


def test_frames_have_the_time_at_which_the_kernel_got_them(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    pause_s = 0.05
    script = (
        "import socket, time; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW);"
        f"s.bind(('{other}', 0)); frame = bytes(12) + b'\\x88\\xb5' + bytes(46);"
        f"[(s.send(frame), time.sleep({pause_s})) for _ in range(4)]"
    )
    seen: list[dict[str, Any]] = []
    with LocalServer(ports=[near]) as server, server.client() as client:
        client.reset()
        client.set_service_mode(ports=[0])
        capture = client.start_capture(rx_ports=[0])["id"]
        os.kill(server.pid or 0, signal.SIGSTOP)
        try:
            network.run(far, "python3", "-c", script)
        finally:
            os.kill(server.pid or 0, signal.SIGCONT)
        settled(client)
        client.stop_capture(capture, seen)
    # The server read all of them at once, when it was woken.
    times = [packet["ts"] for packet in seen]
    assert len(times) == 4
    assert all(after - before > pause_s / 2 for before, after in itertools.pairwise(times))


def test_a_bridge_between_two_ports_loses_nothing(network: Any) -> None:
    inside = network.namespace("bridge")
    ports = [network.veth(inside) for _ in range(2)]
    network.run(inside, "ip", "link", "add", "bridge", "type", "bridge")
    for _, far in ports:
        network.run(inside, "ip", "link", "set", far, "master", "bridge")
    network.run(inside, "ip", "link", "set", "bridge", "up")
    with LocalServer(ports=[near for near, _ in ports]) as server, server.client() as client:
        client.reset()
        for port in (0, 1):
            client.add_streams(burst(udp(), 3_000, flow_stats=STLFlowStats(port)), ports=[port])
        client.start(ports=[0, 1])
        client.wait_on_traffic(ports=[0, 1])
        stats = settled(client)
        # The kernel on the bridge may send a few frames of its own: the groups are exact.
        assert all(stats[port]["ipackets"] >= 3_000 for port in (0, 1))
        flows = client.get_pgid_stats([0, 1])["flow_stats"]
        assert [flows[port]["rx_pkts"][1 - port] for port in (0, 1)] == [3_000, 3_000]


def test_frames_longer_than_the_mtu_are_refused_before_traffic(network: Any) -> None:
    near, other = network.veth(mtu=1300)
    too_long = [udp(1315), Ether() / Dot1Q(vlan=1) / IP() / UDP() / bytes(1319 - 46)]
    longest = [udp(1314), Ether() / Dot1Q(vlan=1) / IP() / UDP() / bytes(1318 - 46)]
    with LocalServer(ports=[near, other]) as server, server.client() as client:
        client.reset()
        for packet in too_long:
            with pytest.raises(STLError, match="raise the MTU"):
                run(client, [burst(packet, 1)])
            client.reset()
            with pytest.raises(STLError, match="raise the MTU"):
                client.push_packets([bytes(packet)], ports=[0])
        stats = run(client, [burst(packet, 10) for packet in longest])
        assert stats[1]["ibytes"] == 10 * (1314 + 1318 + 2 * 4)


def test_promiscuous_is_an_attribute_of_the_interface(network: Any) -> None:
    near, other = network.veth()
    with LocalServer(ports=[near, other]) as server:
        with server.client() as client:
            client.reset()
            for on in (True, False, True):
                client.set_port_attr(ports=[0], promiscuous=on)
                assert network.facts(None, near)["promiscuity"] == int(on)
                assert network.facts(None, other)["promiscuity"] == 0
        os.kill(server.pid or 0, signal.SIGKILL)
        while server.is_running():
            time.sleep(0.01)
        assert network.facts(None, near)["promiscuity"] == 0


def keep_only(capability: int | None) -> None:
    """Drop all capabilities of what is started next but one."""
    libc = ctypes.CDLL(None)
    last = int(open("/proc/sys/kernel/cap_last_cap").read())  # noqa: SIM115, PTH123
    for number in range(last + 1):
        if number != capability:
            libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP


def serve(ports: str, capability: int | None = None) -> subprocess.Popen[str]:
    command = [str(find_binary()), "serve", "--ports", ports, "--rpc-port", "0", "--pub-port", "0"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: keep_only(capability),
    )


def test_a_server_needs_one_capability_and_says_which(network: Any) -> None:
    near, _ = network.veth()
    without = serve(near)
    _, words = without.communicate(timeout=20)
    assert without.returncode == 3, words
    assert near in words and "CAP_NET_RAW" in words and "setcap" in words
    with serve(near, CAP_NET_RAW) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready ")
        server.terminate()
        _, log = server.communicate(timeout=20)
    assert server.returncode == 0, log


def test_interfaces_that_cannot_be_used_are_named_with_the_remedy(network: Any) -> None:
    near, _ = network.veth()
    network.run(None, "ip", "link", "set", near, "down")
    for ports, code, words in [
        ("alo-none", 2, ["'alo-none'", "no such interface", "ip link"]),
        (near, 3, [f"'{near}'", "is down", f"ip link set {near} up"]),
    ]:
        server = serve(ports, CAP_NET_RAW)
        _, problem = server.communicate(timeout=20)
        assert server.returncode == code
        assert all(word in problem for word in words), problem
