"""``push_pcap``: what goes to the server, both ports of a pair, and the real server."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from allosaur import STLArgumentError, STLClient, STLError, STLPktBuilder, STLProfileError, STLStream
from allosaur.server import LocalServer
from allosaur.testing import MockTransport

CLIENT, SERVER = b"\x02" * 6, b"\x04" * 6


def capture(path: Path, senders: str = "cscc", packet_bytes: int = 100) -> Path:
    """A capture with a packet a millisecond, of client (c) and server (s)."""
    data = struct.pack("<I2HiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, sender in enumerate(senders):
        macs = SERVER + CLIENT if sender == "c" else CLIENT + SERVER
        packet = macs + b"\x08\x00" + bytes([number % 256]) * (packet_bytes - 14)
        data += struct.pack("<4I", 0, number * 1000, len(packet), len(packet)) + packet
    path.write_bytes(data)
    return path


@pytest.fixture
def owner(client: STLClient) -> STLClient:
    client.reset()
    client.add_streams(STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60))), ports=[0])
    return client


def test_a_capture_replaces_the_streams_and_starts(
    owner: STLClient, transport: MockTransport, tmp_path: Path
) -> None:
    owner.push_pcap(capture(tmp_path / "x.pcap"), ports=[0], ipg_usec=100, count=2, duration=5)
    sent = transport.methods()
    assert sent[sent.index("remove_all_streams") :].count("add_stream") == 4
    streams = transport.streams(0)
    assert [(number, stream["next_stream_id"]) for number, stream in streams.items()] == [
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 1),
    ]
    assert [stream["isg"] for stream in streams.values()] == [100] * 4
    assert [stream["action_count"] for stream in streams.values()] == [0, 0, 0, 2]
    (start,) = transport.requests("start_traffic")
    assert (start["duration"], start["force"], start["port_id"]) == (5, False, 0)
    assert start["mul"] == {"type": "raw", "value": 1.0, "op": "abs"}


def test_the_two_sides_go_to_the_two_ports(
    owner: STLClient, transport: MockTransport, tmp_path: Path
) -> None:
    owner.push_pcap(capture(tmp_path / "x.pcap"), ports=[1], is_dual=True)
    assert [len(transport.streams(port)) for port in (0, 1)] == [2, 3]  # one packet and a rest, three packets
    assert [start["port_id"] for start in transport.requests("start_traffic")] == [1, 0]


def test_dual_takes_one_port_of_a_pair(owner: STLClient, tmp_path: Path) -> None:
    with pytest.raises(STLArgumentError, match=r"'ports' cannot be \[0, 1\]: give one port of each pair"):
        owner.push_pcap(capture(tmp_path / "x.pcap"), ports=[0, 1], is_dual=True)


def test_dual_needs_both_ports(client: STLClient, tmp_path: Path) -> None:
    client.acquire(ports=[0])
    with pytest.raises(STLError, match=r"port\(s\) \[1\]: must be acquired"):
        client.push_pcap(capture(tmp_path / "x.pcap"), ports=[0], is_dual=True)


def test_a_large_capture_needs_force(owner: STLClient, transport: MockTransport, tmp_path: Path) -> None:
    path = capture(tmp_path / "large.pcap", "c" * 200, packet_bytes=6000)
    with pytest.raises(STLError, match=r"large\.pcap has 1203224 bytes, more than 1048576: .*force=True"):
        owner.push_pcap(path, ports=[0])
    assert len(transport.streams(0)) == 1, "the port is as it was"
    owner.push_pcap(path, ports=[0], force=True)
    assert len(transport.streams(0)) == 200


def test_a_port_that_sends_needs_force(owner: STLClient, transport: MockTransport, tmp_path: Path) -> None:
    owner.start(ports=[0])
    path = capture(tmp_path / "x.pcap")
    with pytest.raises(STLError, match=r"port\(s\) \[0\] already send: call stop\(\) first"):
        owner.push_pcap(path, ports=[0])
    owner.push_pcap(path, ports=[0], force=True)
    assert "stop_traffic" in transport.methods()
    assert len(transport.streams(0)) == 4


@pytest.mark.parametrize(
    ("data", "words"),
    [(None, "cannot be read: No such file"), (b"", "is empty"), (b"hello!", "is not a pcap")],
)
def test_a_bad_file_leaves_the_port_as_it_was(
    owner: STLClient, transport: MockTransport, tmp_path: Path, data: bytes | None, words: str
) -> None:
    path = tmp_path / "bad.pcap"
    if data is not None:
        path.write_bytes(data)
    before = len(transport.methods())
    with pytest.raises(STLError, match=words):
        owner.push_pcap(path, ports=[0])
    assert set(transport.methods()[before:]) <= {"get_async_events"}, "events come by themselves"


def test_a_truncated_file_is_named(owner: STLClient, tmp_path: Path) -> None:
    path = capture(tmp_path / "x.pcap")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(STLProfileError, match="is truncated: it ends within packet 4"):
        owner.push_pcap(path)


def test_a_live_server_sends_each_packet_in_each_round(live_server: LocalServer, tmp_path: Path) -> None:
    with live_server.client() as client:
        client.reset()
        client.push_pcap(capture(tmp_path / "x.pcap", "c" * 50), ports=[0], ipg_usec=10, count=20)
        client.wait_on_traffic(ports=[0], timeout=30)
        assert client.get_stats()[0]["opackets"] == 1000
        client.push_pcap(capture(tmp_path / "y.pcap", "cscc"), ports=[0], is_dual=True, speedup=10, count=5)
        client.wait_on_traffic(timeout=30)
        stats = client.get_stats()
        assert [stats[port]["opackets"] for port in (0, 1)] == [1015, 5]
