"""Servers that do not do what they should, each on a port of its own: a program for a host of a test.

    python failing_peers.py [NAME=PORT ...]

TCP and UDP, IPv4 and IPv6. It says "ready" when all of them listen.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time

RESET = struct.pack("ii", 1, 0)
HEAD = b"HTTP/1.1 %d Whatever\r\nConnection: close\r\n\r\n"
WHOLE = (HEAD % 200).ljust(20_000, b"x")
SLOW_S = 0.3
ANSWERS = {
    "right": WHOLE,
    "slow": WHOLE,
    "early": WHOLE[:1_000],
    "empty": b"",
    "middle": WHOLE[:1_000],
    "at_once": b"",
    "fails": (HEAD % 503).ljust(20_000, b"x"),
    "denies": (HEAD % 404).ljust(20_000, b"x"),
    # The first bytes of TLS 1.2's ServerHello.
    "handshake": bytes.fromhex("160303007a0200007603030102030405"),
    "no_http": b"SSH-2.0-".ljust(20_000, b"x"),
}
RESETTING = ("middle", "at_once", "handshake")


def answer(name: str, connection: socket.socket) -> None:
    """Serve one connection as its port's name says."""
    with connection, contextlib.suppress(OSError):
        if name != "at_once":
            connection.recv(4_096)
        if name == "slow":
            time.sleep(SLOW_S)
        connection.sendall(ANSWERS[name])
        if name in ("middle", "handshake"):
            # What was sent is acknowledged first: it must not be lost with the reset.
            time.sleep(0.02)
        if name in RESETTING:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def accept(name: str, listener: socket.socket) -> None:
    """Serve each connection in a thread of its own."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(name, connection), daemon=True).start()


def echo(name: str, sock: socket.socket) -> None:
    """Answer datagrams, or be silent."""
    while True:
        data, peer = sock.recvfrom(2_048)
        if name == "udp_right":
            sock.sendto(data, peer)


def main() -> None:
    """Serve until somebody ends the program."""
    for word in sys.argv[1:]:
        name, port = word.split("=")
        kind = socket.SOCK_DGRAM if name.startswith("udp_") else socket.SOCK_STREAM
        sock = socket.socket(socket.AF_INET6, kind)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("::", int(port)))
        if kind == socket.SOCK_STREAM:
            sock.listen(512)
        serve = accept if kind == socket.SOCK_STREAM else echo
        threading.Thread(target=serve, args=(name, sock), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
