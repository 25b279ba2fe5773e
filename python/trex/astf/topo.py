"""``trex.astf.topo`` of existing scripts."""

from allosaur._from_api import from_api
from allosaur.compat._addresses import (
    increase_ip,
    increase_ipv6,
    increase_mac,
    int2ip,
    int2mac,
    ip2int,
    ipv4_str_to_num,
    is_valid_ipv4,
    is_valid_ipv6,
    is_valid_mac,
    mac2int,
    mac_str_to_num,
)
from allosaur.stateful._topology import ASTFTopology, TopoGW, TopoVIF

__all__ = [
    "ASTFTopology",
    "TopoGW",
    "TopoVIF",
    "increase_ip",
    "increase_ipv6",
    "increase_mac",
    "int2ip",
    "int2mac",
    "ip2int",
    "ipv4_str_to_num",
    "is_valid_ipv4",
    "is_valid_ipv6",
    "is_valid_mac",
    "mac2int",
    "mac_str_to_num",
]


def __getattr__(name: str) -> object:
    return from_api(__name__, name)
