"""Replies of the RPC: addresses and pushed packets.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class PacketsPushed(TypedDict):
    """Reply of `push_pkts`."""

    sent: int
    """How many packets."""
    ts: float
    """When the first leaves, in seconds of the server's clock."""
