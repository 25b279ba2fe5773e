"""Replies of the RPC: server.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Pong(TypedDict):
    """Reply of `ping`."""

    ts: float
    """The server's monotonic clock, in seconds."""


class Version(TypedDict):
    """Reply of `get_version`."""

    version: str
    """The server's version."""
    build_date: str
    """When it was built."""
    build_time: str
    """When on that day."""
    built_by: str
    """Who built it."""
    mode: str
    """The mode that the request is for: `STL` or `ASTF`. Before the handshake, the one that
    ports begin in."""
    modes: list[str]
    """The modes that ports can be in. TRex's servers have one, and do not say it here."""


class ApiHandle(TypedDict):
    """Reply of `api_sync_v2`."""

    api_h: str
    """What later requests carry."""


class SyncedApi(TypedDict):
    """What the older handshake answers."""

    type: Literal["core"]
    """As it was asked for."""
    api_h: str
    """What later requests carry."""


class ApiSynced(TypedDict):
    """Reply of `api_sync`."""

    api_vers: list[SyncedApi]
    """Exactly one."""


CommandNames = list[str]
"""The names of commands."""


class RxInfo(TypedDict):
    """What the receive side of a port can do."""

    caps: list[str]
    """Of `flow_stats`, `latency`, `rx_bytes`, `tpg`."""
    counters: int
    """Streams whose frames can be counted at once."""


class PortInfo(TypedDict):
    """One port in [`SystemInfo`]."""

    index: int
    """Its number."""
    driver: str
    """The kind of port."""
    description: str
    """What it is, in words."""
    pci_addr: str
    """The PCI address, `N/A` when it has none."""
    numa: int
    """The NUMA node, −1 when it has none."""
    hw_mac: str
    """Its MAC address."""
    stack: str
    """How it answers ARP and the like."""
    rx: RxInfo
    """What its receive side can do."""
    cores: list[int]
    """The data threads that serve it."""
    supp_speeds: list[int]
    """Speeds that can be chosen, in Mb/s."""
    is_fc_supported: bool
    """Flow control can be set."""
    is_led_supported: bool
    """It has a LED to blink."""
    is_link_supported: bool
    """Its link can be set up and down."""
    is_prom_supported: bool
    """Promiscuous mode can be set."""
    is_vxlan_supported: bool
    """VXLAN ports can be set."""
    is_ieee1588_supported: bool
    """Time stamps after IEEE 1588."""
    is_virtual: bool
    """It is not a piece of hardware."""


class SystemInfo(TypedDict):
    """Reply of `get_system_info`."""

    hostname: str
    """The machine's name."""
    uptime: str
    """When the server started, as `Mon DD YYYY @ HH:MM:SS`."""
    dp_core_count: int
    """Data threads in all."""
    dp_core_count_per_port: int
    """Data threads that serve each port."""
    core_type: str
    """The processor."""
    is_multiqueue_mode: bool
    """Ports have several receive queues."""
    advanced_per_stream_stats: bool
    """Statistics of single streams can be had in every mode of the port."""
    port_count: int
    """The number of ports."""
    ports: list[PortInfo]
    """The ports, in order."""


class CoreUtilization(TypedDict):
    """How busy one data thread was."""

    history: list[int]
    """Percent, newest first, at most 20, about one a half second."""
    ports: list[int]
    """The first two ports that it transmits on now; −1 for none. A single one has its place in
    the thread's pair of ports."""


class Utilization(TypedDict):
    """Reply of `get_utilization`."""

    cpu: list[CoreUtilization]
    """One element a data thread."""
    mbuf_stats: dict[str, dict[str, list[int]]]
    """For the NUMA nodes of ports' devices (`cpu-socket-0`; ports without one are with the
    first), and for each of eight frame sizes (`64b` to `9kb`), free and total: how many frames
    of that size, or of the longest that a port sends if that is less, its transmit queues have
    room for, now and when nothing waits in them. Memory ports have a ring where short frames
    take less room, interfaces places of one size, and DPDK's devices the pools of their transmit
    queues. In place of TRex's pools, which have a size each."""


class GlobalConfig(TypedDict):
    """Reply of `get_global_cfg`."""

    sched_max_stretch: float
    """As it was set, in seconds."""
    process_at_cp: bool
    """As it was set."""
    do_mbuf_cache: bool
    """As it was set."""


class Empty(TypedDict):
    """`{}`: the parameters of a command that takes none, and the reply of one that has nothing
    to say."""
