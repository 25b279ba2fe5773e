"""Replies of the RPC: packet groups.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class PgidLists(TypedDict):
    """Numbers of packet groups."""

    flow_stats: list[int]
    """Those that are only counted."""
    latency: list[int]
    """Those whose latency is measured."""


class ActivePgids(TypedDict):
    """Reply of `get_active_pgids`."""

    ids: PgidLists
    """The groups by what is counted of them."""


class GroupStats(TypedDict):
    """The counters of one packet group, each by port."""

    rp: dict[str, int]
    """Packets received."""
    rb: dict[str, int]
    """Bytes received, with FCS."""
    tp: dict[str, int]
    """Packets sent."""
    tb: dict[str, int]
    """Bytes sent, with FCS."""
    missed: dict[str, int]
    """Packets that could not be sent in time."""
    rps: dict[str, float]
    """Packets received, a second."""
    rbs: dict[str, float]
    """Bits received, a second."""
    tps: dict[str, float]
    """Packets sent, a second."""
    tbs: dict[str, float]
    """Bits sent, a second."""


class StrayPackets(TypedDict):
    """Packets of no group."""

    bad_header: NotRequired[int]
    """With a header that cannot be."""
    old_flow: NotRequired[int]
    """Of a run that is over."""


class LatencyTimes(TypedDict):
    """Times from the sending of packets to their arrival, in microseconds."""

    packets: int
    """Packets that were measured."""
    sum_ns: int
    """The sum of their times in nanoseconds, for averages over parts of a run."""
    average: float
    """The mean, with decimals."""
    total_min: int
    """The least, whole."""
    total_max: int
    """The most, whole."""
    min: float
    """The least, with decimals."""
    max: float
    """The most, with decimals."""
    last_max: int
    """The most of the last second or less."""
    jit: int
    """The jitter, after RFC 3550."""
    histogram: dict[str, int]
    """Packets by the lower bound of their times."""
    hdrh: NotRequired[str]
    """An HdrHistogram of whole microseconds up to 10 s with three significant digits, in its
    compressed V2 encoding, base64."""
    p50: NotRequired[float]
    """So long or less did half of the packets take, right within 0.1 %."""
    p90: NotRequired[float]
    """The same of 90 %."""
    p99: NotRequired[float]
    """The same of 99 %."""
    p99_9: NotRequired[float]
    """The same of 99.9 %."""


class SequenceErrors(TypedDict):
    """Packets whose numbers or times are not as expected; what is 0 is absent."""

    drp: NotRequired[int]
    """Missing."""
    dup: NotRequired[int]
    """Duplicates."""
    imp: NotRequired[int]
    """Packets that arrived before they were sent, by the clocks, so that their times are in no
    other number."""
    ooo: NotRequired[int]
    """Out of order."""
    sth: NotRequired[int]
    """Numbers above what was expected."""
    stl: NotRequired[int]
    """Numbers below what was expected."""


class GroupLatency(TypedDict):
    """What was measured of one packet group."""

    lat: LatencyTimes
    """Times, in microseconds."""
    er: NotRequired[SequenceErrors]
    """Errors, if there are any."""


GroupLatencies = dict[str, Any]
"""What was measured of packet groups."""


class PgidStats(TypedDict):
    """Reply of `get_pgid_stats`."""

    flow_stats: dict[str, GroupStats] | None
    """The counters of each group, `null` in place of no groups."""
    latency: GroupLatencies
    """What was measured of each group that has received packets."""
    ver_id: dict[str, int] | None
    """Of each group a number that changes when the group is made anew, and its counters begin at
    zero; `null` in place of no groups."""


class TpgData(TypedDict):
    """What TRex's servers tell of tagged packet groups."""

    acquired_ports: list[int]
    """Empty."""
    rx_ports: list[int]
    """Empty."""
    username: str
    """`-`."""
    num_tpgids: int
    """0."""
    num_tags: int
    """0."""


class TpgState(TypedDict):
    """Reply of `get_tpg_status`."""

    enabled: bool
    """Whether they are on: never."""
    data: TpgData
    """Their empty form."""
