"""What a run says of packets whose latency nobody knows: by the clocks they arrived before they were sent."""

from __future__ import annotations

from collections.abc import Iterable


def told(counted: Iterable[tuple[str, int]]) -> list[str]:
    """Return the warnings, for what was measured and how many of its packets have no time."""
    return [
        f"{name}: {packets:,} packets arrived, by the clocks, before they were sent: their times are in no "
        "number of latency; see that nothing sets the system's clock while you measure"
        for name, packets in counted
        if packets
    ]
