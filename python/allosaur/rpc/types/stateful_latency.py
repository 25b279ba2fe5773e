"""Replies of the RPC: stateful mode: latency.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import Any, TypedDict


class LatencyStopped(TypedDict):
    """Reply of `stop_latency`."""

    stopped: bool
    """Always true."""


class HistogramBucket(TypedDict):
    """Part of a histogram."""

    key: int
    """The lower bound."""
    val: int
    """How many."""


class EchoTimes(TypedDict):
    """Times of echo messages, in microseconds."""

    min_usec: int
    """The least."""
    max_usec: int
    """The most."""
    cnt: int
    """Messages that were measured."""
    high_cnt: int
    """Those that took 10 and more."""
    s_avg: float
    """The mean, with decimals."""
    s_max: float
    """The most of the last half to whole second, with decimals."""
    histogram: list[HistogramBucket]
    """Messages by the lower bound of their times."""
    p50: float
    """So long or less did half of the messages take. A server of TRex does not send it."""
    p90: float
    """The same of 90 %."""
    p99: float
    """The same of 99 %."""
    p99_9: float
    """The same of 99.9 %."""


class EchoCounts(TypedDict):
    """Echo messages of a port."""

    m_tx_pkt_ok: int
    """Requests sent."""
    m_tx_pkt_err: int
    """Requests not sent in time."""
    m_pkt_ok: int
    """Messages received."""
    m_jitter: int
    """Jitter in microseconds, after RFC 3550."""
    m_seq_error: int
    """Numbers above and below what was expected."""
    m_no_magic: int
    """Messages that are none of ours."""
    m_no_id: int
    """Messages of another run."""
    m_length_error: int
    """Messages of a wrong length."""
    m_l3_cs_err: int
    """Wrong checksums of layer 3."""
    m_l4_cs_err: int
    """Wrong checksums of layer 4."""
    dropped: int
    """Messages missing."""
    out_of_order: int
    """Messages out of order."""
    duplicates: int
    """Messages seen twice."""
    impossible_times: int
    """Messages that arrived before they were sent, by the clocks: their times are in no other
    number."""
    tx_arp: int
    """0."""
    ipv6_n_solic: int
    """0."""
    ignore_bytes: int
    """0."""
    m_unsup_prot: int
    """0."""
    m_no_ipv4_option: int
    """0."""
    m_rx_check: int
    """0."""


class EchoLatency(TypedDict):
    """What a port measured."""

    hist: EchoTimes
    """Times, in microseconds."""
    stats: EchoCounts
    """Messages."""


EchoLatencyData = dict[str, Any]
"""What echo streams measured."""


class EchoLatencies(TypedDict):
    """Reply of `get_latency_stats`."""

    name: str
    """`trex-latecny-v2`, as TRex's servers write it."""
    type: int
    """0."""
    data: EchoLatencyData
    """What was measured."""
