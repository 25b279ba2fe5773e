"""Packets one by one: those to push, and those that the server saw."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, TypedDict, cast

from .._errors import STLTypeError

if TYPE_CHECKING:
    from scapy.packet import Packet


class CapturedPacket(TypedDict):
    """A packet that a port sent or received. A plain dictionary with these keys.

    ``binary`` is the frame without FCS, as much of it as was captured; ``wirelen`` how many bytes it
    had; ``ts`` when, in seconds of the server's clock; ``origin`` "TX" or "RX"; ``port`` where;
    ``index`` its number in the capture, from 1.
    """

    binary: bytes
    ts: float
    port: int
    index: int
    wirelen: int
    origin: str


class PacketBuffer:
    """A packet for ``push_packets`` whose MAC addresses are its own, unless it says otherwise.

    ``buffer`` is bytes without FCS, or a Scapy packet. With ``port_src`` it gets the source MAC of the
    port, with ``port_dst`` the port's destination.
    """

    def __init__(self, buffer: bytes | Packet, port_src: bool = False, port_dst: bool = False) -> None:
        self.buffer = _frame_bytes(buffer)
        self.port_src = port_src
        self.port_dst = port_dst


def decoded(packet: dict[str, Any]) -> CapturedPacket:
    """A packet of an answer, its bytes decoded; fields that a server leaves out get a plain value."""
    binary = base64.b64decode(packet["binary"])
    usual = {"port": -1, "index": 0, "wirelen": len(binary), "origin": "NONE", "ts": 0.0}
    return cast(CapturedPacket, {**usual, **packet, "binary": binary})


def _frame_bytes(buffer: Any) -> bytes:
    if isinstance(buffer, (bytes, bytearray)):
        return bytes(buffer)
    from ._offline import offline
    from ._scapy import Packet

    if not isinstance(buffer, Packet):
        raise STLTypeError("buffer", type(buffer), ("bytes", "Packet"))
    with offline():
        return bytes(buffer)
