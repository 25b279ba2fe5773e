"""Ports on DPDK's own drivers without hardware, in a server that was built with them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import (
    STLClient,
    STLFlowStats,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFlowVar,
    STLVmTrimPktSize,
    STLVmWrFlowVar,
)
from allosaur.server import LocalServer, find_binary
from scapy.all import IP, UDP, Ether, rdpcap, wrpcap

# Their threads take whole CPUs, pinned or polling.
pytestmark = pytest.mark.alone
SETTLE_S = 5.0


def burst(packets: int, pps: float, size: int = 60, **options: Any) -> STLStream:
    packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
    packet /= bytes(index & 0xFF for index in range(size - len(packet)))
    mode = STLTXSingleBurst(total_pkts=packets, pps=pps)
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode, **options)


def run(client: STLClient, streams: list[STLStream], ports: list[int]) -> Any:
    client.reset()
    client.add_streams(streams, ports=ports)
    # Devices without hardware say 10 Gbit/s and less, whatever they can do.
    client.start(ports=ports, force=True)
    client.wait_on_traffic(ports=ports)


def received(client: STLClient, port: int, packets: int) -> Any:
    """Give the statistics once a port has received so many packets, or when they do not come."""
    until = time.monotonic() + SETTLE_S
    while (stats := client.get_stats())[port]["ipackets"] < packets and time.monotonic() < until:
        time.sleep(0.1)
    return stats


def test_exactly_what_was_asked_for_is_sent(dpdk: None) -> None:
    ports = ["vdev:net_null", "vdev:net_null"]
    with LocalServer(ports=ports, cores=2) as server, server.client() as client:
        streams = [burst(12_345, 100_000, size) for size in (60, 594, 1514)]
        run(client, streams, [0, 1])
        stats = client.get_stats()
        for port in (0, 1):
            assert stats[port]["opackets"] == 3 * 12_345
            assert stats[port]["obytes"] == 12_345 * (64 + 598 + 1518)
            assert stats[port]["ipackets"] == 0, "net_null makes nothing up unless it is told to"


def test_what_goes_into_a_ring_comes_out_of_it(dpdk: None) -> None:
    with LocalServer(ports=["vdev:net_ring", "memory"], cores=2) as server, server.client() as client:
        streams = [burst(3_000, 30_000, 60 + 100 * n, flow_stats=STLFlowStats(n)) for n in range(1, 5)]
        run(client, streams, [0])
        stats = received(client, 0, 12_000)
        assert (stats[0]["opackets"], stats[0]["ipackets"]) == (12_000, 12_000)
        assert stats[0]["obytes"] == stats[0]["ibytes"]
        for n in range(1, 5):
            flow = client.get_pgid_stats([n])["flow_stats"][n]
            assert (flow["tx_pkts"][0], flow["rx_pkts"][0]) == (3_000, 3_000)


def test_what_one_end_of_rings_sends_the_other_receives(dpdk: None) -> None:
    ports = ["ring:a", "memory", "ring:a"]
    with LocalServer(ports=ports, cores=2) as server, server.client() as client:
        streams = [burst(3_000, 30_000, size, flow_stats=STLFlowStats(size)) for size in (60, 1514)]
        run(client, [*streams, burst(2_000, 20_000, 594)], [0])
        stats = received(client, 2, 8_000)
        assert (stats[0]["opackets"], stats[0]["ipackets"]) == (8_000, 0)
        assert (stats[2]["opackets"], stats[2]["ipackets"]) == (0, 8_000)
        assert stats[0]["obytes"] == stats[2]["ibytes"]
        for size in (60, 1514):
            flow = client.get_pgid_stats([size])["flow_stats"][size]
            assert (flow["tx_pkts"][0], flow["rx_pkts"][2]) == (3_000, 3_000)
        run(client, [burst(1_000, 10_000)], [2])
        assert received(client, 0, 1_000)[0]["ipackets"] == 1_000


@pytest.mark.parametrize("cores", [1, 2])
def test_flows_over_rings_are_those_over_a_memory_link(dpdk: None, talks: ModuleType, cores: int) -> None:
    # Long enough to refer to, in segments; and again, since the bytes of the first are let go by then.
    requests = [(400, 3_000, 100_000), (300, 10, 40)]
    moved = []
    for ports in (["ring:a", "ring:a"], ["memory", "memory"]):
        with talks.generator(ports, cores=cores) as client:
            if cores > 1:
                said = str(client.get_port_info(ports=[1])[0]["description"])
                assert f"flows stay on their queues, {cores} queues" in said or ports[0] == "memory"
            for connections, asked, answered in requests:
                profile = talks.profile(
                    talks.asks(b"q" * asked, answered),
                    talks.answers(asked, b"a" * answered),
                    clients=("16.0.0.1", "16.0.0.100"),
                    servers=("48.0.0.1", "48.0.0.50"),
                    cps=800,
                    limit=connections,
                )
                traffic = talks.run(client, profile)
                assert talks.errors(traffic, *talks.UNTIMELY) == {}
                moved.append([traffic[side]["tcps_rcvbyte"] for side in ("client", "server")])
                assert moved[-1] == [connections * answered, connections * asked]
                for side in ("client", "server"):
                    assert traffic[side]["tcps_closed"] == connections
                    assert traffic[side]["rss_redirect_rx"] == 0
    assert moved[:2] == moved[2:]


def test_the_kernel_counts_what_dpdk_sends(dpdk: None, network: Any) -> None:
    far = network.namespace("far")
    near, other = network.veth(far)
    device = f"vdev:net_af_packet,iface={near},qpairs=2"
    with LocalServer(ports=[device]) as server, server.client() as client:
        run(client, [burst(20_000, 100_000), burst(1_000, 5_000, 1514)], [0])
        assert client.get_stats()[0]["opackets"] == 21_000
        assert network.received(far, other) == (21_000, 20_000 * 60 + 1_000 * 1514)


@pytest.fixture
def peer() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts `dpdk-testpmd`, which sends back what it receives; it ends with the test."""
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("there is no dpdk-testpmd: install dpdk-dev")
    started: list[subprocess.Popen[bytes]] = []

    def start(device: str) -> subprocess.Popen[bytes]:
        prefix = f"alo{os.getpid()}-peer"
        command = ["dpdk-testpmd", "--no-huge", "--no-shconf", "-m", "128", "--no-pci", "--no-telemetry"]
        command += [f"--file-prefix={prefix}", "--lcores", "0@0,1@0", f"--vdev={device}", "--"]
        command += ["--forward-mode=io", "--total-num-mbufs=2048", "--stats-period=1"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet)
        started.append(process)
        # A client that comes before the queues of a server are set up is sent away for good.
        assert process.stdout is not None
        assert any(b"NIC statistics" in line for line in process.stdout), "testpmd starts"
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=20)
    with contextlib.suppress(OSError):
        Path(f"/var/run/dpdk/alo{os.getpid()}-peer").rmdir()


