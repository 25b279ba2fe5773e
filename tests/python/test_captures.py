"""Captures: requests, packets into lists and files, what can be wrong with the arguments."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLError
from allosaur.packets._capture_reader import frames
from allosaur.packets._capture_writer import CaptureFile
from allosaur.testing import MockTransport


@pytest.fixture
def owner(client: STLClient) -> STLClient:
    client.acquire(ports=[0, 1])
    client.set_service_mode()
    return client


def frame(number: int, size: int = 60) -> bytes:
    return bytes([number]) * size


def test_what_is_asked_of_the_server(owner: STLClient, transport: MockTransport) -> None:
    plain = owner.start_capture(rx_ports=1)
    assert set(plain) == {"id", "ts"}
    full = owner.start_capture([0], [0, 1], 0, "cyclic", "udp", "file:///tmp/a.pcapng", 64)
    assert (full["id"], transport.requests("capture")[-1]["endpoint"]) == (2, "file:///tmp/a.pcapng")
    first, second = [
        {name: value for name, value in params.items() if name != "api_h"}
        for params in transport.requests("capture")
    ]
    usual = {"command": "start", "limit": 1000, "mode": "fixed", "filter": ""}
    assert first == {**usual, "tx": [], "rx": [1]}
    assert second == {
        "command": "start",
        "limit": 0,
        "mode": "cyclic",
        "filter": "udp",
        "tx": [0],
        "rx": [0, 1],
        "endpoint": "file:///tmp/a.pcapng",
        "snaplen": 64,
    }


def test_packets_into_a_list(owner: STLClient, transport: MockTransport) -> None:
    number = owner.start_capture(rx_ports=[1])["id"]
    for count in range(120):
        transport.receive(1, frame(count))
    packets: list[Any] = ["old"]
    owner.fetch_capture_packets(number, packets, pkt_count=3)
    assert [packet["binary"] for packet in packets] == [frame(0), frame(1), frame(2)]
    assert [packet["index"] for packet in packets] == [1, 2, 3]
    assert owner.get_capture_status()[number]["fetched"] == 3
    owner.stop_capture(number, packets)
    assert [packet["binary"][0] for packet in packets] == list(range(3, 120))
    assert owner.get_capture_status() == {}
    # Fifty at a time, as few requests as that takes.
    limits = [params["pkt_limit"] for params in transport.requests("capture") if "pkt_limit" in params]
    assert limits == [3, 50, 50, 17]


@pytest.mark.parametrize("name", ["out.pcap", "out.cap", "out.pcapng"])
def test_packets_into_a_file(owner: STLClient, transport: MockTransport, tmp_path: Path, name: str) -> None:
    number = owner.start_capture(tx_ports=[0], rx_ports=[1])["id"]
    owner.push_packets([frame(1), frame(2, 61)], ports=[0])
    transport.receive(1, frame(3, 1514))
    owner.stop_capture(number, str(tmp_path / name))
    written = list(frames(tmp_path / name))
    assert [one.data for one in written] == [frame(1), frame(2, 61), frame(3, 1514)]
    # The mock's clock goes on a millisecond a packet; the file has the time of day.
    first_ns, second_ns, third_ns = (one.time_ns for one in written)
    assert [round((one - first_ns) / 1e6) for one in (second_ns, third_ns)] == [1, 2]
    assert abs(first_ns / 1e9 - time.time()) < 3600


def test_a_snapped_packet_keeps_its_length(tmp_path: Path) -> None:
    packet: Any = {"binary": b"abcd", "wirelen": 100, "port": 3, "origin": "TX"}
    for name in ("a.pcap", "a.pcapng"):
        with CaptureFile(tmp_path / name) as file:
            file.write(packet, 1.5)
    plain = (tmp_path / "a.pcap").read_bytes()
    assert struct.unpack_from("<4I", plain, 24) == (1, 500_000_000, 4, 100)
    extended = (tmp_path / "a.pcapng").read_bytes()
    assert b"port 3\0\0" in extended
    # The flags say "outbound".
    assert struct.pack("<HHI", 2, 4, 2) in extended


def test_scapy_reads_what_is_written(tmp_path: Path) -> None:
    from scapy.all import rdpcap

    packet: Any = {"binary": bytes(60), "wirelen": 60, "port": 0, "origin": "RX"}
    for name in ("a.pcap", "a.pcapng"):
        with CaptureFile(tmp_path / name) as file:
            file.write(packet, 2.25)
            file.write({**packet, "port": 1}, 3.0)
        read = rdpcap(str(tmp_path / name))
        assert [(bytes(one), float(one.time)) for one in read] == [(bytes(60), 2.25), (bytes(60), 3.0)]


def test_without_an_output_packets_are_thrown_away(owner: STLClient, transport: MockTransport) -> None:
    number = owner.start_capture(rx_ports=[0])["id"]
    transport.receive(0, frame(1))
    owner.stop_capture(number)
    assert [params["command"] for params in transport.requests("capture")] == ["start", "stop", "remove"]


def test_remove_all(owner: STLClient) -> None:
    for _ in range(3):
        owner.start_capture(rx_ports=[0])
    assert len(owner.get_capture_status()) == 3
    owner.remove_all_captures()
    assert owner.get_capture_status() == {}


def test_an_endpoint_is_waited_for_and_copied(
    owner: STLClient, transport: MockTransport, tmp_path: Path
) -> None:
    source, target = tmp_path / "server.pcapng", tmp_path / "mine.pcapng"
    source.write_bytes(b"packets")
    pending = iter([2, 1, 0])
    calls: list[str] = []

    def capture(params: dict[str, Any]) -> Any:
        calls.append(params["command"])
        if params["command"] == "fetch":
            return {"pending": next(pending), "start_ts": 1.0, "pkts": []}
        return {"endpoint": f"file://{source}", "pkt_count": 2}

    transport.answer("capture", capture)
    owner.stop_capture(1, target)
    assert target.read_bytes() == b"packets"
    assert calls == ["stop", "fetch", "fetch", "fetch", "remove"]

    pending = iter([0, 0])
    seen: list[str] = []
    owner.stop_capture(1, endpoint_cb=seen.append)
    assert seen == [f"file://{source}"]
    source.unlink()
    with pytest.raises(STLError, match="server's machine"):
        owner.stop_capture(1, target)
    assert calls[-1] == "fetch"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.start_capture(), ["rx_ports", "at least one port"]),
        (lambda c: c.start_capture(rx_ports=[5]), ["5", "0, 1"]),
        (lambda c: c.start_capture(rx_ports=[0], limit=-1), ["limit", "0 or more"]),
        (lambda c: c.start_capture(rx_ports=[0], mode="ring"), ["mode", "fixed", "cyclic"]),
        (lambda c: c.start_capture(rx_ports=[0], snaplen=65_536), ["snaplen", "65535"]),
        (lambda c: c.start_capture(rx_ports=[0], bpf_filter=1), ["bpf_filter", "str"]),
        (lambda c: c.fetch_capture_packets(1, 5), ["output", "list"]),
        (lambda c: c.fetch_capture_packets(1, [], fetch_limit=0), ["fetch_limit", "1 or more"]),
        (lambda c: c.fetch_capture_packets(9, []), ["9", "does not exist"]),
        (lambda c: c.stop_capture(9), ["9", "does not exist"]),
        (lambda c: c.stop_capture(1, 5), ["output"]),
    ],
)
def test_wrong_arguments_are_named(owner: STLClient, call: Any, words: list[str]) -> None:
    with pytest.raises(STLError) as error:
        call(owner)
    assert all(word in str(error.value) for word in words), error.value


def test_a_file_that_cannot_be_written(owner: STLClient, transport: MockTransport, tmp_path: Path) -> None:
    number = owner.start_capture(rx_ports=[0])["id"]
    transport.receive(0, frame(1))
    with pytest.raises(STLError, match=r"nowhere.*cannot be written: No such file"):
        owner.stop_capture(number, tmp_path / "nowhere" / "a.pcap")
    # Nothing is lost: another name can be given.
    owner.stop_capture(number, tmp_path / "a.pcap")
    assert [one.data for one in frames(tmp_path / "a.pcap")] == [frame(1)]
