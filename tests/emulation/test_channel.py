"""An emulation server of another process on the ports of a server: TRex's messages over two sockets."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from allosaur.server import LocalServer, ServerStartError
from scapy.layers.l2 import ARP, Ether

MAC, IPV4 = "02:00:00:00:00:07", "10.9.0.7"
ASKER = "02:00:00:00:00:01"
PATIENCE_S = 30.0


class FakeEmu:
    """A host that answers ARP, at the end of the channel where TRex's emulation server would be."""

    def __init__(self, number: int) -> None:
        self._context = zmq.Context()
        self.received, self.sent = (self._connect(number + at) for at in (0, 1))

    def _connect(self, number: int) -> Any:
        socket = self._context.socket(zmq.PAIR)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 30_000)
        socket.connect(f"ipc:///tmp/emu-{number}.ipc")
        return socket

    def frames(self) -> list[tuple[int, bytes]]:
        """The port and the bytes of each frame of the next message."""
        message = self.received.recv()
        (head,) = struct.unpack_from(">I", message)
        assert head >> 16 == 0xBEEF
        frames, at = [], 4
        for _ in range(head & 0xFFFF):
            (word,) = struct.unpack_from(">I", message, at)
            assert word >> 24 == 0xAA
            end = at + 4 + (word & 0xFFFF)
            frames.append((word >> 16 & 0xFF, message[at + 4 : end]))
            at = end
        assert at == len(message)
        return frames

    def request_for(self, address: str, port: int, ask: Callable[[], object]) -> Any:
        """The next ARP request for an address that a port received; `ask` sends one.

        What comes before both ends of a channel know of each other is lost: it is asked again.
        """
        until = time.monotonic() + PATIENCE_S
        ask()
        while True:
            if not self.received.poll(1000):
                assert time.monotonic() < until, "nobody was asked"
                ask()
                continue
            for number, frame in self.frames():
                found = Ether(frame).getlayer(ARP)
                if found is not None and (number, found.op, found.pdst) == (port, 1, address):
                    return found

    def send(self, *frames: tuple[int, bytes]) -> None:
        """Have ports send frames."""
        message = struct.pack(">I", 0xBEEF << 16 | len(frames))
        for port, frame in frames:
            message += struct.pack(">I", 0xAA << 24 | port << 16 | len(frame)) + frame
        self.sent.send(message)

    def close(self) -> None:
        """Close the sockets."""
        self._context.destroy(linger=0)


@pytest.fixture
def number() -> int:
    """Of the first socket: one that no other test of this machine has."""
    return 20_000 + os.getpid() % 20_000 * 2


@pytest.fixture
def channel(number: int) -> Iterator[LocalServer]:
    """A server with the channel."""
    with LocalServer(options=["--emu-zmq", "ipc", "--emu-zmq-port", str(number)]) as server:
        yield server


def test_its_hosts_answer_on_our_ports(channel: LocalServer, number: int) -> None:
    emu = FakeEmu(number)
    try:
        with channel.client() as client:
            client.reset(ports=[0, 1])
            ask = Ether(src=ASKER, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=ASKER, psrc="10.9.0.1", pdst=IPV4)
            client.set_service_mode(ports=[0, 1])
            client.set_rx_queue(ports=[0], size=10)
            asked = emu.request_for(IPV4, 1, lambda: client.push_packets(ask, ports=[0]))
            answer = Ether(src=MAC, dst=ASKER) / ARP(
                op=2, hwsrc=MAC, psrc=IPV4, hwdst=asked.hwsrc, pdst=asked.psrc
            )
            # What is wrong does no harm to what is right.
            emu.sent.send(b"\xbe\xef\0\x09")
            emu.sent.send(b"nothing of the kind")
            emu.send((77, bytes(answer)), (1, bytes(answer)))
            emu.send((1, bytes(answer)))
            expected = bytes(answer).ljust(60, b"\0")
            got: list[bytes] = []
            while len(got) < 2:
                packets = [packet["binary"].ljust(60, b"\0") for packet in client.get_rx_queue_pkts(port=0)]
                got += [packet for packet in packets if packet == expected]
            assert len(got) == 2
    finally:
        emu.close()


def test_what_is_taken_is_named(channel: LocalServer, number: int) -> None:
    path = Path(f"/tmp/emu-{number}.ipc")
    assert path.exists()
    options = ["--emu-zmq", "tcp", "--emu-zmq-port", str(channel.rpc_port)]
    with pytest.raises(ServerStartError, match="--emu-zmq-port") as refused:
        LocalServer(options=options).start()
    assert str(channel.rpc_port) in str(refused.value)