def wait_for_echo(client: STLClient, port: int) -> None:
    """Send a packet now and then until one comes back: a peer that starts loses some at first."""
    until = time.monotonic() + 30
    while client.get_port_attr(port)["link"] != "UP":
        assert time.monotonic() < until, "the link comes up"
        time.sleep(0.05)
    while client.get_stats()[port]["ipackets"] == 0:
        assert time.monotonic() < until, "the peer sends back what it receives"
        run(client, [burst(1, 100)], [port])
        time.sleep(0.1)
    time.sleep(0.5)
    client.clear_stats()


@pytest.mark.parametrize("role", ["client", "server"])
def test_what_goes_through_memif_comes_back(dpdk: None, peer: Any, tmp_path: Path, role: str) -> None:
    socket = f"socket={tmp_path / 'memif'},socket-abstract=no"
    other = {"client": "server", "server": "client"}[role]
    if other == "server":
        process = peer(f"net_memif0,role=server,{socket}")
        assert wait_until((tmp_path / "memif").exists)
    with LocalServer(ports=[f"vdev:net_memif,role={role},{socket}"]) as server, server.client() as client:
        if other == "client":
            process = peer(f"net_memif0,role=client,{socket}")
        wait_for_echo(client, 0)
        run(client, [burst(4_000, 8_000), burst(1_000, 2_000, 1000, flow_stats=STLFlowStats(7))], [0])
        stats = received(client, 0, 5_000)
        assert (stats[0]["opackets"], stats[0]["ipackets"]) == (5_000, 5_000)
        assert stats[0]["obytes"] == stats[0]["ibytes"] == 4_000 * 64 + 1_000 * 1004
        flow = client.get_pgid_stats([7])["flow_stats"][7]
        assert (flow["tx_pkts"][0], flow["rx_pkts"][0]) == (1_000, 1_000)
        process.kill()
        assert wait_until(lambda: client.get_port_attr(0)["link"] == "DOWN")


