"""Frames taken apart as far as a program needs it: addresses, ports, TCP's numbers, payload."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_IPV4, _IPV6, _TAGS = 0x0800, 0x86DD, (0x8100, 0x88A8)
TCP, UDP = 6, 17
#: Extension headers of IPv6 that may stand before TCP and UDP: hop-by-hop, routing, destination.
_EXTENSIONS = (0, 43, 60)
_FRAGMENT_HEADER = 44

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
_OPTION_END, _OPTION_NOTHING = 0, 1
_OPTION_NAMES = {2: "MSS", 3: "WScale", 4: "SAckOK", 8: "Timestamp"}


class Malformed(Exception):
    """A frame is cut short or is a fragment; the text says which."""


@dataclass(frozen=True)
class Segment:
    """One TCP segment or UDP datagram; ``sequence``, ``flags``, ``window`` and ``options`` are TCP's."""

    protocol: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    payload: bytes
    sequence: int = 0
    flags: int = 0
    window: int = 0
    options: dict[str, int] = field(default_factory=dict)


def segment(frame: bytes) -> Segment | None:
    """The segment of an Ethernet frame; None when it is neither TCP nor UDP. Raises ``Malformed``."""
    at = 12
    kind = _u16(frame, at)
    while kind in _TAGS:
        at += 4
        kind = _u16(frame, at)
    if kind == _IPV4:
        return _ipv4(frame[at + 2 :])
    if kind == _IPV6:
        return _ipv6(frame[at + 2 :])
    return None


def _ipv4(packet: bytes) -> Segment | None:
    header_bytes = (_u8(packet, 0) & 0x0F) * 4
    if _u8(packet, 9) not in (TCP, UDP):
        return None
    if _u16(packet, 6) & 0x3FFF:
        raise Malformed("it is a fragment: fragments are not joined, capture whole packets")
    # A length of zero is what a card that cuts segments by itself leaves to the capture.
    total = _u16(packet, 2) or len(packet)
    return _transport(packet[9], packet[12:16], packet[16:20], packet[:total], header_bytes, total)


def _ipv6(packet: bytes) -> Segment | None:
    following, at = _u8(packet, 6), 40
    while following in _EXTENSIONS:
        following, at = _u8(packet, at), at + (_u8(packet, at + 1) + 1) * 8
    if following == _FRAGMENT_HEADER:
        raise Malformed("it is a fragment: fragments are not joined, capture whole packets")
    if following not in (TCP, UDP):
        return None
    total = 40 + _u16(packet, 4) if _u16(packet, 4) else len(packet)
    return _transport(following, packet[8:24], packet[24:40], packet[:total], at, total)


def _transport(protocol: int, source: bytes, target: bytes, packet: bytes, at: int, total: int) -> Segment:
    if len(packet) < total:
        raise Malformed(f"{total - len(packet)} of its bytes are missing: capture with a longer snap length")
    ends = (source, _u16(packet, at)), (target, _u16(packet, at + 2))
    if protocol == UDP:
        length = _u16(packet, at + 4)
        return Segment(UDP, *ends, packet[at + 8 : at + max(length, 8)])
    header_bytes = (_u8(packet, at + 12) >> 4) * 4
    return Segment(
        TCP,
        *ends,
        packet[at + header_bytes :],
        sequence=_u32(packet, at + 4),
        flags=_u8(packet, at + 13),
        window=_u16(packet, at + 14),
        options=_options(packet[at + 20 : at + header_bytes]),
    )


def _options(data: bytes) -> dict[str, int]:
    """The options of TCP that have a name, by their first number."""
    found: dict[str, int] = {}
    at = 0
    while at < len(data) and data[at] != _OPTION_END:
        if data[at] == _OPTION_NOTHING:
            at += 1
            continue
        length = data[at + 1] if at + 1 < len(data) else 0
        if length < 2 or at + length > len(data):
            break
        name = _OPTION_NAMES.get(data[at])
        if name is not None:
            found[name] = int.from_bytes(data[at + 2 : at + min(length, 6)], "big") if length > 2 else 1
        at += length
    return found


def _u8(data: bytes, at: int) -> int:
    return int(_field("!B", data, at))


def _u16(data: bytes, at: int) -> int:
    return int(_field("!H", data, at))


def _u32(data: bytes, at: int) -> int:
    return int(_field("!I", data, at))


def _field(shape: str, data: bytes, at: int) -> int:
    try:
        value: int = struct.unpack_from(shape, data, at)[0]
        return value
    except struct.error:
        raise Malformed("it is cut short: capture with a longer snap length") from None
