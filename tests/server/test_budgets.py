"""What peers may take of a server's memory, whatever they send or do not read."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from allosaur.server import LocalServer

MIB = 1 << 20
GROWTH_MAX = 150 * MIB
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
ANSWER_WITHIN_MS = 120_000
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\0" + b"NULL".ljust(20, b"\0") + bytes(32)
COMMAND, LONG, MORE = 4, 2, 1


def frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + struct.pack(">Q", len(body)) + body


READY = frame(b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER", COMMAND)


class Attacked:
    """A server, how much memory it takes, and somebody who asks it all the time."""

    def __init__(self, server: LocalServer, port: int, method: str) -> None:
        self.port = port
        self._statm = Path(f"/proc/{server.pid}/statm")
        self._context = zmq.Context()
        self._request = json.dumps({**PING, "method": method}).encode()
        self._ended = threading.Event()
        self.answered = 0
        self.problem: str | None = None
        self._ask(self._requests())
        self._before = self.memory()
        self.peak = self._before
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def growth(self) -> int:
        return self.peak - self._before

    def memory(self) -> int:
        return int(self._statm.read_text().split()[1]) * 4096

    def requests(self) -> zmq.Socket[bytes]:
        return self._requests()

    def raw(self) -> socket.socket:
        """A connection that has said that its handshake is over."""
        peer = socket.create_connection(("127.0.0.1", self.port), 60)
        peer.sendall(GREETING + READY)
        return peer

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _requests(self) -> zmq.Socket[bytes]:
        requests: zmq.Socket[bytes] = self._context.socket(zmq.REQ)
        requests.setsockopt(zmq.LINGER, 0)
        requests.connect(f"tcp://127.0.0.1:{self.port}")
        return requests

    def _ask(self, requests: zmq.Socket[bytes]) -> bool:
        requests.send(self._request)
        return bool(requests.poll(ANSWER_WITHIN_MS)) and b"result" in requests.recv()

    def _run(self) -> None:
        requests = self._requests()
        while not self._ended.wait(0.005):
            if not self._ask(requests):
                self.problem = "another client was not answered"
                return
            self.answered += 1
            self.peak = max(self.peak, self.memory())


@pytest.fixture(params=["control", "emulation"])
def attacked(request: pytest.FixtureRequest) -> Iterator[Attacked]:
    with LocalServer(emu=True) as server:
        port = server.rpc_port if request.param == "control" else server.emu_port
        assert port is not None
        one = Attacked(server, port, "ping" if request.param == "control" else "get_version")
        try:
            yield one
            assert server.is_running()
        finally:
            one.end()


def push(peer: socket.socket, data: bytes) -> bool:
    """Send as much as the server takes; whether it took all."""
    peer.settimeout(2)
    view = memoryview(data)
    with contextlib.suppress(OSError):
        while view:
            view = view[peer.send(view[:MIB]) :]
    return not view


def parts_of_one_message(one: Attacked) -> Any:
    peer = one.raw()
    parts = frame(b"", MORE) + frame(bytes(65536), MORE) * 5000 + frame(b"last")
    push(peer, parts)
    return peer


def a_message_without_an_end(one: Attacked) -> Any:
    peer = one.raw()
    push(peer, frame(b"", MORE))
    part = frame(bytes(MIB), MORE)
    took = 0
    while push(peer, part):
        took += 1
        assert took < 1000, "a message has no end, and is taken"
    return peer


def handshakes_that_are_long(one: Attacked) -> Any:
    peers = []
    for _ in range(8):
        peer = socket.create_connection(("127.0.0.1", one.port), 60)
        push(peer, GREETING + bytes([COMMAND | LONG]) + struct.pack(">Q", 63 * MIB) + bytes(40 * MIB))
        peers.append(peer)
    return peers


def replies_that_nobody_reads(one: Attacked) -> Any:
    asks = frame(b"", MORE) + frame(json.dumps([{**PING, "method": "get_version"}] * 9000).encode())
    peers = [one.raw() for _ in range(12)]
    for peer in peers:
        for _ in range(30):
            if not push(peer, asks):
                break
    return peers


@pytest.mark.parametrize(
    "attack",
    [parts_of_one_message, a_message_without_an_end, handshakes_that_are_long, replies_that_nobody_reads],
)
def test_memory_has_an_end_and_others_are_answered(
    attacked: Attacked, attack: Callable[[Attacked], Any]
) -> None:
    before = attacked.answered
    kept = attack(attacked)
    while attacked.answered < before + 20:
        assert attacked.problem is None, attacked.problem
        assert attacked._thread.is_alive()
    assert attacked.growth < GROWTH_MAX, f"{attacked.growth / MIB:.0f} MiB more"
    del kept


def test_batches_of_many_clients_do_not_take_all_memory() -> None:
    batch = json.dumps([PING] * 16_000, separators=(",", ":")).encode()
    with LocalServer() as server:
        one = Attacked(server, server.rpc_port, "ping")
        try:
            clients = [one.requests() for _ in range(8)]
            for client in clients:
                client.send(batch)
            for client in clients:
                assert client.poll(ANSWER_WITHIN_MS)
                assert len(json.loads(client.recv())) == 16_000
        finally:
            one.end()
        assert one.growth < GROWTH_MAX, f"{one.growth / MIB:.0f} MiB more"
        assert one.problem is None, one.problem
