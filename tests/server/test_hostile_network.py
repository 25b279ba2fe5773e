"""Whatever reaches the server's sockets, it answers, goes on, and another user's traffic is untouched."""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer

RATE_PPS = 20_000
DURATION_S = 0.5
MAGIC = struct.pack(">I", 0xABE85CEA)


class Wire:
    """A socket that sends bytes as they are, and reads the reply as JSON."""

    def __init__(self, server: LocalServer) -> None:
        self._context = zmq.Context()
        self._address = f"tcp://{server.host}:{server.rpc_port}"

    def ask(self, *frames: bytes) -> Any:
        """Send a message of these frames; give the reply, unzipped."""
        requests = self._context.socket(zmq.REQ)
        requests.setsockopt(zmq.LINGER, 0)
        requests.setsockopt(zmq.RCVTIMEO, 20_000)
        try:
            requests.connect(self._address)
            requests.send_multipart(frames)
            reply = requests.recv()
        finally:
            requests.close()
        if reply.startswith(MAGIC):
            reply = zlib.decompress(reply[8:])
        return json.loads(reply)

    def call(self, method: str, **params: Any) -> Any:
        """Make a proper request."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.ask(json.dumps(request).encode())

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture
def wire(server: LocalServer) -> Iterator[Wire]:
    wire = Wire(server)
    yield wire
    wire.close()


@pytest.fixture
def busy(server: LocalServer) -> Iterator[STLClient]:
    """Alice, whose traffic runs on port 0 meanwhile; at the end it must be whole."""
    with server.client(username="alice") as client:
        client.reset(ports=[0])
        frame = bytes(12) + b"\x08\x00" + bytes(46)
        client.add_streams(
            STLStream(packet=STLPktBuilder(pkt_buffer=frame), mode=STLTXCont(pps=RATE_PPS)), ports=[0]
        )
        client.start(ports=[0], duration=DURATION_S)
        yield client
        client.wait_on_traffic(ports=[0])
        stats = settled(client)
        assert stats[0]["opackets"] + stats[0]["missed_packets"] == int(RATE_PPS * DURATION_S)
        assert stats[1]["ipackets"] == stats[0]["opackets"]


def settled(client: STLClient) -> Any:
    """Statistics once what was sent has arrived."""
    deadline = time.monotonic() + 10
    while True:
        stats = client.get_stats(ports=[0, 1])
        if stats[1]["ipackets"] >= stats[0]["opackets"] or time.monotonic() > deadline:
            return stats
        time.sleep(0.01)


def zipped(text: bytes) -> bytes:
    return MAGIC + struct.pack(">I", len(text)) + zlib.compress(text)


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"", -32700),
        (b"\xff\xfe\x00 these are not JSON", -32700),
        (PING[:-10], -32700),
        (zipped(PING)[:-6], -32700),
        (MAGIC, -32700),
        (zipped(PING[:20]), -32700),
        (b'"' + b"x" * 2_000_000 + b'"', -32603),
        (zipped(b'"' + b"x" * 2_000_000 + b'"'), -32603),
        (b"[" * 200_000, -32700),
        (b"7", -32600),
        (b'{"jsonrpc":"2.0","method":"ping","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no_such_method","params":{}}', -32601),
    ],
    ids=[
        "nothing",
        "bytes",
        "truncated",
        "truncated zip",
        "magic alone",
        "zipped and truncated",
        "2 MB",
        "2 MB zipped to 2 kB",
        "deep nesting",
        "a number",
        "no id",
        "unknown method",
    ],
)
def test_a_bad_message_is_answered(busy: STLClient, wire: Wire, message: bytes, code: int) -> None:
    reply = wire.ask(message)
    assert reply["error"]["code"] == code, reply
    assert wire.ask(PING)["result"]["ts"] > 0


def test_the_length_in_a_zipped_message_is_not_trusted(busy: STLClient, wire: Wire) -> None:
    assert "result" in wire.ask(MAGIC + b"\xff\xff\xff\xff" + zlib.compress(PING))
    assert "result" in wire.ask(MAGIC + bytes(4) + zlib.compress(PING))


def test_a_message_of_several_frames_is_answered(busy: STLClient, wire: Wire) -> None:
    assert "error" in wire.ask(b"{", b"not", b"one frame")
    assert "result" in wire.ask(PING)


def test_a_thousand_random_messages(busy: STLClient, wire: Wire) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    good = [PING, zipped(PING), b"[" + PING + b"," + PING + b"]"]
    for _ in range(1000):
        message = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 8)):
            message[chance.randrange(len(message))] = chance.randrange(256)
        reply = wire.ask(bytes(message))
        for one in reply if isinstance(reply, list) else [reply]:
            assert one is None or "result" in one or one["error"]["code"] < 0, (message, reply)
    assert "result" in wire.ask(PING)


def test_who_does_not_speak_zeromq_is_ignored(busy: STLClient, server: LocalServer, wire: Wire) -> None:
    for port in (server.rpc_port, server.pub_port):
        for words in (b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b"\xff" * 64):
            with socket.create_connection((server.host, port), timeout=10) as stranger:
                stranger.sendall(words)
    assert "result" in wire.ask(PING)


def test_who_asks_and_leaves_without_the_reply_does_no_harm(
    busy: STLClient, server: LocalServer, wire: Wire
) -> None:
    for _ in range(50):
        context = zmq.Context()
        requests = context.socket(zmq.REQ)
        requests.connect(f"tcp://{server.host}:{server.rpc_port}")
        requests.send(PING)
        requests.close(linger=0)
        context.destroy(linger=0)
    assert "result" in wire.ask(PING)


KILLED = """
import sys, time
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXCont
host, rpc_port, pub_port = sys.argv[1:]
client = STLClient(server=host, sync_port=int(rpc_port), async_port=int(pub_port), username="bob")
client.connect()
client.acquire(ports=[1])
stream = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1000))
client.add_streams(stream, ports=[1])
client.start(ports=[1])
print("running", flush=True)
time.sleep(60)
"""


def test_a_client_that_is_killed_leaves_a_port_that_others_can_take(
    busy: STLClient, server: LocalServer, wire: Wire
) -> None:
    words = [sys.executable, "-c", KILLED, server.host, str(server.rpc_port), str(server.pub_port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as bob:
        assert bob.stdout is not None
        assert bob.stdout.readline() == "running\n"
        bob.send_signal(signal.SIGKILL)
    with server.client(username="carol") as carol:
        with pytest.raises(Exception, match="bob"):
            carol.acquire(ports=[1])
        carol.acquire(ports=[1], force=True)
        carol.stop(ports=[1])
        carol.remove_all_streams(ports=[1])
        carol.release(ports=[1])


MULTIPLIER = {"type": "raw", "op": "abs", "value": 1.0}
ATTEMPTS: dict[str, tuple[dict[str, Any], str]] = {
    "acquire": ({"user": "eve", "session_id": 9, "force": False}, "alice"),
    "stop_traffic": ({}, "owned"),
    "start_traffic": ({"mul": MULTIPLIER, "duration": 1.0, "force": True}, "owned"),
    "remove_all_streams": ({}, "owned"),
    "add_stream": ({"stream_id": 1, "stream": {"enabled": True}}, "owned"),
    "release": ({}, "owned"),
}
"""What a stranger may try on Alice's port: parameters, and a word of the refusal."""


@pytest.mark.parametrize("method", ATTEMPTS)
def test_a_port_of_another_user_is_not_touched(busy: STLClient, wire: Wire, method: str) -> None:
    params, word = ATTEMPTS[method]
    api_handle = wire.call("api_sync_v2", name="STL", major=5, minor=1)["result"]["api_h"]
    reply = wire.call(method, api_h=api_handle, port_id=0, handler="guessed!", **params)
    assert word in reply["error"]["specific_err"], reply


def test_an_unknown_port_is_named(busy: STLClient, wire: Wire) -> None:
    api_handle = wire.call("api_sync_v2", name="STL", major=5, minor=1)["result"]["api_h"]
    reply = wire.call("get_port_stats", api_h=api_handle, port_id=77)
    assert "77" in reply["error"]["specific_err"], reply
