"""Writing captures: frames into a pcap or pcapng file, as they come."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from .._errors import STLError
from ._buffer import CapturedPacket

_ETHERNET = 1
_NS = 1_000_000_000
_FRAME_BYTES_MAX = 1 << 16

_PCAP_NANOSECONDS = 0xA1B23C4D
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_OPTION_NAME, _OPTION_RESOLUTION, _OPTION_FLAGS = 2, 9, 2
#: Which way a frame went, as pcapng says it.
_DIRECTIONS = {"RX": 1, "TX": 2}


class _Format(Protocol):
    def header(self) -> bytes:
        """How the file begins."""

    def frame(self, packet: CapturedPacket, time_ns: int) -> bytes:
        """One frame."""


class CaptureFile:
    """A capture file that grows: a context manager with ``write``.

    A name that ends in ".pcapng" makes a pcapng file, which also says of each frame on which port it
    was seen and which way it went; any other name a pcap file. Times are in nanoseconds. With ``file``
    the capture goes into that, which is open already and stays so. Raises ``STLError`` when it cannot be
    written.
    """

    def __init__(self, path: Path | str, file: BinaryIO | None = None) -> None:
        self.path = Path(path)
        self._is_ours = file is None
        self._format: _Format = _Pcapng() if self.path.suffix == ".pcapng" else _Pcap()
        try:
            self._file: BinaryIO = self.path.open("wb") if file is None else file
            self._file.write(self._format.header())
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, packet: CapturedPacket, time_s: float) -> None:
        """Add a frame that was seen at ``time_s`` seconds."""
        try:
            self._file.write(self._format.frame(packet, max(0, round(time_s * _NS))))
        except BrokenPipeError:
            # Whoever reads along has gone, which is no fault of the file.
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    def flush(self) -> None:
        """Give what was written to the system, for whoever reads along."""
        try:
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """End the file."""
        try:
            if self._is_ours:
                self._file.close()
            else:
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> STLError:
        return STLError(f"the capture {self.path} cannot be written: {error.strerror or error}")


class _Pcap:
    def header(self) -> bytes:
        return struct.pack("<IHHiIII", _PCAP_NANOSECONDS, 2, 4, 0, 0, _FRAME_BYTES_MAX, _ETHERNET)

    def frame(self, packet: CapturedPacket, time_ns: int) -> bytes:
        data = packet["binary"]
        lengths = len(data), max(packet["wirelen"], len(data))
        return struct.pack("<4I", *divmod(time_ns, _NS), *lengths) + data


class _Pcapng:
    """One interface for each port, described before its first frame."""

    def __init__(self) -> None:
        self._interfaces: dict[int, int] = {}

    def header(self) -> bytes:
        return _block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))

    def frame(self, packet: CapturedPacket, time_ns: int) -> bytes:
        described = b""
        port, data = packet["port"], packet["binary"]
        if port not in self._interfaces:
            self._interfaces[port] = len(self._interfaces)
            described = _interface(f"port {port}")
        head = struct.pack(
            "<5I",
            self._interfaces[port],
            time_ns >> 32,
            time_ns & 0xFFFFFFFF,
            len(data),
            max(packet["wirelen"], len(data)),
        )
        direction = struct.pack("<I", _DIRECTIONS.get(packet["origin"], 0))
        options = _option(_OPTION_FLAGS, direction) + _option(0, b"")
        return described + _block(_PACKET, head + _padded(data) + options)


def _interface(name: str) -> bytes:
    nanoseconds = bytes([9])
    options = _option(_OPTION_NAME, name.encode()) + _option(_OPTION_RESOLUTION, nanoseconds)
    return _block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + options + _option(0, b""))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
