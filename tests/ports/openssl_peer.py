"""Ends of TLS by the OpenSSL that pyOpenSSL brings along, which is newer than the system's, as a program.

    python openssl_peer.py answer PORT CERTIFICATE KEY          until it is told to end
    python openssl_peer.py ask ADDRESS PORT AUTHORITY TIMES

It answers requests of HTTP/1.0, or makes them, one at a time, and says in the end, as JSON, over which
groups keys were exchanged, and how often.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from types import FrameType
from typing import Any

from OpenSSL import SSL

RESPONSE = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET / HTTP/1.0\r\n\r\n"


class _End(Exception):
    """Somebody told us to end."""


def _read_until(peer: SSL.Connection, end: bytes) -> None:
    read = b""
    while not read.endswith(end):
        read += peer.recv(4096)


def _end(peer: SSL.Connection) -> None:
    """Tell that it is over, and wait for the other to say so."""
    peer.shutdown()
    try:
        while True:
            peer.recv(4096)
    except SSL.Error:
        peer.sock_shutdown(socket.SHUT_RDWR)
        peer.close()


def _answer(port: int, certificate: str, key: str) -> Counter[str]:
    groups: Counter[str] = Counter()

    def end(number: int, frame: FrameType | None) -> None:
        raise _End

    signal.signal(signal.SIGTERM, end)
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.use_certificate_file(certificate)
    context.use_privatekey_file(key)
    with socket.create_server(("", port), backlog=128) as listener:
        print("ready", flush=True)
        try:
            while True:
                peer = SSL.Connection(context, listener.accept()[0])
                peer.set_accept_state()
                peer.do_handshake()
                groups[str(peer.get_group_name())] += 1
                _read_until(peer, b"\r\n\r\n")
                peer.sendall(RESPONSE)
                _end(peer)
        except _End:
            return groups


def _ask(address: str, port: int, authority: str, times: int) -> Counter[str]:
    groups: Counter[str] = Counter()
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.load_verify_locations(authority)
    context.set_verify(SSL.VERIFY_PEER)
    for _ in range(times):
        peer = SSL.Connection(context, socket.create_connection((address, port), timeout=10))
        # Else it would be told that nothing is there yet.
        peer.setblocking(True)
        peer.set_connect_state()
        peer.do_handshake()
        groups[str(peer.get_group_name())] += 1
        peer.sendall(REQUEST)
        _read_until(peer, RESPONSE)
        _end(peer)
    return groups


def main(words: Sequence[str]) -> None:
    groups: Any
    match words:
        case ["answer", port, certificate, key]:
            groups = _answer(int(port), certificate, key)
        case ["ask", address, port, authority, times]:
            groups = _ask(address, int(port), authority, int(times))
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(groups))


if __name__ == "__main__":
    main(sys.argv[1:])
