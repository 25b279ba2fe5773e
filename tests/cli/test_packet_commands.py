"""`allosaur capture`, `ping`, `arp` and `push` against a real server, and asked wrongly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from allosaur import PacketBuffer, STLClient, STLPktBuilder, STLStream, STLTXCont
from allosaur.packets._capture_reader import frames
from allosaur.packets._capture_writer import CaptureFile
from allosaur.server import LocalServer

pytestmark = pytest.mark.usefixtures("binary")

MINE, THEIRS, THEIRS6 = "192.0.2.1", "192.0.2.2", "2001:db8::2"
FRAME = bytes.fromhex("020000000006020000000005 0800".replace(" ", "")) + bytes(46)


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


@pytest.fixture
def neighbor(server: LocalServer) -> Iterator[STLClient]:
    """Somebody else on the server, whose port 1 is a host."""
    with STLClient("bob", server.host, server.rpc_port, server.pub_port) as client:
        client.acquire([1])
        client.set_service_mode([1])
        client._layers.configure("set_l3", [1], src_addr=THEIRS, dst_addr=MINE)
        client.conf_ipv6(1, True, THEIRS6)
        yield client


@contextmanager
def pushing(client: STLClient, port: int) -> Iterator[None]:
    """Push frames out of a port, again and again, meanwhile."""
    done = threading.Event()

    def push() -> None:
        while not done.wait(0.01):
            client.push_packets([PacketBuffer(FRAME)] * 5, ports=[port])

    thread = threading.Thread(target=push)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def capture_file(tmp_path: Path) -> Path:
    """A capture of thirty packets in three milliseconds."""
    path = tmp_path / "send.pcap"
    with CaptureFile(path) as file:
        for number in range(30):
            packet: Any = {"binary": FRAME, "wirelen": len(FRAME), "port": 0, "origin": "TX"}
            file.write(packet, number * 1e-4)
    return path


def test_ping(allosaur: Any, server: LocalServer, neighbor: STLClient) -> None:
    asked = ("ping", THEIRS, "--source", MINE, "-n", "3", "-i", "10ms", *where(server))
    ended = allosaur(*asked)
    assert ended.code == 0, ended
    lines = ended.out.splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == [f"Reply from {THEIRS}: bytes=64"] * 3
    assert lines[3].startswith("3 sent, 3 answered; round trip min/avg/max ")
    # The address stays, so it need not be said again.
    result = allosaur("ping", THEIRS, "-n", "1", "-s", "1000", "--json", *where(server)).json()
    assert result.keys() == {
        *("command", "ok", "address", "port", "server", "sent", "received", "rtt_ms", "replies"),
    }
    assert (result["ok"], result["sent"], result["received"]) == (True, 1, 1)
    assert result["replies"][0]["src_ip"] == THEIRS
    assert result["rtt_ms"]["min"] == result["replies"][0]["rtt"] > 0
    six = allosaur("ping", THEIRS6, "--source", "2001:db8::1", "-n", "1", *where(server))
    assert six.code == 0, six


def test_nobody_answers(allosaur: Any, server: LocalServer, neighbor: STLClient) -> None:
    silent = allosaur(
        "ping", "192.0.2.77", "--source", MINE, "--gateway", THEIRS, "-n", "2", "-i", "0", "--timeout",
        "100ms", "--json", *where(server),
    )  # fmt: skip
    assert silent.code == 1, silent
    assert (silent.json()["sent"], silent.json()["received"], silent.json()["rtt_ms"]) == (2, 0, None)
    neighbor.set_l2_mode(1, "02:00:00:00:00:01")
    gone = allosaur("arp", "--source", MINE, "--gateway", "192.0.2.78", *where(server))
    gone.failed(1, "port 0", "no gateway found", "192.0.2.78")


def test_arp(allosaur: Any, server: LocalServer, neighbor: STLClient) -> None:
    allosaur("arp", *where(server)).refused("port 0 has no IPv4 address", "--source and --gateway")
    ended = allosaur("arp", "--source", MINE, "--gateway", THEIRS, *where(server))
    mac = neighbor.get_port(1).src_mac
    assert (ended.code, ended.out) == (0, f"port 0: {THEIRS} is at {mac}\n"), ended
    result = allosaur("arp", "--retries", "1", "--json", *where(server)).json()
    assert result == {
        "command": "arp",
        "ok": True,
        "port": 0,
        "server": f"{server.host}:{server.rpc_port}",
        "source": MINE,
        "gateway": THEIRS,
        "gateway_mac": mac,
    }


def test_a_port_of_somebody_else_is_left_alone(
    allosaur: Any, server: LocalServer, neighbor: STLClient
) -> None:
    asked = ("arp", "--port", "1", "--source", THEIRS, "--gateway", MINE, *where(server))
    allosaur(*asked).failed(3, "cannot take port 1", "bob", "--force takes the ports over")
    assert neighbor.get_acquired_ports() == [1]


@pytest.mark.parametrize("name", ["out.pcap", "out.pcapng"])
def test_capture_into_a_file(
    allosaur: Any, server: LocalServer, neighbor: STLClient, tmp_path: Path, name: str
) -> None:
    with pushing(neighbor, 1):
        ended = allosaur("capture", "--rx", "0", "-o", name, "-n", "70", "--json", *where(server))
    assert ended.code == 0, ended
    result = ended.json()
    assert result.keys() == {
        *("command", "ok", "server", "rx_ports", "tx_ports", "filter", "output", "packets", "bytes"),
        *("lost_packets", "tool", "schema", "started", "host"),
    }
    assert (result["packets"], result["bytes"], result["lost_packets"]) == (70, 70 * 60, 0)
    assert [frame.data for frame in frames(tmp_path / name)] == [FRAME] * 70
    assert neighbor.get_capture_status() == {}


def test_what_comes_after_the_packets_that_were_asked_for_is_not_missing(
    allosaur: Any, server: LocalServer, neighbor: STLClient, tmp_path: Path
) -> None:
    packet = STLPktBuilder(pkt_buffer=FRAME)
    neighbor.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=100_000)), ports=[1])
    neighbor.start(ports=[1], force=True)
    before_s = time.time()
    for asked in (["-n", "20"], ["-n", "2000", "-o", "out.pcapng"]):
        ended = allosaur("capture", "--rx", "0", *asked, "--json", *where(server))
        result = ended.json()
        wanted = (0, int(asked[1]), 0, True)
        assert (ended.code, result["packets"], result["lost_packets"], result["ok"]) == wanted
    # Times are those of day, and an interface says whose it is.
    times_s = [frame.time_ns / 1e9 for frame in frames(tmp_path / "out.pcapng")]
    assert len(times_s) == 2000
    assert before_s - 60 < times_s[0] <= times_s[-1] < time.time() + 60
    assert b"port 0" in (tmp_path / "out.pcapng").read_bytes()


def test_capture_line_by_line(allosaur: Any, server: LocalServer, neighbor: STLClient) -> None:
    with pushing(neighbor, 1):
        asked = ("--rx", "0", "--tx", "1", "-n", "20", "-f", "ether src 02:00:00:00:00:05")
        ended = allosaur("capture", *asked, *where(server))
    assert ended.code == 0, ended
    lines = ended.out.splitlines()
    assert len(lines) == 20
    assert {line.split(" ", 1)[1].split(":")[0] for line in lines} == {
        "port 0 RX 60 bytes",
        "port 1 TX 60 bytes",
    }
    assert "Ether" in lines[0]
    assert "20 packets, 1,200 bytes." in ended.err


def test_capture_to_the_standard_output(
    server: LocalServer, neighbor: STLClient, tmp_path: Path, allosaur: Any
) -> None:
    allosaur("capture", "-o", "-", "--json").refused("-o -", "--json")
    command = [sys.executable, "-m", "allosaur.cli", "capture", "--rx", "0", "-o", "-", "-n", "5"]
    with pushing(neighbor, 1):
        done = subprocess.run([*command, *where(server)], capture_output=True, timeout=60, check=True)
    (tmp_path / "out.pcap").write_bytes(done.stdout)
    assert [frame.data for frame in frames(tmp_path / "out.pcap")] == [FRAME] * 5
    assert b"5 packets, 300 bytes." in done.stderr


def test_a_reader_that_goes_away_ends_a_capture(server: LocalServer, neighbor: STLClient) -> None:
    command = [sys.executable, "-m", "allosaur.cli", "capture", "--rx", "0", "-o", "-"]
    pipe = subprocess.PIPE
    with (
        pushing(neighbor, 1),
        subprocess.Popen([*command, *where(server)], stdout=pipe, stderr=pipe, text=False) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(20) == 0, said
    assert b"Traceback" not in said
    assert neighbor.get_capture_status() == {}


def test_a_capture_ends_after_its_time(allosaur: Any, server: LocalServer) -> None:
    result = allosaur("capture", "-d", "200ms", "-f", "udp", "--json", *where(server)).json()
    assert (result["packets"], result["listed"], result["rx_ports"]) == (0, [], [0, 1])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_capture_is_stopped(
    server: LocalServer, neighbor: STLClient, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = tmp_path / "out.pcap"
    command = [sys.executable, "-m", "allosaur.cli", "capture", "--rx", "0", "-o", str(path), "--json"]
    with (
        pushing(neighbor, 1),
        subprocess.Popen([*command, *where(server)], stdout=subprocess.PIPE, text=True) as process,
    ):
        deadline = time.monotonic() + 20
        while not (path.exists() and path.stat().st_size > 500) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == code
    # All that it says it has is in the file, and nothing is left on the server.
    assert json.loads(out)["packets"] == len(list(frames(path))) > 0
    assert neighbor.get_capture_status() == {}


@pytest.mark.parametrize("remote", [False, True])
def test_push(allosaur: Any, server: LocalServer, capture_file: Path, remote: bool) -> None:
    asked = ["push", capture_file, "--count", "2", "--speedup", "2", "--json", *where(server)]
    ended = allosaur(*asked, *(["--remote"] if remote else []))
    assert ended.code == 0, ended
    result = ended.json()
    assert (result["command"], result["remote"], result["sending_ports"]) == ("push", remote, [0])
    assert result["ports"]["0"]["tx_packets"] == result["ports"]["1"]["rx_packets"] == 60
    assert (result["lost_packets"], result["ok"]) == (0, True)
    with STLClient("carol", server.host, server.rpc_port, server.pub_port) as client:
        assert client.get_port(0).status["state"] == "IDLE"


def test_push_for_a_time(allosaur: Any, server: LocalServer, capture_file: Path) -> None:
    asked = ("--remote", "--count", "forever", "--ipg", "1000", "-d", "500ms")
    ended = allosaur("push", capture_file, *asked, *where(server))
    assert ended.code == 0, ended
    assert "all of it was received" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ping", "host.example"), ["host.example", "192.0.2.1"]),
        (("ping", THEIRS, "-s", "10"), ["--size", "64 to 9216"]),
        (("ping", THEIRS, "--gateway", MINE), ["--gateway needs --source"]),
        (("ping", THEIRS, "--source", "::1"), ["--source", "IPv6"]),
        (("ping", THEIRS, "--vlan", "5000"), ["5000", "1 to 4095"]),
        (("ping", THEIRS, "-i", "forever"), ["does not end"]),
        (("arp", "--source", MINE), ["--source needs --gateway"]),
        (("arp", "--retries", "-1"), ["--retries"]),
        (("arp", "--source", "::1", "--gateway", "::2"), ["IPv4"]),
        (("push", "nowhere.pcap"), ["nowhere.pcap", "--remote"]),
        (("push", "x", "--ipg", "1", "--min-ipg", "1"), ["--min-ipg"]),
        (("push", "x", "--speedup", "0"), ["above zero"]),
        (("push", "x", "--ipg", "-1"), ["microseconds"]),
        (("push", "x", "--count", "0"), ["above zero"]),
        (("capture", "--snaplen", "0"), ["above zero"]),
        (("capture", "--rx", "a"), ["list of ports"]),
    ],
)
def test_wrong_words(allosaur: Any, words: tuple[str, ...], said: list[str]) -> None:
    allosaur(*words).refused(*said)


def test_what_the_server_refuses(allosaur: Any, server: LocalServer, tmp_path: Path) -> None:
    at = where(server)
    allosaur("capture", "-f", "udp port x", *at).refused("cannot capture", "udp port x")
    allosaur("capture", "--rx", "7", *at).refused("--rx", "ports 0 to 1")
    allosaur("capture", "-o", "nowhere/out.pcap", *at).refused("nowhere/out.pcap", "cannot be written")
    allosaur("ping", THEIRS, "--port", "7", *at).refused("--port", "ports 0 to 1")
    allosaur("ping", THEIRS, *at).refused("port 0", "--source and --gateway")
    allosaur("push", "/nowhere.pcap", "--remote", *at).refused("port 0", "/nowhere.pcap")
    (tmp_path / "x.pcap").write_bytes(b"nothing")
    allosaur("push", "x.pcap", *at).refused("x.pcap")
    allosaur("push", "x.pcap", "--dual", "--ports", "0,1", *at).refused("--ports", "one port of each pair")


def test_no_server(allosaur: Any) -> None:
    allosaur("ping", THEIRS, "--server", "localhost:1").failed(3, "no server answers at localhost:1")
