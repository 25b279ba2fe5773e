"""Replies of the RPC: ports.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Enabled(TypedDict):
    """Something that is on or off."""

    enabled: bool
    """On."""


class MtuChange(TypedDict):
    """An MTU that somebody has changed while the server runs, in bytes."""

    now: int
    """Now."""
    at_start: int
    """When the server started."""


class Link(TypedDict):
    """The link of a port."""

    up: bool
    """Up."""
    cause: NotRequired[str]
    """Why it is down, where that is known."""
    mtu: NotRequired[MtuChange]
    """The MTU of the interface, where it is not what it was when the server started."""


class FlowControl(TypedDict):
    """Flow control of a link."""

    mode: int
    """−1 for a port without."""


class EtherConfig(TypedDict):
    """The MAC addresses of a port."""

    src: str
    """Its own."""
    dst: str
    """Where its frames go."""
    state: str
    """`configured`, or `unconfigured` while the gateway's is not known."""


class Ipv4Config(TypedDict):
    """The IPv4 addresses of a port."""

    state: str
    """`none` in layer 2 mode, or whether the gateway's MAC address is known: `resolved` or
    `unresolved`."""
    dst: NotRequired[str]
    """The gateway's or peer's."""
    src: NotRequired[str]
    """Its own."""


class Ipv6Config(TypedDict):
    """The IPv6 address of a port."""

    enabled: bool
    """On."""
    src: NotRequired[str]
    """Its own."""


class LayerConfig(TypedDict):
    """The addresses of a port."""

    ether: EtherConfig
    """Layer 2."""
    ipv4: Ipv4Config
    """Layer 3."""
    ipv6: Ipv6Config
    """IPv6."""


class VlanTags(TypedDict):
    """The VLAN tags of a port."""

    tags: list[int]
    """The outer first."""


class PortAttributes(TypedDict):
    """Attributes of a port."""

    promiscuous: Enabled
    """Takes frames for other MAC addresses."""
    multicast: Enabled
    """Takes all multicast frames."""
    link: Link
    """The link."""
    speed: float
    """Line rate in Gb/s."""
    rx_filter_mode: str
    """What reaches the receive thread."""
    vxlan_fs: list[int]
    """UDP ports that are VXLAN."""
    fc: FlowControl
    """Flow control: mode −1 for a port without."""
    layer_cfg: NotRequired[LayerConfig]
    """Addresses; absent in events that do not change them."""
    vlan: NotRequired[VlanTags]
    """VLAN tags of the port itself; absent in events that do not change it."""


class Feature(TypedDict):
    """A receive feature."""

    is_active: bool
    """On."""


class QueueFeature(TypedDict):
    """A receive queue."""

    is_active: bool
    """On."""
    count: NotRequired[int]
    """Frames that it has."""
    size: NotRequired[int]
    """Frames that it keeps."""


class AnnounceFeature(TypedDict):
    """Announcements of an address."""

    is_active: bool
    """On."""
    interval_sec: NotRequired[int]
    """Seconds between two."""


class SocketFeature(TypedDict):
    """A socket that a port is joined to."""

    is_active: bool
    """On."""
    bpf_filter: NotRequired[str]
    """Which of the received frames, in the language of tcpdump."""
    endpoint: NotRequired[str]
    """Its address."""
    socket_open: NotRequired[bool]
    """Always true."""


class ReceiveFeatures(TypedDict):
    """What watches a port."""

    latency: Feature
    """Always off."""
    queue: QueueFeature
    """The receive queue."""
    stack: Feature
    """Always on."""
    grat_arp: AnnounceFeature
    """Whether the port announces its IPv4 address."""
    capture_port: SocketFeature
    """The socket that the port is joined to."""
    capwap_proxy: Feature
    """Always off."""


class PortStatus(TypedDict):
    """Reply of `get_port_status`."""

    owner: str
    """The owner; empty when free."""
    state: str
    """`IDLE`, `STREAMS` or `TX`: the busiest of its profiles."""
    service: bool
    """Service mode."""
    service_filtered: bool
    """Service mode for some protocols only."""
    profile_count: int
    """Profiles on the port; at least one."""
    max_stream_id: int
    """The highest stream number on the port."""
    attr: PortAttributes
    """Attributes."""
    rx_info: ReceiveFeatures
    """Receive features."""
    state_profile: NotRequired[str | dict[str, str]]
    """The state of the profile that was asked for, or for `*` of each."""


class PortOwnerName(TypedDict):
    """Reply of `get_owner`."""

    owner: str
    """The user, `<FREE>` when there is none."""


Handler = str
"""The handler, a string: commands that change the port must carry it."""
