"""Records of emulated clients reach collectors: on the link, by sockets of the server, in files, by posts."""

from __future__ import annotations

import gzip
import http.server
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.server import LocalServer

TEMPLATE_SET = 2
TEMPLATE = 260


@pytest.fixture(scope="module")
def exporting() -> Iterator[LocalServer]:
    """A server whose emulated clients may reach out of it."""
    with LocalServer(emu=True, options=["--emu-exports"]) as server:
        yield server


@pytest.fixture
def door(exporting: LocalServer, doors: Any) -> Iterator[Any]:
    """Requests to its emulated clients; what a test made is gone after it."""
    with doors.Door(exporting.emu_port) as door:
        yield door
        door.call("shutdown", time=0)


def generator(**more: Any) -> dict[str, Any]:
    """Records with a number that counts."""
    return {
        "name": "g",
        "template_id": TEMPLATE,
        "rate_pps": 20,
        "template_rate_pps": 20,
        "data_records_num": 2,
        "fields": [{"name": "packetDeltaCount", "type": 2, "length": 2, "data": [0, 0]}],
        "engines": [
            {
                "engine_name": "packetDeltaCount",
                "engine_type": "uint",
                "params": {"size": 2, "offset": 0, "op": "inc", "min": 1, "max": 65535},
            }
        ],
        **more,
    }


def init(destination: str, **more: Any) -> dict[str, Any]:
    """What a client begins with."""
    return {"dst": destination, "domain_id": 7, "generators": [generator()], **more}


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Messages of IPFIX that follow each other: domain, number of the set, and its content."""
    while data:
        version, length, _, _, domain, number, _ = struct.unpack(">HHIIIHH", data[:20])
        assert version == 10 and 20 <= length <= len(data)
        yield domain, number, data[20:length]
        data = data[length:]


def check(data: bytes) -> int:
    """The first record of a file: a template that is right is somewhere before the end."""
    sets = list(messages(data))
    assert {domain for domain, _, _ in sets} == {7}
    assert all(
        content == struct.pack(">HHHH", TEMPLATE, 1, 2, 2)
        for _, number, content in sets
        if number == TEMPLATE_SET
    )
    records = [
        record
        for _, number, content in sets
        if number == TEMPLATE
        for (record,) in struct.iter_unpack(">H", content)
    ]
    assert records == list(range(records[0], records[0] + len(records)))
    return records[0]


class Collector:
    """A socket that datagrams come to."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(30)
        self.address = f"udp://127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()


def test_none_reach_out_unless_the_server_may(emulating: LocalServer, doors: Any) -> None:
    with doors.Door(emulating.emu_port) as door:
        tunnel = door.add_namespace(0)
        with pytest.raises(doors.Refused, match="wrong kernel mode"):
            door.add_clients(tunnel, [1], ipfix=init("udp://127.0.0.1:9"))


def test_a_collector_on_the_link_hears_a_client(exporting: LocalServer, door: Any, doors: Any) -> None:
    near, far = (door.add_namespace(port, arp={}) for port in (0, 1))
    door.add_clients(far, [2], arp={})
    with STLClient(server="127.0.0.1", sync_port=exporting.rpc_port, async_port=exporting.pub_port) as client:
        client.acquire(ports=[0, 1], force=True)
        client.set_service_mode(ports=[0, 1])
        capture = client.start_capture(rx_ports=[1], limit=1000, bpf_filter="udp port 4739")["id"]
        door.add_clients(near, [1], gateway=doors.ipv4(2), arp={}, ipfix=init(f"{doors.ipv4(2)}:4739"))
        door.await_counter("pktDataSent", 5, "ipfix_c_cnt", tun=near, mac=doors.mac(1))
        doors.await_it(
            lambda: any(
                c["id"] == capture and c["count"] >= 10 for c in client.get_capture_status().values()
            ),
            "no packets were captured",
        )
        packets: list[Any] = []
        client.stop_capture(capture, output=packets)
        client.set_service_mode(ports=[0, 1], enabled=False)
    # Behind the headers of Ethernet, IPv4 and UDP.
    assert check(b"".join(bytes(packet["binary"])[42:] for packet in packets)) == 1


