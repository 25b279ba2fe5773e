"""The bytes of one message: JSON text, plain or in the zipped envelope.

The envelope is a magic number and the length of the text (4 bytes each, big endian), then a zlib stream.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

_MAGIC = 0xABE85CEA
_HEADER = struct.Struct(">II")

#: The most bytes of text that one message may unpack to: a guard, not a limit of the protocol.
MESSAGE_BYTES_MAX = 256 * 1024 * 1024


def pack(text: bytes) -> bytes:
    """Put a text into the zipped envelope."""
    return _HEADER.pack(_MAGIC, len(text)) + zlib.compress(text, 1)


def unpack(frame: bytes) -> bytes:
    """Take the text out of a frame, zipped or plain.

    Raises ``ValueError`` when the envelope is damaged.
    """
    if len(frame) < _HEADER.size:
        return frame
    magic, text_bytes = _HEADER.unpack_from(frame)
    if magic != _MAGIC:
        return frame
    if text_bytes > MESSAGE_BYTES_MAX:
        raise ValueError(f"the message says that it unpacks to {text_bytes} bytes")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(frame[_HEADER.size :], text_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"the zipped message is damaged: {error}") from error
    if len(text) != text_bytes or not inflater.eof:
        raise ValueError(f"the zipped message is cut off, or is not of {text_bytes} bytes as its header says")
    return text


def encode(value: Any) -> bytes:
    """JSON text of a value, without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def decode(frame: bytes) -> Any:
    """The JSON value of a frame. Raises ``ValueError`` when it is damaged or not JSON."""
    return json.loads(unpack(frame))
