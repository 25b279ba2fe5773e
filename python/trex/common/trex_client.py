"""``trex.common.trex_client`` of existing scripts."""

from allosaur._client_service import (
    ALL_MASK,
    BGP_MASK,
    DHCP_MASK,
    MDNS_MASK,
    NO_MASK,
    NO_TCP_UDP_MASK,
    TRANSPORT_MASK,
)
from allosaur._compat_missing import from_api
from allosaur._packets import PacketBuffer

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
