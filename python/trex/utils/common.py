"""``trex.utils.common`` of existing scripts."""

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

__all__ = [
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
