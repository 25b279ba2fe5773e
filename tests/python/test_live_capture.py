"""Captures, receive queues, capture ports and captures that the server sends, on a real server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from allosaur import PacketBuffer, STLClient, STLError, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.api import IP, TCP, UDP, Ether
from allosaur.packets._capture_reader import frames
from allosaur.packets._capture_writer import CaptureFile
from allosaur.server import LocalServer


@pytest.fixture
def live(live_server: LocalServer) -> Iterator[STLClient]:
    with live_server.client() as connected:
        connected.reset()
        connected.set_service_mode()
        yield connected


def eventually(what: Callable[[], Any]) -> Any:
    """What a function gives, once it is true."""
    deadline = time.monotonic() + 10
    while not (value := what()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return value


def own(number: int, dport: int = 12) -> PacketBuffer:
    """A packet of 60 bytes, shorter ones are padded, with its number behind the headers."""
    head = Ether(src="02:00:00:00:00:05", dst="02:00:00:00:00:06") / IP() / UDP(dport=dport)
    return PacketBuffer(head / bytes([number, *bytes(17)]))


def matched(client: STLClient, capture_id: int) -> int:
    return int(client.get_capture_status()[capture_id]["matched"])


def test_a_filtered_capture_has_what_was_sent(live: STLClient, tmp_path: Path) -> None:
    both = live.start_capture(tx_ports=[0], rx_ports=[1], bpf_filter="udp and dst port 12")["id"]
    counted = live.start_capture(rx_ports=[1], limit=0)["id"]
    live.push_packets([own(1), own(2, dport=13), PacketBuffer(Ether() / IP() / TCP()), own(3)], ports=[0])
    assert eventually(lambda: matched(live, both) == 4)
    assert eventually(lambda: matched(live, counted) == 4)
    live.stop_capture(both, tmp_path / "out.pcapng")
    sent = [own(1).buffer, own(3).buffer]
    written = [frame.data for frame in frames(tmp_path / "out.pcapng")]
    assert sorted(written) == sorted([*sent, *sent])
    nothing: list[Any] = []
    live.stop_capture(counted, nothing)
    assert nothing == []


def test_a_cyclic_capture_keeps_the_last(live: STLClient) -> None:
    last = live.start_capture(rx_ports=[1], limit=3, mode="cyclic", snaplen=20)["id"]
    first = live.start_capture(rx_ports=[1], limit=3)["id"]
    live.push_packets([own(number) for number in range(10)], ports=[0])
    assert eventually(lambda: matched(live, last) == 10)
    kept: list[Any] = []
    live.fetch_capture_packets(first, kept)
    assert [packet["binary"][42] for packet in kept] == [0, 1, 2]
    live.stop_capture(last, kept)
    assert [packet["index"] for packet in kept] == [8, 9, 10]
    assert {(len(packet["binary"]), packet["wirelen"]) for packet in kept} == {(20, 60)}
    assert list(live.get_capture_status()) == [first]
    live.remove_all_captures()
    assert live.get_capture_status() == {}


def test_streams_are_captured(live: STLClient) -> None:
    capture = live.start_capture(rx_ports=[1], bpf_filter="ip[8] = 77")["id"]
    packet = STLPktBuilder(pkt=Ether() / IP(ttl=77) / UDP() / bytes(20))
    live.add_streams(STLStream(packet=packet, mode=STLTXSingleBurst(total_pkts=200, pps=20_000)), ports=[0])
    live.start(ports=[0], force=True)
    live.wait_on_traffic(ports=[0])
    assert eventually(lambda: matched(live, capture) == 200)
    packets: list[Any] = []
    live.stop_capture(capture, packets)
    times = [one["ts"] for one in packets]
    assert len(packets) == 200
    assert times == sorted(times)


def test_a_filter_that_does_not_compile(live: STLClient) -> None:
    with pytest.raises(STLError, match=r"udp port x"):
        live.start_capture(rx_ports=[0], bpf_filter="udp port x")
    assert live.get_capture_status() == {}


def test_the_server_writes_a_file(live: STLClient, tmp_path: Path) -> None:
    endpoint = f"file://{tmp_path / 'server.pcapng'}"
    capture = live.start_capture(rx_ports=[1], endpoint=endpoint)["id"]
    live.push_packets([own(number) for number in range(5)], ports=[0])
    assert eventually(lambda: live.get_stats([1])[1]["ipackets"] >= 5)
    live.stop_capture(capture, tmp_path / "mine.pcapng")
    assert [frame.data[42] for frame in frames(tmp_path / "mine.pcapng")] == [0, 1, 2, 3, 4]


def test_a_receive_queue(live: STLClient) -> None:
    live.set_rx_queue(ports=[1], size=3)
    live.push_packets([own(number) for number in range(5)], ports=[0])
    assert eventually(lambda: live.get_stats([1])[1]["ipackets"] >= 5)
    got: list[Any] = []
    assert eventually(lambda: got.extend(live.get_rx_queue_pkts(1)) or len(got) >= 3)
    assert [packet["binary"][42] for packet in got][-3:] == [2, 3, 4]
    live.remove_rx_queue(ports=[1])
    with pytest.raises(STLError, match="port 1"):
        live.get_rx_queue_pkts(1)


def test_a_capture_port(live: STLClient, tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path / 'tap'}"
    context: zmq.Context[Any] = zmq.Context()
    with context, context.socket(zmq.PAIR) as tap:
        tap.linger = 0
        tap.rcvtimeo = 10_000
        tap.bind(endpoint)
        live.start_capture_port(1, endpoint, bpf_filter="udp dst port 12")
        live.push_packets([own(1, dport=13), own(2)], ports=[0])
        assert tap.recv() == own(2).buffer
        # And the other way: what is written to the socket leaves the port.
        capture = live.start_capture(rx_ports=[0])["id"]
        tap.send(own(3).buffer)
        assert eventually(lambda: matched(live, capture) == 1)
        packets: list[Any] = []
        live.stop_capture(capture, packets)
        assert packets[0]["binary"] == own(3).buffer
        live.set_capture_port_bpf_filter(1, "udp dst port 13")
        live.push_packets([own(4), own(5, dport=13)], ports=[0])
        assert tap.recv() == own(5, dport=13).buffer
        live.stop_capture_port(1)
        assert live.get_port(1).has_capture_port is False


def test_the_server_sends_a_file(live: STLClient, tmp_path: Path) -> None:
    path = tmp_path / "send.pcap"
    with CaptureFile(path) as file:
        for number in range(20):
            packet: Any = {"binary": own(number).buffer, "wirelen": 60, "port": 0, "origin": "TX"}
            file.write(packet, number * 1e-4)
    live.set_service_mode(enabled=False)
    live.push_remote(path, ports=[0], count=3, src_mac_pcap=True, dst_mac_pcap=True)
    live.wait_on_traffic(ports=[0], timeout=30)
    assert eventually(lambda: live.get_stats([1])[1]["ipackets"] == 60)
    live.push_remote(path, ports=[0], count=0, ipg_usec=10)
    assert live.get_active_ports() == [0]
    live.stop()
    assert live.get_active_ports() == []
    with pytest.raises(STLError, match="port 0"):
        live.push_remote(tmp_path / "nowhere.pcap", ports=[0])


def test_the_map_of_ports() -> None:
    with (
        LocalServer(ports=["memory"] * 5, options=["--captures-folder", "/"]) as server,
        server.client() as client,
    ):
        client.acquire()
        found = client.map_ports()
    assert found == {
        "map": {0: 1, 1: 0, 2: 3, 3: 2, 4: None},
        "bi": [(0, 1), (2, 3)],
        "unknown": [4],
    }


def test_what_listens_is_gone_after_a_reset(live: STLClient) -> None:
    live.set_rx_queue()
    live.start_capture(rx_ports=[0])
    live.reset()
    assert live.get_capture_status() == {}
    assert live.get_service_enabled_ports() == []
    assert live.get_port(0).status["rx_info"]["queue"]["is_active"] is False
