"""HdrHistograms as servers send them: base64 of the compressed V2 encoding.

Times are whole microseconds, as in the histogram.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator

from .._errors import STLError

_COMPRESSED_COOKIE = 0x1C849304
_COOKIE = 0x1C849303
#: The bits of a cookie that say how wide its numbers are, which does not matter in this version.
_WIDTH_BITS = 0xF0
_HEADER = struct.Struct(">iiiiqqd")
#: TRex's histogram of 1 µs to 10 s has 16,384 places; nobody needs more than this.
_BYTES_MAX = 1 << 20


def decode(text: str) -> dict[int, int]:
    """Give the packets by time, in microseconds. Raises ``STLError`` when it is no such text."""
    try:
        compressed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", compressed)
        if cookie & ~_WIDTH_BITS != _COMPRESSED_COOKIE:
            raise ValueError("it does not begin like one")
        histogram = zlib.decompressobj().decompress(compressed[8 : 8 + length], _BYTES_MAX)
        cookie, length, _, digits, lowest, _, _ = _HEADER.unpack_from(histogram)
        if cookie & ~_WIDTH_BITS != _COOKIE or not (1 <= digits <= 5 and lowest >= 1):
            raise ValueError("its header is wrong")
        payload = histogram[_HEADER.size : _HEADER.size + length]
        return dict(_counts(payload, _Scale(digits, lowest)))
    except (ValueError, IndexError, struct.error, zlib.error, binascii.Error) as error:
        raise STLError(f"field 'hdrh' is no HdrHistogram in its compressed V2 encoding: {error}") from None


def since(now: dict[int, int], before: dict[int, int]) -> dict[int, int]:
    """Give what was counted between two histograms of the same group."""
    counts = ((time, count - before.get(time, 0)) for time, count in now.items())
    return {time: count for time, count in counts if count > 0}


def percentile(counts: dict[int, int], percent: float) -> int:
    """Give the shortest time that this many percent of all did not exceed; 0 of none."""
    wanted = sum(counts.values()) * percent / 100
    below = 0
    for time in sorted(counts):
        below += counts[time]
        if below >= wanted:
            return time
    return 0


class _Scale:
    """Which time a place of the histogram stands for."""

    def __init__(self, digits: int, lowest: int) -> None:
        steps: int = 2 * 10**digits
        self._half_bits = (steps - 1).bit_length() - 1
        self._unit_bits = lowest.bit_length() - 1

    def time(self, place: int) -> int:
        half = 1 << self._half_bits
        power = max((place >> self._half_bits) - 1, 0)
        step = place - power * half
        width = 1 << (power + self._unit_bits)
        return step * width + width // 2


def _counts(payload: bytes, scale: _Scale) -> Iterator[tuple[int, int]]:
    place = at = 0
    while at < len(payload):
        number, at = _varint(payload, at)
        number = number >> 1 ^ -(number & 1)
        if number < 0:
            # So many empty places.
            place -= number
            continue
        if number:
            yield scale.time(place), number
        place += 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; a ninth byte has eight."""
    value = 0
    for n in range(8):
        byte = data[at + n]
        value |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return value, at + n + 1
    return value | data[at + 8] << 56, at + 9