def test_the_kernel_counts_what_a_tap_sends(dpdk: None, network: Any) -> None:
    name = f"alo{os.getpid()}tap"
    with LocalServer(ports=[f"vdev:net_tap,iface={name}"], cores=2) as server, server.client() as client:
        network.silence(None, name)
        before = network.received(None, name)
        run(client, [burst(5_000, 50_000), burst(1_000, 10_000, 1514)], [0])
        assert client.get_stats()[0]["opackets"] == 6_000
        assert wait_until(lambda: network.received(None, name)[0] >= before[0] + 6_000)
        packets, sent_bytes = network.received(None, name)
        assert packets - before[0] == 6_000
        assert sent_bytes - before[1] == 5_000 * 60 + 1_000 * 1514


def of_all_lengths(packets: int, pps: float) -> STLStream:
    """UDP packets of 60 to 1500 bytes, whose checksums must be right."""
    packet = Ether() / IP(src="10.77.0.2", dst="10.77.0.1") / UDP(sport=1025, dport=7777)
    packet /= bytes(index * 7 & 0xFF for index in range(1500 - len(packet)))
    program = [
        STLVmFlowVar("length", min_value=60, max_value=1500, size=2, op="inc"),
        STLVmFlowVar("port", min_value=1025, max_value=65_000, size=2, op="random"),
        STLVmTrimPktSize("length"),
        STLVmWrFlowVar("length", pkt_offset="IP.len", add_val=-14),
        STLVmWrFlowVar("length", pkt_offset="UDP.len", add_val=-34),
        STLVmWrFlowVar("port", pkt_offset="UDP.sport"),
        STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=STLVmFixChecksumHw.L4_TYPE_UDP),
    ]
    builder = STLPktBuilder(pkt=packet, vm=STLScVmRaw(program))
    return STLStream(packet=builder, mode=STLTXSingleBurst(total_pkts=packets, pps=pps))


