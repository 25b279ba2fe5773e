"""``trex.common.trex_client`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.client._service_mode import (
    ALL_MASK,
    BGP_MASK,
    DHCP_MASK,
    MDNS_MASK,
    NO_MASK,
    NO_TCP_UDP_MASK,
    TRANSPORT_MASK,
)
from allosaur.packets._buffer import PacketBuffer

__all__ = [
    "ALL_MASK",
    "BGP_MASK",
    "DHCP_MASK",
    "MDNS_MASK",
    "NO_MASK",
    "NO_TCP_UDP_MASK",
    "TRANSPORT_MASK",
    "PacketBuffer",
]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
