"""Replies of the RPC: stateful mode: topology.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class InterfaceTunnel(TypedDict):
    """The network of VXLAN of a virtual interface."""

    vni: int
    """The number of the network, 0 to 16777215."""
    remote: str | None
    """The address of the other end."""


class VirtualInterface(TypedDict):
    """A virtual interface (a VIF)."""

    trex_port: int
    """The port that it is on."""
    sub_if: int
    """Its number there, from 1 on."""
    src_mac: str
    """Its MAC address."""
    vlan: NotRequired[int]
    """Its VLAN; 0 or nothing is none."""
    vxlan: NotRequired[InterfaceTunnel]
    """The network of VXLAN that its clients are in, behind the tunnel's end of the port
    (`set_vxlan`); its MAC address and that of the gateway are then those within the tunnel."""


class Gateway(TypedDict):
    """The gateway of a range of clients."""

    trex_port: int
    """The port of the clients."""
    sub_if: int
    """The interface that they are behind; 0 is the port itself."""
    src_start: str
    """The first client."""
    src_end: str
    """The last client."""
    dst_mac: str
    """The gateway's MAC address."""


class TopologyAsLoaded(TypedDict):
    """A topology, as it was loaded."""

    vifs: list[VirtualInterface] | None
    """Virtual interfaces; `null` without."""
    gws: list[Gateway] | None
    """Gateways of ranges of clients; `null` without."""


class LoadedTopology(TypedDict):
    """Reply of `topo_get`."""

    topo_data: TopologyAsLoaded
    """The topology."""
