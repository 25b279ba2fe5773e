"""A capture file's totals, read in one pass: packets, bytes, sizes, first and last time.

Only for files that the simulator wrote: pcap, micro- or nanoseconds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from allosaur.cli._errors import CommandError

_FCS_BYTES = 4
_HEADER_BYTES = 24
_RECORD_BYTES = 16
_TICKS_PER_S = {0xA1B2C3D4: 1_000_000, 0xA1B23C4D: 1_000_000_000}


@dataclass
class CaptureSummary:
    """What is in a capture. Sizes and bytes count each frame with its FCS, which the file leaves out."""

    packets: int = 0
    bytes: int = 0
    smallest: int = 0
    largest: int = 0
    first_s: float = 0.0
    last_s: float = 0.0


def summarize(path: Path) -> CaptureSummary:
    """Read a pcap file. Raises :class:`CommandError` when it is not one, or is cut off."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    ticks_per_s = (
        _TICKS_PER_S.get(struct.unpack(f"{order}I", data[:4])[0]) if len(data) >= _HEADER_BYTES else None
    )
    if ticks_per_s is None:
        raise CommandError(f"{path} is not a pcap file")
    record = struct.Struct(f"{order}IIII")
    summary = CaptureSummary()
    offset = _HEADER_BYTES
    while offset < len(data):
        header = data[offset : offset + _RECORD_BYTES].ljust(_RECORD_BYTES, b"\xff")
        seconds, ticks, kept, length = record.unpack(header)
        offset += _RECORD_BYTES + kept
        if offset > len(data):
            raise CommandError(f"{path} is cut off in packet {summary.packets + 1}")
        _add(summary, seconds + ticks / ticks_per_s, length + _FCS_BYTES)
    return summary


def _add(summary: CaptureSummary, time_s: float, length: int) -> None:
    if summary.packets == 0:
        summary.first_s = time_s
        summary.smallest = length
    summary.packets += 1
    summary.bytes += length
    summary.smallest = min(summary.smallest, length)
    summary.largest = max(summary.largest, length)
    summary.last_s = time_s
