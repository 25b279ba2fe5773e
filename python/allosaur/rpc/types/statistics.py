"""Replies of the RPC: statistics.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class GlobalStats(TypedDict):
    """Reply of `get_global_stats`: sums over ports and threads."""

    m_cpu_util: float
    """How busy the data threads are, in percent, on average."""
    m_cpu_util_raw: float
    """The same over the last half second only."""
    m_bw_per_core: float
    """Gb/s sent for each data thread that is fully busy."""
    m_rx_cpu_util: float
    """How busy the receive thread is, in percent."""
    m_rx_core_pps: float
    """Frames per second that the receive thread handles."""
    m_platform_factor: float
    """Always 1."""
    m_tx_bps: float
    """Bits per second sent, at layer 2."""
    m_rx_bps: float
    """Bits per second received, at layer 2."""
    m_tx_pps: float
    """Frames per second sent."""
    m_rx_pps: float
    """Frames per second received."""
    m_rx_drop_bps: float
    """Bits per second that links lost, estimated from the mean size of what was sent."""
    m_total_queue_full: int
    """Times that a port's queue was full and a burst had to wait."""
    m_total_tx_pkts: int
    """Frames sent."""
    m_total_rx_pkts: int
    """Frames received."""
    m_total_tx_bytes: int
    """Bytes sent."""
    m_total_rx_bytes: int
    """Bytes received."""
    m_total_missed_packets: int
    """Frames that were due and were not sent in time."""
    m_tx_cps: float
    """Connections begun a second."""
    m_tx_expected_cps: float
    """Connections a second that were to begin."""
    m_tx_expected_pps: float
    """Packets a second that were to be sent."""
    m_tx_expected_bps: float
    """Bits a second that were to be sent."""
    m_total_alloc_error: int
    """TRex's; 0."""
    m_total_queue_drop: int
    """TRex's; 0."""
    m_active_flows: float
    """Flows that are open."""
    m_open_flows: float
    """Flows that were opened."""
    m_total_clients: int
    """TRex's; 0."""
    m_total_servers: int
    """TRex's; 0."""
    m_active_sockets: int
    """TRex's; 0."""
    m_socket_util: float
    """TRex's; 0."""
    m_total_nat_time_out: int
    """TRex's, of its address translation; 0."""
    m_total_nat_time_out_wait_ack: int
    """TRex's, of its address translation; 0."""
    m_total_nat_no_fid: int
    """TRex's, of its address translation; 0."""
    m_total_nat_active: int
    """TRex's, of its address translation; 0."""
    m_total_nat_syn_wait: int
    """TRex's, of its address translation; 0."""
    m_total_nat_open: int
    """TRex's, of its address translation; 0."""
    m_total_nat_learn_error: int
    """TRex's, of its address translation; 0."""


BySize = TypedDict("BySize", {"64": int, "65-127": int, "128-255": int, "256-511": int, "512-1023": int, "1024-1518": int, "1519-": int})
"""Frames by size, in bytes with the frame check sequence."""


class PortStats(TypedDict):
    """Reply of `get_port_stats`. Bytes are with the frame check sequence; counters count from
    the server's start."""

    opackets: int
    """Frames sent."""
    obytes: int
    """Bytes sent."""
    ipackets: int
    """Frames received."""
    ibytes: int
    """Bytes received."""
    ierrors: int
    """Frames that an interface or a device lost on arrival."""
    oerrors: int
    """Frames that could not leave the port: the kernel refused them, or they still waited when
    traffic had ended. They are not in `opackets`."""
    m_total_tx_bps: float
    """Bits per second sent, at layer 2."""
    m_total_tx_pps: float
    """Frames per second sent."""
    m_total_rx_bps: float
    """Bits per second received, at layer 2."""
    m_total_rx_pps: float
    """Frames per second received."""
    m_cpu_util: float
    """How busy the data threads are that transmit on the port, in percent."""
    missed_packets: int
    """Frames that were due and were not sent in time."""
    queue_full: int
    """Times that the port's queue was full and a burst had to wait."""
    rx_lost_packets: int
    """Frames lost on arrival: by a link in memory, as it was told to, or else because nobody
    took them in time; only then they are `ierrors` too."""
    rx_by_size: NotRequired[BySize]
    """Received."""
    tx_by_size: NotRequired[BySize]
    """Sent."""


class XstatsNames(TypedDict):
    """Reply of `get_port_xstats_names`."""

    xstats_names: list[str]
    """The names; the same for all ports."""


class XstatsValues(TypedDict):
    """Reply of `get_port_xstats_values`."""

    xstats_values: list[int]
    """The values, in the order of the names; 0 for those that this port does not have. Bytes are
    without the frame check sequence here. Where a driver of DPDK's has a counter of the same
    name as ours, it is the driver's."""
