"""A host of UDP for tests, as a program: it asks, or it answers, and compares what it gets.

    python udp_peer.py answer PORT REQUEST RESPONSE     until it is told to end
    python udp_peer.py ask ADDRESS PORT REQUEST RESPONSE TIMES

REQUEST and RESPONSE are files. It says in the end, as JSON, how many were "right" and "wrong".
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

BUFFER_BYTES = 8 << 20


class _End(Exception):
    """Somebody told us to end."""


def _answer(port: int, request: bytes, response: bytes) -> dict[str, int]:
    told = {"right": 0, "wrong": 0}

    def end(number: int, frame: FrameType | None) -> None:
        raise _End

    signal.signal(signal.SIGTERM, end)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as peer:
        peer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        peer.bind(("::", port))
        print("ready", flush=True)
        try:
            while True:
                data, sender = peer.recvfrom(1 << 16)
                told["right" if data == request else "wrong"] += 1
                peer.sendto(response, sender)
        except _End:
            return told


def _ask(address: str, port: int, request: bytes, response: bytes, times: int) -> dict[str, int]:
    told = {"right": 0, "wrong": 0}
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    print("ready", flush=True)
    for _ in range(times):
        with socket.socket(family, socket.SOCK_DGRAM) as peer:
            peer.settimeout(10)
            peer.connect((address, port))
            peer.send(request)
            told["right" if peer.recv(1 << 16) == response else "wrong"] += 1
    return told


def main(words: Sequence[str]) -> None:
    """Ask, or answer, then say what came of it."""
    kind, *rest = words
    if kind == "answer":
        port, request, response = rest
        told = _answer(int(port), Path(request).read_bytes(), Path(response).read_bytes())
    else:
        address, port, request, response, times = rest
        files = Path(request).read_bytes(), Path(response).read_bytes()
        told = _ask(address, int(port), *files, int(times))
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
