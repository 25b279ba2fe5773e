"""Replies of the RPC: captures.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from .server import Empty
from .service import FetchedPacket

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class CaptureStarted(TypedDict):
    """Reply of `capture` to `start`."""

    capture_id: int
    """`start`: the number of the new capture."""
    start_ts: float
    """`start` and `fetch`: when it started, in seconds of the server's clock."""


class CaptureStopped(TypedDict):
    """Reply of `capture` to `stop`."""

    pkt_count: int
    """`stop`: packets to be fetched, or on the way to the endpoint."""
    endpoint: str
    """`stop`: where its packets went; empty when it has no endpoint."""


class FetchedPackets(TypedDict):
    """Reply of `capture` to `fetch`."""

    pending: int
    """`fetch`: packets that are left."""
    start_ts: float
    """`fetch`: when the capture started, in seconds of the server's clock."""
    pkts: list[FetchedPacket]
    """`fetch`: the packets, the oldest first."""


class CaptureFilter(TypedDict):
    """What a capture takes."""

    tx: int
    """Ports whose sent packets it takes, as bits."""
    rx: int
    """Ports whose received packets it takes, as bits."""
    bpf: str
    """Which packets, in the language of tcpdump."""


class CaptureStatus(TypedDict):
    """A capture in the reply of `capture` to `status`."""

    id: int
    """`status`: its number."""
    state: str
    """`ACTIVE` or `STOPPED`."""
    matched: int
    """Packets that its filter let in."""
    fetched: int
    """Packets that were fetched."""
    filter: CaptureFilter
    """What it takes."""
    count: int
    """Packets that it has."""
    bytes: int
    """Bytes that it has."""
    lost: int
    """What found no room on the way to it or to its endpoint."""
    limit: int
    """Packets that it keeps at most."""
    snaplen: int
    """Bytes that it keeps of each; 0 is all."""
    mode: Literal["fixed", "cyclic"]
    """What it keeps when it is full."""
    endpoint: NotRequired[str]
    """Where its packets go, if it keeps none."""
    format: NotRequired[str]
    """`pcap` or `pcapng`: what it writes there."""


CaptureReply = CaptureStarted | CaptureStopped | FetchedPackets | list[CaptureStatus] | Empty
"""Reply of `capture`."""
