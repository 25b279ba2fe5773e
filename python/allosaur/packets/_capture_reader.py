"""Captures: the frames of a pcap, pcapng or ERF file, with their times."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .._errors import STLPacketError

_ETHERNET = 1
#: No capture program writes longer frames; a longer one means that the file is damaged.
_FRAME_BYTES_MAX = 1 << 18
_BLOCK_BYTES_MAX = 1 << 24

#: The first four bytes of a pcap file: the byte order, and nanoseconds in one unit of its times.
_PCAP_KINDS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_RESOLUTION_OPTION = 9
#: Type 2 of Endace's record format: the header, two bytes of padding, and a frame with its FCS.
_ERF_ETHERNET, _ERF_HEADER_BYTES, _FCS_BYTES = 2, 16, 4
_ERF_FRAME_AT = _ERF_HEADER_BYTES + 2
_NS = 1_000_000_000
#: Packets that several interfaces recorded are out of order by less.
_SET_BACK_NS = _NS


@dataclass(frozen=True)
class Frame:
    """One frame: its time in nanoseconds, its bytes as the file has them, and how many it had on the wire."""

    time_ns: int
    data: bytes
    wire_bytes: int = 0


def frames(path: Path) -> Iterator[Frame]:
    """The Ethernet frames of a capture in the order of the file, read as they are asked for.

    Frames that the capture cut short stay short; see :func:`check_whole`. Raises ``STLPacketError`` that
    says what is wrong: no such file, not a capture, another link type than Ethernet, cut off.
    """
    try:
        with path.open("rb") as file:
            yield from _Reader(path, file).frames()
    except OSError as error:
        raise STLPacketError(f"the capture {path} cannot be read: {error.strerror or error}") from error


def first_frame(path: Path) -> bytes:
    """The bytes of the first frame. Raises ``STLPacketError``, also when the capture cut it short."""
    for frame in frames(path):
        check_whole(path, [frame])
        return frame.data
    raise no_frames(path)


def check_whole(path: Path, found: Sequence[Frame]) -> None:
    """Raise ``STLPacketError`` when frames lack bytes: their headers would tell of more than is sent."""
    cut = [(number, one) for number, one in enumerate(found, 1) if len(one.data) < one.wire_bytes]
    if not cut:
        return
    number, worst = max(cut, key=lambda item: item[1].wire_bytes - len(item[1].data))
    raise STLPacketError(
        f"the capture {path} was cut while it was recorded: of {len(found)} packets {len(cut)} lack bytes, "
        f"packet {number} has {len(worst.data)} of {worst.wire_bytes}; capture whole packets (tcpdump -s 0), "
        f"or fill them up (tcprewrite --fixlen=pad)"
    )


def send_times(recorded: Iterable[int]) -> list[int]:
    """When packets leave that were recorded at these times, in nanoseconds: none before the one in front.

    Packets that were recorded out of order leave with the one in front, and the times behind them hold. Of a
    clock that was set back by more than `_SET_BACK_NS` only the gaps hold from then on.
    """
    found: list[int] = []
    latest = shift = 0
    for time_ns in recorded:
        if found and time_ns + shift < latest - _SET_BACK_NS:
            shift = latest - time_ns
        latest = max(latest, time_ns + shift) if found else time_ns
        found.append(latest)
    return found


def early_packets(recorded: Iterable[int]) -> int:
    """How many packets were recorded before one in front of them."""
    found, latest = 0, 0
    for time_ns in recorded:
        found += time_ns < latest
        latest = max(latest, time_ns)
    return found


def told_early(path: str | Path, packets: int) -> str:
    """What to say of a capture with such packets."""
    return (
        f"the capture {path} has times that go back, as of a clock that was set, or of several interfaces: "
        f"{packets} packet{'s were' if packets != 1 else ' was'} recorded before one in front; all leave in "
        f"the order of the file, none before the one in front (reordercap sorts them)"
    )


def no_frames(path: Path) -> STLPacketError:
    """What to say of a capture without frames."""
    return STLPacketError(f"the capture {path} has no packet: give one with at least one")


@dataclass(frozen=True)
class _Interface:
    """What a pcapng file says of one interface: the time of a frame is in units of 1/``units_per_s``."""

    link_type: int
    units_per_s: int


@dataclass
class _Section:
    """A part of a pcapng file in one byte order, with interfaces of its own."""

    order: str = "<"
    interfaces: list[_Interface] = field(default_factory=list)
    last_time_ns: int = 0


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._count = 0

    def frames(self) -> Iterator[Frame]:
        magic = self._file.read(4)
        if magic in _PCAP_KINDS:
            yield from self._pcap(*_PCAP_KINDS[magic])
        elif magic == _SECTION.to_bytes(4, "big"):
            self._file.seek(0)
            yield from self._pcapng()
        elif not magic:
            raise STLPacketError(f"the capture {self._path} is empty: give a pcap, pcapng or ERF file")
        elif _is_erf(head := magic + self._file.read(_ERF_HEADER_BYTES - len(magic))):
            yield from self._erf(head)
        else:
            raise STLPacketError(
                f"{self._path} is not a pcap, pcapng or ERF file: it begins with {magic.hex()}"
            )

    def _pcap(self, order: str, unit_ns: int) -> Iterator[Frame]:
        (link_type,) = struct.unpack(f"{order}16xI", self._exactly(20))
        # The upper bits say how long a frame check sequence is; the type itself has sixteen.
        self._check_link(link_type & 0xFFFF)
        while head := self._file.read(16):
            seconds, units, captured, wire = struct.unpack(f"{order}4I", self._whole(head, 16))
            yield self._frame(seconds * _NS + units * unit_ns, self._exactly(self._length(captured)), wire)

    def _erf(self, head: bytes) -> Iterator[Frame]:
        while head:
            if not _is_erf(self._whole(head, _ERF_HEADER_BYTES)):
                raise self._damaged(f"packet {self._count + 1} is no Ethernet record (type 2)")
            units, record_bytes, wire_bytes = (
                struct.unpack("<Q", head[:8])[0],
                *struct.unpack(">2xH2xH", head[8:]),
            )
            body = self._exactly(record_bytes - _ERF_HEADER_BYTES)[_ERF_FRAME_AT - _ERF_HEADER_BYTES :]
            wire_bytes -= _FCS_BYTES
            yield self._frame(units * _NS >> 32, body[:wire_bytes], wire_bytes)
            head = self._file.read(_ERF_HEADER_BYTES)

    def _pcapng(self) -> Iterator[Frame]:
        section = _Section()
        readers: dict[int, Callable[[_Section, bytes], Frame]] = {
            _PACKET: self._packet_block,
            _OLD_PACKET: self._old_packet_block,
            _SIMPLE_PACKET: self._simple_packet_block,
        }
        while head := self._file.read(8):
            kind, body = self._block(section, self._whole(head, 8))
            if kind == _INTERFACE:
                section.interfaces.append(self._interface(section.order, body))
            elif kind in readers:
                yield readers[kind](section, body)

    def _block(self, section: _Section, head: bytes) -> tuple[int, bytes]:
        """The kind and the body of the block that begins with ``head``; a section block begins anew."""
        read = 0
        if head[:4] == _SECTION.to_bytes(4, "big"):
            order_mark = self._exactly(4)
            section.order = "<" if order_mark == b"\x4d\x3c\x2b\x1a" else ">"
            section.interfaces = []
            read = 4
        kind, length = struct.unpack(f"{section.order}2I", head)
        if length < 12 + read or length % 4 or length > _BLOCK_BYTES_MAX:
            raise self._damaged(f"it has a block of {length} bytes")
        body = self._exactly(length - 8 - read)
        return kind, body[:-4]

    def _interface(self, order: str, body: bytes) -> _Interface:
        (link_type,) = struct.unpack_from(f"{order}H", self._whole(body, 8))
        units_per_s = 1_000_000
        at = 8
        while at + 4 <= len(body):
            code, length = struct.unpack_from(f"{order}2H", body, at)
            if code == _RESOLUTION_OPTION and length == 1 and at + 4 < len(body):
                # The highest bit says whether the rest is a power of two or of ten.
                power = body[at + 4]
                units_per_s = 2 ** (power & 0x7F) if power & 0x80 else 10**power
            at += 4 + length + -length % 4
        return _Interface(link_type, units_per_s)

    def _packet_block(self, section: _Section, body: bytes) -> Frame:
        number, high, low, captured = struct.unpack_from(f"{section.order}4I", self._whole(body, 20))
        return self._timed(section, number, high << 32 | low, body, captured)

    def _old_packet_block(self, section: _Section, body: bytes) -> Frame:
        number, _, high, low, captured = struct.unpack_from(f"{section.order}2H3I", self._whole(body, 20))
        return self._timed(section, number, high << 32 | low, body, captured)

    def _simple_packet_block(self, section: _Section, body: bytes) -> Frame:
        """A frame without a time: it gets that of the one before."""
        (sent,) = struct.unpack_from(f"{section.order}I", self._whole(body, 4))
        self._interface_of(section, 0)
        return self._frame(section.last_time_ns, body[4 : 4 + sent], sent)

    def _timed(self, section: _Section, number: int, units: int, body: bytes, captured: int) -> Frame:
        interface = self._interface_of(section, number)
        section.last_time_ns = units * _NS // interface.units_per_s
        (wire,) = struct.unpack(f"{section.order}I", body[16:20])
        data = self._whole(body[20:], self._length(captured))[:captured]
        return self._frame(section.last_time_ns, data, wire)

    def _interface_of(self, section: _Section, number: int) -> _Interface:
        if number >= len(section.interfaces):
            raise self._damaged(f"a packet is of interface {number}, which it does not describe")
        self._check_link(section.interfaces[number].link_type)
        return section.interfaces[number]

    def _check_link(self, link_type: int) -> None:
        if link_type != _ETHERNET:
            raise STLPacketError(
                f"the capture {self._path} has link type {link_type}: give one of an Ethernet interface (1)"
            )

    def _frame(self, time_ns: int, data: bytes, wire_bytes: int) -> Frame:
        self._count += 1
        return Frame(time_ns, data, wire_bytes)

    def _length(self, captured: int) -> int:
        if captured > _FRAME_BYTES_MAX:
            raise self._damaged(f"packet {self._count + 1} has {captured} bytes")
        return captured

    def _exactly(self, size: int) -> bytes:
        return self._whole(self._file.read(size), size)

    def _whole(self, data: bytes, size: int) -> bytes:
        if len(data) < size:
            raise STLPacketError(
                f"the capture {self._path} is truncated: it ends within packet {self._count + 1}, "
                f"capture it again or copy it whole"
            )
        return data

    def _damaged(self, what: str) -> STLPacketError:
        return STLPacketError(f"the capture {self._path} is damaged: {what}, capture it again")


def _is_erf(head: bytes) -> bool:
    """Whether these bytes are the header of an Ethernet record of ERF, which has no magic number."""
    if len(head) < _ERF_HEADER_BYTES:
        return False
    kind, flags, record_bytes, wire_bytes = struct.unpack(">8xBBH2xH", head)
    is_ethernet = kind == _ERF_ETHERNET and flags & 0xC0 == 0
    return bool(is_ethernet and record_bytes >= _ERF_FRAME_AT and wire_bytes >= _FCS_BYTES)
