"""Types of statistics, for annotations: what ``get_stats`` and its like return.

    from allosaur.stats import PortStats

    def sent(port: PortStats) -> int:
        return port["opackets"]

While a script runs they are plain dictionaries. One of ports has numbers and words for keys, and other values
for each: a ``TypedDict`` cannot say that, overloads of ``[]`` can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing import overload

ByPort = dict[Any, int]
"""A counter of a packet group by port number, and its ``"total"``."""
RateByPort = dict[Any, float]
"""A rate of a packet group by port number, and its ``"total"``."""


class _PortStats(TypedDict):
    opackets: int
    ipackets: int
    obytes: int
    ibytes: int
    oerrors: int
    ierrors: int
    tx_bps: float
    tx_pps: float
    tx_bps_L1: float
    tx_util: float
    rx_bps: float
    rx_pps: float
    rx_bps_L1: float
    rx_util: float


class PortStats(_PortStats, total=False):
    """Counters and rates of a port, or of all: bytes with FCS, rates in bits or packets a second.

    Utilization is in percent. The last ones are there when the server counts them, as Allosaur's does.
    """

    missed_packets: int
    queue_full: int
    rx_lost_packets: int
    tx_by_size: dict[str, int]
    rx_by_size: dict[str, int]


class GlobalStats(TypedDict, total=False):
    """Counters and rates of the whole server."""

    active_flows: float
    active_sockets: int
    bw_per_core: float
    cpu_util: float
    cpu_util_raw: float
    open_flows: float
    platform_factor: float
    rx_bps: float
    rx_core_pps: float
    rx_cpu_util: float
    rx_drop_bps: float
    rx_pps: float
    socket_util: float
    tx_expected_bps: float
    tx_expected_cps: float
    tx_expected_pps: float
    tx_pps: float
    tx_bps: float
    tx_cps: float
    total_servers: int
    total_clients: int
    total_alloc_error: int
    queue_full: int
    missed_packets: int


class _GroupStats(TypedDict):
    rx_pkts: ByPort
    rx_bytes: ByPort
    tx_pkts: ByPort
    tx_bytes: ByPort
    rx_bps: RateByPort
    rx_pps: RateByPort
    tx_bps: RateByPort
    tx_pps: RateByPort
    rx_bps_l1: RateByPort
    tx_bps_l1: RateByPort


class GroupStats(_GroupStats, total=False):
    """Packets, bytes and rates of a packet group, each by port. The last one is Allosaur's."""

    missed_pkts: ByPort


class GroupErrors(TypedDict):
    """Errors of all packet groups, by port."""

    rx_err: dict[int, int]
    tx_err: dict[int, int]


class _LatencyTimes(TypedDict):
    average: float
    jitter: float
    total_min: float
    total_max: float
    last_max: float
    histogram: dict[int, int]


class LatencyTimes(_LatencyTimes, total=False):
    """Latency of a packet group in microseconds; ``histogram`` is how many packets took so many or more.

    The last ones are Allosaur's.
    """

    min: float
    max: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    hdrh: str


class _LatencyErrors(TypedDict):
    dropped: int
    out_of_order: int
    dup: int
    seq_too_high: int
    seq_too_low: int


class LatencyErrors(_LatencyErrors, total=False):
    """What went wrong with the packets of a group whose latency is measured. The last one is Allosaur's."""

    impossible_times: int


class GroupLatency(TypedDict):
    """What was measured of a packet group."""

    err_cntrs: LatencyErrors
    latency: LatencyTimes


class LatencyHeaders(TypedDict):
    """Packets that look like those of latency and are of no group."""

    old_flow: int
    bad_hdr: int


class FlowRates(TypedDict):
    """What a profile of flows was asked for against what it does: flows a second, flows, seconds."""

    offered_cps: float
    begun_cps: float
    achieved_cps: float
    begun: int
    established: int
    missed: int
    duration_s: float
    ended_by: str | None
    hosts: int


class SideOutcomes(TypedDict):
    """How many flows of one side ended how, and what came of them."""

    completed: int
    reset: int
    closed_early: int
    timed_out: int
    refused: int
    cut_off: int
    aborted: int
    unanswered: int
    http_1xx: int
    http_2xx: int
    http_3xx: int
    http_4xx: int
    http_5xx: int
    http_other: int


class BothOutcomes(TypedDict):
    """The same of both sides."""

    client: SideOutcomes
    server: SideOutcomes


class FlowTimes(TypedDict, total=False):
    """How long something took, in microseconds; only ``count`` where it never happened."""

    count: int
    min_us: float
    average_us: float
    max_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    p99_9_us: float


class TimesOfFlows(TypedDict):
    """Times of clients' flows."""

    connect: FlowTimes
    first_byte: FlowTimes
    program: FlowTimes


class FlowOutcomes(BothOutcomes):
    """How the flows of a profile ended."""

    groups: dict[str, BothOutcomes]
    times: TimesOfFlows


TrafficStats = dict[str, dict[str, float]]
"""Counters of flows by their names: of the ``"client"`` side, and of the ``"server"`` side."""


if TYPE_CHECKING:

    class FlowStats(dict[Any, Any]):
        """Packet groups by number, and what went wrong with all."""

        @overload
        def __getitem__(self, key: int) -> GroupStats: ...
        @overload
        def __getitem__(self, key: Literal["global"]) -> GroupErrors: ...
        def __getitem__(self, key: int | str) -> object: ...

    class LatencyStats(dict[Any, Any]):
        """The same of latency."""

        @overload
        def __getitem__(self, key: int) -> GroupLatency: ...
        @overload
        def __getitem__(self, key: Literal["global"]) -> LatencyHeaders: ...
        def __getitem__(self, key: int | str) -> object: ...

    class Stats(dict[Any, Any]):
        """Ports by number, and the rest by name."""

        @overload
        def __getitem__(self, key: int | Literal["total"]) -> PortStats: ...
        @overload
        def __getitem__(self, key: Literal["global"]) -> GlobalStats: ...
        @overload
        def __getitem__(self, key: Literal["flow_stats"]) -> FlowStats: ...
        @overload
        def __getitem__(self, key: Literal["latency"]) -> LatencyStats: ...
        def __getitem__(self, key: int | str) -> object: ...

    class StatefulStats(dict[Any, Any]):
        """The same for flows; latency is that of echo requests, by port."""

        @overload
        def __getitem__(self, key: int | Literal["total"]) -> PortStats: ...
        @overload
        def __getitem__(self, key: Literal["global"]) -> GlobalStats: ...
        @overload
        def __getitem__(self, key: Literal["traffic"]) -> TrafficStats: ...
        @overload
        def __getitem__(self, key: Literal["latency"]) -> dict[int, dict[str, Any]]: ...
        def __getitem__(self, key: int | str) -> object: ...

else:
    # Plain: scripts write them as YAML, whose safe dump takes no class derived from `dict`.
    FlowStats = LatencyStats = Stats = StatefulStats = dict
