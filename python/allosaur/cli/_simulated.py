"""Capture files that the simulator wrote: their totals, and packets as lines for people."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allosaur.cli import _format
from allosaur.cli._errors import explained

_FCS_BYTES = 4
LIMIT_PACKETS = 100
"""So many packets are listed, unless `--limit` says otherwise."""


def summary(data: bytes) -> str:
    """Return the headers of a frame in a line."""
    from allosaur.packets._offline import offline
    from allosaur.packets._scapy import Ether
    from allosaur.packets._scapy_star import scapy_star

    # What Scapy recognises is what it has loaded: the same in every process.
    scapy_star()
    with offline():
        return str(Ether(data).summary())


def listed(capture: Path, limit: int) -> list[dict[str, Any]]:
    """Return the first packets of a capture file; lengths are with FCS, which the file leaves out."""
    from allosaur.packets._capture_reader import frames

    return [
        {
            "time_s": frame.time_ns / 1e9,
            "length": len(frame.data) + _FCS_BYTES,
            "summary": summary(frame.data),
        }
        for frame in itertools.islice(frames(capture), limit)
    ]


def text(packets: Sequence[Mapping[str, Any]], total: int) -> str:
    """Return a line for each packet, and how many more there are."""
    lines = [f"{one['time_s']:.6f} {one['length']} bytes: {one['summary']}" for one in packets]
    if total > len(packets):
        lines.append(f"{_format.count(total - len(packets))} more; --limit lists as many as it says.")
    return "\n".join(lines)


@dataclass
class CaptureSummary:
    """What is in a capture. Sizes and bytes count each frame with its FCS, which the file leaves out."""

    packets: int = 0
    bytes: int = 0
    smallest: int = 0
    largest: int = 0
    first_s: float = 0.0
    last_s: float = 0.0


def summarize(capture: Path) -> CaptureSummary:
    """Return the totals of a file. Raises :class:`CommandError` when it is no capture, or is cut off."""
    from allosaur.packets._capture_reader import frames

    found = CaptureSummary()
    with explained("what was simulated"):
        for frame in frames(capture):
            found.last_s, size = frame.time_ns / 1e9, frame.wire_bytes + _FCS_BYTES
            if not found.packets:
                found.first_s, found.smallest = found.last_s, size
            found.packets += 1
            found.bytes += size
            found.smallest, found.largest = min(found.smallest, size), max(found.largest, size)
    return found
