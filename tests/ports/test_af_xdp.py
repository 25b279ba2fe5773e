"""AF_XDP ports on veth, against the kernel's own counters on the other side."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from allosaur import (
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Dot1Q, Ether

CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF = 12, 13, 39
SETTLE_S = 10.0
#: Readings in which nothing came: a thread of a busy machine may stand still for a while.
STILL = 5
MODES = ["native", "generic"]


def burst(packet: Any, packets: int, pps: float = 100_000, vm: Any = None, **options: Any) -> STLStream:
    builder = STLPktBuilder(pkt=packet, vm=vm)
    return STLStream(packet=builder, mode=STLTXSingleBurst(total_pkts=packets, pps=pps), **options)


def udp(size: int = 60, **addresses: str) -> Any:
    """A UDP packet of so many bytes without FCS."""
    packet = Ether() / IP(src="10.0.0.2", dst="10.0.1.2", **addresses) / UDP(sport=1025, dport=12)
    return packet / bytes(size - len(packet))


def sources() -> Any:
    """A program that gives each packet another source."""
    source = STLVmFlowVar("source", min_value="10.0.0.1", max_value="10.0.0.200", size=4, op="inc")
    return STLScVmRaw([source, STLVmWrFlowVar("source", pkt_offset="IP.src"), STLVmFixIpv4(offset="IP")])


def run(client: STLClient, streams: list[STLStream], *ports: int) -> dict[Any, Any]:
    """Send streams from ports to their end. Gives the statistics when nothing moves any more."""
    sending = list(ports) or [0]
    client.reset()
    client.add_streams(streams, ports=sending)
    client.start(ports=sending)
    client.wait_on_traffic(ports=sending)
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


def details(client: STLClient, port: int = 0) -> str:
    """What the server says it chose for a port."""
    return str(client.get_port_info(ports=[port])[0]["description"])


def has_program(network: Any, link: str) -> bool:
    return "xdp" in network.facts(None, link)


@pytest.mark.parametrize("mode", MODES)
def test_the_kernel_counts_every_packet_that_was_sent(network: Any, mode: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    with LocalServer(ports=[f"af_xdp:{near}:mode={mode}", "memory"]) as server, server.client() as client:
        assert f"{mode} XDP, copy, 1 hardware queue" in details(client)
        assert has_program(network, near)
        streams = [
            burst(udp(60), 30_000, 300_000),
            burst(udp(1514), 1_000),
            burst(udp(100), 5_000, vm=sources()),
        ]
        stats = run(client, streams)
        assert stats[0]["opackets"] == 36_000
        assert network.received(far, other) == (36_000, 30_000 * 60 + 1_000 * 1514 + 5_000 * 100)
    assert not has_program(network, near)


@pytest.mark.parametrize("mode", MODES)
def test_both_ends_of_a_pair_count_the_same(network: Any, mode: str) -> None:
    near, other = network.veth()
    ports = [f"af_xdp:{link}:mode={mode}" for link in (near, other)]
    with LocalServer(ports=ports, cores=2) as server, server.client() as client:
        # All fit into the 4,096 chunks that receive: nothing is lost when that thread stands still.
        streams = [burst(udp(60 + 7 * n), 800, flow_stats=STLFlowStats(n)) for n in range(1, 6)]
        stats = run(client, streams)
        assert (stats[0]["opackets"], stats[1]["ipackets"]) == (4_000, 4_000)
        assert stats[0]["obytes"] == stats[1]["ibytes"]
        assert stats[0]["ipackets"] == 0, "a port does not receive what it sent itself"
        for n in range(1, 6):
            flow = client.get_pgid_stats([n])["flow_stats"][n]
            assert (flow["tx_pkts"][0], flow["rx_pkts"][1]) == (800, 800)


def test_kinds_mix_and_send_both_ways(network: Any) -> None:
    near, other = network.veth()
    ports = [f"af_xdp:{near}", f"af_packet:{other}", "memory", "memory"]
    with LocalServer(ports=ports) as server, server.client() as client:
        stats = run(client, [burst(udp(), 3_000), burst(udp(300), 500, vm=sources())], 0, 1, 2, 3)
        assert [stats[port]["opackets"] for port in range(4)] == [3_500] * 4
        assert [stats[port]["ipackets"] for port in range(4)] == [3_500] * 4


def test_threads_that_share_a_hardware_queue_send_all_of_it(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    share = ["--poll", "adaptive"]
    with LocalServer(ports=[f"af_xdp:{near}"], cores=3, options=share) as server, server.client() as client:
        assert "1 hardware queue, shared by 4 threads" in details(client)
        stats = run(client, [burst(udp(), 60_000, 200_000), burst(udp(90), 30_000, vm=sources())])
        assert stats[0]["opackets"] == 90_000
        assert network.received(far, other)[0] == 90_000


def many_queues(network: Any, queues: int, *links: tuple[str | None, str]) -> None:
    """Give interfaces of veth more hardware queues."""
    if shutil.which("ethtool") is None:
        pytest.skip("there is no `ethtool`: install it")
    for namespace, link in links:
        network.run(namespace, "ethtool", "-L", link, "rx", str(queues), "tx", str(queues))


def flood(namespace: str, link: str, packets: int) -> list[str]:
    """A command that sends packets of many flows by a plain packet socket."""
    script = (
        "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW);"
        f"s.bind(('{link}', 0)); head = bytes(12) + bytes.fromhex('080045000020000000004011');"
        "frame = lambda n: head + bytes(2) + bytes([10, 0, 0, n % 251, 10, 1, 0, 1]) + bytes(26);"
        f"[s.send(frame(n)) for n in range({packets})]"
    )
    return ["ip", "netns", "exec", namespace, "python3", "-c", script]


def test_every_hardware_queue_is_read(network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    many_queues(network, 2, (None, near), (far, other))
    packets = 4_000
    with LocalServer(ports=[f"af_xdp:{near}"], cores=2) as server, server.client() as client:
        assert "2 hardware queues, shared by 3 threads" in details(client)
        stats = run(client, [burst(udp(), 20_000), burst(udp(90), 10_000, vm=sources())])
        assert stats[0]["opackets"] == 30_000
        assert network.received(far, other)[0] == 30_000
        subprocess.run(flood(far, other, packets), check=True)
        assert settled(client)[0]["ipackets"] == packets
    # One of two queues: what arrives on the other is the kernel's.
    with LocalServer(ports=[f"af_xdp:{near}:queues=1"]) as server, server.client() as client:
        assert "1 hardware queue" in details(client)
        client.reset()
        subprocess.run(flood(far, other, packets), check=True)
        assert 0 < settled(client)[0]["ipackets"] < packets


@pytest.mark.parametrize("queues", [1, 2])
def test_receive_threads_share_what_arrives(network: Any, queues: int) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    many_queues(network, queues, (None, near), (far, other))
    packets = 4_000
    options = ["--receive-threads", "2"]
    with LocalServer(ports=[f"af_xdp:{near}"], options=options) as server, server.client() as client:
        client.reset()
        subprocess.run(flood(far, other, packets), check=True)
        assert settled(client)[0]["ipackets"] == packets


@pytest.mark.parametrize("mode", MODES)
def test_vlan_tags_arrive_as_they_were_sent(network: Any, mode: str) -> None:
    near, other = network.veth()
    inner = IP(src="10.0.0.2", dst="10.0.1.2") / UDP(sport=1025, dport=12) / bytes(range(40))
    tags = [Dot1Q(vlan=100, prio=3), Dot1Q(vlan=1) / Dot1Q(vlan=4094)]
    frames = [bytes(Ether() / tag / inner) for tag in tags]
    ports = [f"af_xdp:{near}:mode={mode}", f"af_xdp:{other}:mode={mode}"]
    with LocalServer(ports=ports) as server, server.client() as client:
        client.reset()
        client.set_service_mode(ports=[0, 1])
        capture = client.start_capture(rx_ports=[1])["id"]
        client.push_packets(frames, ports=[0], ipg_usec=100)
        settled(client)
        seen: list[dict[str, Any]] = []
        client.stop_capture(capture, seen)
        # The MAC addresses are the ports' own.
        assert [packet["binary"][12:] for packet in seen] == [frame[12:] for frame in frames]


@pytest.mark.parametrize("mode", MODES)
def test_a_checksum_that_linux_left_to_the_hardware_is_whole(
    network: Any, offloads: ModuleType, mode: str
) -> None:
    offloads.checksums_are_whole(network, f"af_xdp:{{}}:mode={mode}")


def test_tcp_of_the_far_kernel_arrives_in_segments(network: Any, offloads: ModuleType) -> None:
    stats = offloads.segments_arrive(network, "af_xdp:{}")
    assert stats[0]["rx_lost_packets"] == 0


@pytest.mark.parametrize("settings", ["", ":busy_poll=yes"])
def test_latency_is_measured(network: Any, settings: str) -> None:
    near, other = network.veth()
    ports = [f"af_xdp:{near}{settings}", f"af_xdp:{other}{settings}"]
    with LocalServer(ports=ports) as server, server.client() as client:
        assert ("busy polling" in details(client)) == bool(settings)
        run(client, [burst(udp(80), 500, 1_000, flow_stats=STLFlowLatencyStats(pg_id=7))])
        stats = client.get_pgid_stats([7])
        assert stats["flow_stats"][7]["rx_pkts"][1] == 500
        latency = stats["latency"][7]
        assert (latency["err_cntrs"]["dropped"], latency["err_cntrs"]["out_of_order"]) == (0, 0)
        # Two clocks that disagree would give hours.
        assert 0 < latency["latency"]["average"] < 60_000_000


def test_a_router_forwards_what_was_sent(network: Any) -> None:
    router, [(near, entry), (far, leaving)] = network.router("router")
    packets = 2_000  # twice that fits into the chunks that receive
    with LocalServer(ports=[f"af_xdp:{near}", f"af_xdp:{far}"]) as server, server.client() as client:
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


@pytest.mark.parametrize("end", ["ours", "the other"])
def test_an_end_that_goes_down_holds_traffic_up_and_loses_none(network: Any, end: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    down = (None, near) if end == "ours" else (far, other)
    with LocalServer(ports=[f"af_xdp:{near}"]) as server, server.client() as client:
        client.reset()
        stream = STLStream(packet=STLPktBuilder(pkt=udp()), mode=STLTXCont(pps=20_000))
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], duration=2)
        network.run(down[0], "ip", "link", "set", down[1], "down")
        until = time.monotonic() + SETTLE_S
        while client.get_stats()[0]["missed_packets"] == 0:
            assert time.monotonic() < until, "the link is down, and nothing is missed"
            time.sleep(0.05)
        network.run(down[0], "ip", "link", "set", down[1], "up")
        client.wait_on_traffic(ports=[0])
        stats = settled(client)
        assert stats[0]["opackets"] + stats[0]["missed_packets"] == 40_000
        assert network.received(far, other)[0] == stats[0]["opackets"]


@pytest.mark.parametrize("mode", MODES)
def test_what_arrives_while_nobody_reads_is_received_or_counted_as_lost(network: Any, mode: str) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    packets = 20_000
    with LocalServer(ports=[f"af_xdp:{near}:mode={mode}"]) as server, server.client() as client:
        client.reset()
        os.kill(server.pid or 0, signal.SIGSTOP)
        try:
            subprocess.run(flood(far, other, packets), check=True)
        finally:
            os.kill(server.pid or 0, signal.SIGCONT)
        stats = settled(client)
        # The kernel is asked ten times a second.
        assert 0 < stats[0]["ipackets"] < packets
        assert stats[0]["ipackets"] + stats[0]["rx_lost_packets"] == packets


def test_frames_longer_than_the_mtu_are_refused_before_traffic(network: Any) -> None:
    near, other = network.veth(mtu=1300)
    too_long = [udp(1315), Ether() / Dot1Q(vlan=1) / IP() / UDP() / bytes(1319 - 46)]
    longest = [udp(1314), Ether() / Dot1Q(vlan=1) / IP() / UDP() / bytes(1318 - 46)]
    with LocalServer(ports=[f"af_xdp:{near}", f"af_xdp:{other}"]) as server, server.client() as client:
        client.reset()
        for packet in too_long:
            with pytest.raises(STLError, match="MTU"):
                run(client, [burst(packet, 1)])
            client.reset()
        stats = run(client, [burst(packet, 10) for packet in longest])
        assert stats[1]["ibytes"] == 10 * (1314 + 1318 + 2 * 4)


def test_longer_frames_take_longer_chunks(network: Any) -> None:
    near, other = network.veth(mtu=3400)
    with LocalServer(ports=[f"af_xdp:{near}", f"af_xdp:{other}"]) as server, server.client() as client:
        stats = run(
            client, [burst(udp(3414), 1_600), burst(udp(60), 1_600), burst(udp(3000), 800, vm=sources())]
        )
        # Here too all fit into the chunks that receive.
        assert stats[1]["ipackets"] == 4_000
        assert stats[1]["ibytes"] == stats[0]["obytes"]


def test_promiscuous_is_an_attribute_of_the_interface(network: Any) -> None:
    near, other = network.veth()
    with LocalServer(ports=[f"af_xdp:{near}", other]) as server, server.client() as client:
        client.reset()
        for on in (True, False, True):
            client.set_port_attr(ports=[0], promiscuous=on)
            assert network.facts(None, near)["promiscuity"] == int(on)
    assert network.facts(None, near)["promiscuity"] == 0


def test_a_killed_server_leaves_nothing_behind_and_starts_again(network: Any) -> None:
    near, other = network.veth()
    ports = [f"af_xdp:{near}", f"af_xdp:{other}"]
    for _ in range(3):
        with LocalServer(ports=ports, cores=2) as server:
            # The client says goodbye to a server that is gone: it need not wait long for an answer.
            with server.client(sync_timeout=0.5) as client:
                client.reset()
                assert has_program(network, near) and has_program(network, other)
                client.add_streams(
                    STLStream(packet=STLPktBuilder(pkt=udp()), mode=STLTXCont(pps=20_000)), ports=[0]
                )
                client.set_port_attr(ports=[0], promiscuous=True)
                client.start(ports=[0], duration=60)
                os.kill(server.pid or 0, signal.SIGKILL)
            while server.is_running():
                time.sleep(0.01)
        for link in (near, other):
            assert not has_program(network, link)
            assert network.facts(None, link)["promiscuity"] == 0
    with LocalServer(ports=ports) as server, server.client() as client:
        stats = run(client, [burst(udp(), 1_000)], 0, 1)
        assert [stats[port]["ipackets"] for port in (0, 1)] == [1_000, 1_000]


def keep_only(*capabilities: int) -> Callable[[], None]:
    """Drop all capabilities of what is started next but these."""

    def drop() -> None:
        libc = ctypes.CDLL(None)
        last = int(open("/proc/sys/kernel/cap_last_cap").read())  # noqa: SIM115, PTH123
        for number in range(last + 1):
            if number not in capabilities:
                libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP

    return drop


def refused(ports: str, prepare: Callable[[], None] | None = None, code: int = 2) -> str:
    """Start a server that cannot start: for wrong input, or, 3, for a set-up. Gives what it says."""
    command = [str(find_binary()), "serve", "--ports", ports, "--rpc-port", "0", "--pub-port", "0"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False, preexec_fn=prepare
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def test_missing_capabilities_are_named(network: Any) -> None:
    near, _ = network.veth()
    for kept, missing in [
        ([CAP_NET_RAW], ["CAP_NET_ADMIN", "CAP_BPF"]),
        ([CAP_NET_ADMIN, CAP_BPF], ["CAP_NET_RAW"]),
        ([CAP_NET_RAW, CAP_NET_ADMIN], ["CAP_BPF"]),
    ]:
        words = refused(f"af_xdp:{near}", keep_only(*kept), code=3)
        problem = words.split("is missing" if len(missing) == 1 else "are missing")[0]
        assert all(name in problem for name in missing), words
        assert "setcap" in words and near in words
        assert not has_program(network, near)


def test_too_little_memory_that_stays_in_place_is_named(network: Any) -> None:
    near, _ = network.veth()
    drop = keep_only(CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF)

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
        drop()

    problem = refused(f"af_xdp:{near}", prepare, code=3)
    assert all(word in problem for word in [near, "memory", "ulimit -l", "CAP_IPC_LOCK"]), problem
    assert not has_program(network, near)


def test_interfaces_and_settings_that_cannot_be_used_are_named_with_the_remedy(network: Any) -> None:
    near, _ = network.veth()
    long, _ = network.veth(mtu=9000)
    for ports, words in [
        ("af_xdp:alo-none", ["'alo-none'", "no such interface"]),
        (f"af_xdp:{long}", [f"'{long}'", "9000", f"ip link set {long} mtu 3822", f"af_packet:{long}"]),
        (f"af_xdp:{near}:queues=7", [f"'{near}'", "1 hardware queue", "ethtool -L"]),
        (f"af_xdp:{near}:zero_copy=yes", [f"'{near}'", "no zero copy", "Leave zero_copy=yes out"]),
        (f"af_xdp:{near}:mode=fast", ["'fast'", "auto, native, generic"]),
        (f"af_xdp:{near}:speed=9", ["'speed'", "queues, mode, zero_copy and busy_poll"]),
        (f"af_xdp:{near},{near}", ["ports 0 and 1", "once"]),
    ]:
        problem = refused(ports)
        assert all(word in problem for word in words), problem
    network.run(None, "ip", "link", "set", near, "down")
    problem = refused(f"af_xdp:{near}", code=3)
    assert "is down" in problem and f"ip link set {near} up" in problem


def attach_other(link: str) -> int:
    """Attach a program of somebody else that passes all. Gives a descriptor; closed, it is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(
        struct.pack("BBhi", 0xB7, 0, 0, 2) + struct.pack("BBhi", 0x95, 0, 0, 0)
    )
    license_ = ctypes.create_string_buffer(b"GPL")

    def bpf(command: int, attributes: bytes) -> int:
        answer = int(libc.syscall(321, command, ctypes.create_string_buffer(attributes), len(attributes)))
        assert answer >= 0, os.strerror(ctypes.get_errno())
        return answer

    addresses = ctypes.addressof(code), ctypes.addressof(license_)
    load = struct.pack("IIQQIIQII16sII", 6, 2, *addresses, 0, 0, 0, 0, 0, b"others", 0, 37)
    program = bpf(5, load)
    try:
        return bpf(28, struct.pack("IIII", program, socket.if_nametoindex(link), 37, 0))
    finally:
        os.close(program)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls differ")
def test_a_program_that_is_there_is_named_and_left_alone(network: Any) -> None:
    near, _ = network.veth()
    link = attach_other(near)
    try:
        problem = refused(f"af_xdp:{near}", code=3)
        assert "'others'" in problem and f"ip link set dev {near} xdp off" in problem
        assert has_program(network, near)
    finally:
        os.close(link)
    with LocalServer(ports=[f"af_xdp:{near}"]) as server, server.client() as client:
        client.reset()
