"""Replies of the RPC: service mode.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class FetchedPacket(TypedDict):
    """One packet of a capture or a receive queue."""

    ts: float
    """When it was sent or received, in seconds of the server's clock."""
    binary: str
    """Its bytes without FCS, as base64."""
    port: int
    """The port."""
    index: int
    """Its number in the capture, from 1."""
    wirelen: int
    """Bytes without FCS that it had before it was cut."""
    origin: str
    """`TX` or `RX`."""


class RxQueuePackets(TypedDict):
    """Reply of `get_rx_queue_pkts`."""

    pkts: list[FetchedPacket]
    """The packets, the oldest first."""
