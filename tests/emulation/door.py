"""Requests to emulated clients, as bare as they are on the wire: JSON over a REQ socket of ZeroMQ."""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import zmq

MAGIC = 0xABE85CEA
"""What a compressed message begins with; its length follows."""
PATIENCE_S = 30.0
"""How long something may take that must come at some time."""


class Refused(Exception):
    """The server answered with an error: its code and its message."""


class Door:
    """The socket, and the handle that requests carry; closed when the ``with`` block ends."""

    def __init__(self, port: int, host: str = "127.0.0.1", zipped: bool = False) -> None:
        self.zipped = zipped
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE_S * 1000))
        self._socket.connect(f"tcp://{host}:{port}")
        try:
            self.handle = self.call("api_sync_v2", name="EMU", major=1, minor=1)["api_h"]
        except BaseException:
            # What a traceback holds would keep the context from ending.
            self.close()
            raise

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._context.destroy(linger=0)

    def exchange(self, message: bytes) -> bytes:
        """Send bytes and give those of the reply."""
        self._socket.send(message)
        return self._socket.recv()

    def ask(self, value: Any) -> Any:
        """Send a JSON value, compressed if this door is, and give that of the reply."""
        text = json.dumps(value).encode()
        if self.zipped:
            text = struct.pack(">II", MAGIC, len(text)) + zlib.compress(text)
        reply = self.exchange(text)
        if self.zipped:
            magic, length = struct.unpack(">II", reply[:8])
            assert magic == MAGIC
            reply = zlib.decompress(reply[8:])
            assert len(reply) == length
        return json.loads(reply)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """A request as JSON has it."""
        handle = getattr(self, "handle", None)
        params = params if handle is None else {**params, "api_h": handle}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    def call(self, method: str, **params: Any) -> Any:
        """Do a request and give its result. Raises `Refused` for an error."""
        reply = self.ask(self.request(method, **params))
        if "error" in reply:
            raise Refused(reply["error"]["code"], reply["error"]["message"])
        return reply["result"]

    def add_namespace(self, port: int, tci: Sequence[int] = (), **plugins: Any) -> dict[str, Any]:
        """Add a namespace with plugins; give its tunnel."""
        tags = [*tci, 0, 0][:2]
        tunnel = {"vport": port, "tpid": [0x8100 if tag else 0 for tag in tags], "tci": tags}
        self.call("ctx_add", tunnels=[{**tunnel, "plugs": plugins}])
        return tunnel

    def add_clients(
        self, tunnel: dict[str, Any], numbers: Iterable[int], gateway: str = "", **plugins: Any
    ) -> None:
        """Add the clients of these numbers, which :func:`mac` and :func:`ipv4` name, with plugins."""
        more = {"ipv4_dg": ipv4_bytes(gateway)} if gateway else {}
        clients = [
            {"mac": mac(number), "ipv4": ipv4_bytes(ipv4(number)), "plugs": plugins, **more}
            for number in numbers
        ]
        self.call("ctx_client_add", tun=tunnel, clients=clients)

    def counters(self, method: str, **params: Any) -> dict[str, int]:
        """The counters of a plugin that are not zero."""
        found = self.call(method, **params)
        return {name: value for table in found.values() for name, value in table.items()}

    def await_counter(self, name: str, least: int, method: str, **params: Any) -> dict[str, int]:
        """Wait until a counter has grown to a value; give all of them."""
        return await_it(
            lambda: counters if (counters := self.counters(method, **params)).get(name, 0) >= least else None,
            f"{name} of {method} never was {least}",
        )


def await_it(look: Callable[[], Any], complaint: str) -> Any:
    """Look until there is something to see, and give it. Fails with the complaint when there never is."""
    until = time.monotonic() + PATIENCE_S
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < until, complaint
        time.sleep(0.01)


def mac(number: int) -> list[int]:
    """The MAC address of a client."""
    return [2, 0, 0, 1, number >> 8, number & 0xFF]


def ipv4(number: int) -> str:
    """The IPv4 address of a client."""
    return f"10.1.{number >> 8}.{number & 0xFF}"


def ipv4_bytes(address: str) -> list[int]:
    """An address as the requests have it."""
    return [int(part) for part in address.split(".")]