def test_the_kernel_takes_checksums_that_are_left_to_a_tap(dpdk: None, network: Any) -> None:
    """net_tap computes checksums, so a program of changing lengths leaves them to it."""
    name, far = f"alo{os.getpid()}tap", network.namespace("far")
    with LocalServer(ports=[f"vdev:net_tap,iface={name}"]) as server, server.client() as client:
        network.silence(None, name)
        assert "computes checksums" in client.get_port_info(ports=[0])[0]["description"]
        network.run(None, "ip", "link", "set", name, "netns", far)
        network.run(far, "ip", "link", "set", name, "up")
        network.run(far, "ip", "address", "add", "10.77.0.1/24", "dev", name)
        network.run(far, "ip", "neighbor", "add", "10.77.0.2", "lladdr", "02:00:00:00:00:01", "dev", name)
        mac = network.mac(far, name)
        listener = subprocess.Popen(
            ["ip", "netns", "exec", far, sys.executable, "-c", LISTENER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert listener.stdout is not None and listener.stdout.readline() == "ready\n"
        client.reset()
        client.set_l2_mode(0, mac)
        client.add_streams([of_all_lengths(2_882, 10_000)], ports=[0])
        client.start(ports=[0], force=True)
        client.wait_on_traffic(ports=[0])
        told, _ = listener.communicate("end\n", timeout=20)
        assert client.get_stats()[0]["opackets"] == 2_882
        counted = network.run(far, "cat", "/proc/net/snmp")
        udp = dict(
            zip(*(line.split()[1:] for line in counted.splitlines() if line.startswith("Udp:")), strict=True)
        )
        # Twice each length from 60 to 1500, without the 42 bytes of headers.
        assert told.split() == ["2882", str(2 * sum(range(18, 1459)))]
        assert (udp["InDatagrams"], udp["InErrors"], udp["InCsumErrors"]) == ("2882", "0", "0")


#: Counts datagrams and their bytes until its input ends, and half a second longer.
LISTENER = """
import select, socket, sys
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
heard.bind(("10.77.0.1", 7777))
print("ready", flush=True)
packets = total = 0
ending = False
while True:
    files = [heard] if ending else [heard, sys.stdin]
    ready, _, _ = select.select(files, [], [], 0.5)
    if heard in ready:
        packets, total = packets + 1, total + len(heard.recv(2000))
    elif sys.stdin in ready:
        ending = True
    elif ending:
        break
print(packets, total)
"""


def test_captures_are_sent_and_received_through_pcap(dpdk: None, tmp_path: Path) -> None:
    written, replayed = tmp_path / "written.pcap", tmp_path / "replayed.pcap"
    packets = [Ether() / IP(src="16.0.0.9") / UDP(sport=n, dport=9) / bytes(20 + n) for n in range(1, 200)]
    wrpcap(str(replayed), packets)
    port = f"vdev:net_pcap,tx_pcap={written},rx_pcap={replayed}"
    with LocalServer(ports=[port], cores=2) as server, server.client() as client:
        stats = received(client, 0, len(packets))
        assert stats[0]["ipackets"] == len(packets)
        run(client, [burst(300, 3_000), burst(100, 1_000, 594)], [0])
    sent = [bytes(packet) for packet in rdpcap(str(written))]
    assert sorted({len(packet) for packet in sent}) == [60, 594]
    assert (len(sent), sum(len(packet) == 594 for packet in sent)) == (400, 100)


def test_a_killed_server_leaves_nothing_behind(dpdk: None, network: Any, tmp_path: Path) -> None:
    tap, socket = f"alo{os.getpid()}tap", tmp_path / "memif"
    memif = f"vdev:net_memif,role=server,socket={socket},socket-abstract=no"
    ports = ["vdev:net_ring", f"vdev:net_tap,iface={tap}", memif, "vdev:net_null"]
    before = left_behind(tap)
    for _ in range(3):
        with LocalServer(ports=ports) as server, server.client() as client:
            run(client, [burst(1_000, 10_000)], [0])
            assert received(client, 0, 1_000)[0]["ipackets"] == 1_000
            client.add_streams([burst(100_000_000, 1_000_000)], ports=[3])
            client.start(ports=[3])
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            assert wait_until(lambda: not server.is_running())
        assert wait_until(lambda: left_behind(tap) == before), left_behind(tap)
        assert socket.exists(), "a socket stays in the file system, and the next server removes it"
    with LocalServer(ports=ports):
        pass
    assert left_behind(tap) == before
    assert not socket.exists()


def wait_until(is_so: Callable[[], bool]) -> bool:
    """Tell whether something came to be within a while."""
    until = time.monotonic() + SETTLE_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.05)
    return is_so()


def left_behind(tap: str) -> list[str]:
    """Give what of a server is to be seen outside of it: files of DPDK's, pages, the tap."""
    files = Path("/var/run/dpdk").glob("allosaur*") if Path("/var/run/dpdk").exists() else []
    huge = Path("/dev/hugepages").glob("allosaur*") if Path("/dev/hugepages").exists() else []
    own = [path for path in files if path.name == "allosaur"]
    pages = [line for line in Path("/proc/meminfo").read_text().splitlines() if "HugePages_Free" in line]
    return [*map(str, [*own, *huge]), *pages, *[tap for _ in Path("/sys/class/net").glob(tap)]]


def test_a_port_says_what_it_is(dpdk: None) -> None:
    with LocalServer(ports=["vdev:net_null,size=60"]) as server, server.client() as client:
        info = client.get_port_info(ports=[0])[0]
        assert info["driver"] == "dpdk"
        assert info["link"] == "UP"
        assert info["hw_mac"] != "00:00:00:00:00:00"


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("vdev:net_nonsense", ["vdev:net_nonsense", "guide of network drivers"]),
        ("ring:a,memory", ["ring:a", "port 0 is alone", "ring:a,ring:a"]),
        ("ring:a,ring:a,ring:a", ["port 2 is one too many", "of their own"]),
        ("pci:0000:7f:1f.7", ["pci:0000:7f:1f.7", "allosaur ports"]),
    ],
)
def test_a_device_that_is_not_there_says_what_to_do(dpdk: None, port: str, words: list[str]) -> None:
    command = [str(find_binary()), "serve", "--ports", port, "--rpc-port", "0", "--pub-port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert all(word in result.stderr for word in words), result.stderr