def test_a_socket_of_the_server_sends(door: Any, doors: Any) -> None:
    tunnel = door.add_namespace(0)
    with Collector() as collector:
        door.add_clients(tunnel, [1], ipfix=init(collector.address))
        data = b"".join(collector.socket.recv(2000) for _ in range(10))
        assert check(data) == 1
        counters = door.await_counter("txPackets", 10, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
    assert counters["txBytes"] >= len(data)


def test_devices_come_by_themselves(door: Any, doors: Any) -> None:
    with Collector() as collector:
        trigger = {
            "device_mac": doors.mac(50),
            "device_ipv4": [10, 9, 0, 1],
            "device_domain_id": 100,
            "devices_num": 4,
            "rampup_time": "1s",
            "device_init": init(collector.address),
        }
        tunnel = door.add_namespace(0, ipfix={"devices_auto_trigger": trigger})
        heard: dict[int, Any] = {}
        while len(heard) < 4:
            data, sender = collector.socket.recvfrom(2000)
            heard.update({domain: sender for domain, _, _ in messages(data)})
        assert sorted(heard) == [100, 101, 102, 103]
        assert len(set(heard.values())) == 4, "each has a socket of its own"
        door.call("ctx_stop_autotriggers", tun=tunnel)


@pytest.mark.parametrize("compress", [True, False])
def test_files_are_written_and_finished(door: Any, doors: Any, tmp_path: Path, compress: bool) -> None:
    params = {"max_interval": "200ms", "max_files": 3, "compress": compress}
    tunnel = door.add_namespace(0)
    door.add_clients(tunnel, [1], ipfix=init(f"file://{tmp_path}/new/flows.ipfix", exporter_params=params))
    counters = door.await_counter("fileRotates", 5, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
    assert counters["evFileRemoved"] >= 1
    door.call("ctx_client_remove", tun=tunnel, macs=[doors.mac(1)])
    doors.await_it(
        lambda: not (tmp_path / "new" / "flows_020000010001.ipfix").exists(), "the open file was not finished"
    )
    files = list((tmp_path / "new").glob("flows_020000010001_*.ipfix" + (".gz" if compress else "")))
    assert len(files) == 3
    read = gzip.decompress if compress else bytes
    assert min(check(read(file.read_bytes())) for file in files) > 1


def test_files_are_posted(door: Any, doors: Any) -> None:
    posted: list[tuple[str, dict[str, str], bytes]] = []

    class Web(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200 if len(posted) > 1 else 500)
            self.end_headers()
            self.wfile.write(b"thanks")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    tunnel = door.add_namespace(0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        params = {
            "max_interval": "200ms",
            "max_posts": 3,
            "name": "f.ipfix",
            "header_fields": {"X-Site": "home"},
        }
        url = f"http://127.0.0.1:{web.server_port}/api/%u/%t/post"
        door.add_clients(tunnel, [1], ipfix=init(url, exporter_params=params))
        counters = door.await_counter("maxPostsExceeded", 1, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
        counters = door.await_counter("filesExport", 3, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
        web.shutdown()
    assert len(posted) == 3
    assert (counters["httpStatus2xx"], counters["httpStatus5xx"], counters["filesExportFailed"]) == (2, 1, 1)
    path, fields, body = posted[0]
    assert path.startswith("/api/") and path.endswith("//post")
    assert (fields["x-site"], fields["x-exporter-version"], fields["content-encoding"]) == (
        "home",
        "1",
        "gzip",
    )
    boundary = fields["content-type"].removeprefix("multipart/form-data; boundary=")
    head, content = body.split(b"\r\n\r\n", 1)
    assert f'name="sendfile"; filename="{fields["x-exporter-filename"]}"'.encode() in head
    assert check(gzip.decompress(content.removesuffix(f"\r\n--{boundary}--\r\n".encode()))) == 1
    info = door.call("ipfix_c_get_exp_info", tun=tunnel, mac=doors.mac(1))
    codes = [file["http_status_code"] for file in info["files"]]
    assert sorted(codes) == ["200 OK", "200 OK", "500 Internal Server Error"]
    assert {file["http_response_msg"] for file in info["files"]} == {"thanks"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One on loopback."""
    with Collector() as collector:
        yield collector


def _file_of_messages(door: Any, doors: Any) -> bytes:
    """What a client sends, as a file."""
    tunnel = door.add_namespace(1)
    with Collector() as collector:
        door.add_clients(tunnel, [9], ipfix=init(collector.address))
        sent = b"".join(collector.socket.recvfrom(2000)[0] for _ in range(4))
        door.call("ctx_client_remove", tun=tunnel, macs=[doors.mac(9)])
    return sent


@pytest.mark.parametrize("compress", [True, False])
def test_files_are_sent_as_datagrams(
    door: Any, doors: Any, collector: Collector, tmp_path: Path, compress: bool
) -> None:
    content = _file_of_messages(door, doors)
    for name in ("a.20261123100000.ipfix", "b.20261123100005.ipfix"):
        path = tmp_path / (name + (".gz" if compress else ""))
        path.write_bytes(gzip.compress(content) if compress else content)
    (tmp_path / "c.ipfix").write_bytes(b"no messages")
    params = {"dir": str(tmp_path), "dir_scans_num": 2, "files_wait_time_speedup": 100}
    exporter = {"export_from_dir": True, "export_from_dir_params": params}
    tunnel = door.add_namespace(0)
    client = {"dst": collector.address, "exporter_params": exporter}
    door.add_clients(tunnel, [1], ipfix=client)
    sent = b"".join(collector.socket.recvfrom(2000)[0] for _ in range(16))
    assert sent == 4 * content
    counters = door.await_counter("txWritesFailed", 2, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
    assert (counters["txPackets"], counters["txBytes"]) == (16, len(sent))


def test_a_folder_that_is_not_there_is_counted(
    door: Any, doors: Any, collector: Collector, tmp_path: Path
) -> None:
    exporter = {"export_from_dir": True, "export_from_dir_params": {"dir": str(tmp_path / "none")}}
    tunnel = door.add_namespace(0)
    door.add_clients(tunnel, [1], ipfix={"dst": collector.address, "exporter_params": exporter})
    door.await_counter("txWritesFailed", 1, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))


def test_files_of_a_folder_are_posted(door: Any, doors: Any, tmp_path: Path) -> None:
    posted: list[bytes] = []

    class Web(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"file {name}", encoding="utf-8")
    exporter = {
        "export_from_dir": True,
        "export_from_dir_params": {"dir": str(tmp_path), "files_wait_time": "1ms"},
        "repeats_num": 1,
        "max_posts": 2,
    }
    tunnel = door.add_namespace(0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/post"
        door.add_clients(tunnel, [1], ipfix={"dst": url, "exporter_params": exporter})
        door.await_counter("httpStatus2xx", 4, "ipfix_c_cnt", tun=tunnel, mac=doors.mac(1))
        web.shutdown()
    assert [body.split(b"\r\n\r\n")[1].split(b"\r\n")[0] for body in posted] == [
        b"file a",
        b"file a",
        b"file b",
        b"file b",
    ]


def test_datagrams_come_from_the_address_of_the_client(door: Any, doors: Any, collector: Collector) -> None:
    tunnel = door.add_namespace(0)
    exporter = {"use_emu_client_ip_addr": True, "raw_socket_interface_name": "lo"}
    given = init(collector.address, exporter_params=exporter)
    door.call(
        "ctx_client_add",
        tun=tunnel,
        clients=[{"mac": doors.mac(1), "ipv4": [127, 9, 8, 7], "plugs": {"ipfix": given}}],
    )
    data, (host, _) = collector.socket.recvfrom(2000)
    assert (host, next(messages(data))[0]) == ("127.9.8.7", 7)
