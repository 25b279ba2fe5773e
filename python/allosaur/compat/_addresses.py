"""Small functions on addresses that existing TRex profiles and topologies use; new ones need none of them."""

from __future__ import annotations

import ipaddress
import re

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_MAC_BYTES = 6


def ip2int(ip: str) -> int:
    """An IPv4 address as a number."""
    return int(ipaddress.IPv4Address(ip))


def int2ip(val: int) -> str:
    """A number as an IPv4 address."""
    return str(ipaddress.IPv4Address(val))


def increase_ip(ip_str: str, val: int = 1) -> str:
    """The IPv4 address that comes so much later."""
    return str(ipaddress.IPv4Address(ip_str) + val)


def increase_ipv6(ipv6: str, val: int = 1) -> str:
    """The IPv6 address that comes so much later."""
    return str(ipaddress.IPv6Address(ipv6) + val)


def mac2int(mac: str) -> int:
    """A MAC address as a number."""
    return int(mac.replace(":", "").replace("-", ""), 16)


def int2mac(val: int) -> str:
    """A number as a MAC address."""
    return val.to_bytes(_MAC_BYTES, "big").hex(":")


def increase_mac(mac_str: str, val: int = 1) -> str:
    """The MAC address that comes so much later."""
    return int2mac(mac2int(mac_str) + val)


def mac_str_to_num(mac_buffer: bytes) -> int:
    """The six bytes of a MAC address as a number."""
    return int.from_bytes(mac_buffer, "big")


def ipv4_str_to_num(ipv4_buffer: bytes) -> int:
    """The four bytes of an IPv4 address as a number."""
    return int.from_bytes(ipv4_buffer, "big")


def is_valid_ipv4(addr: object) -> bool:
    """Whether it is the text of an IPv4 address."""
    return isinstance(addr, str) and _is(ipaddress.IPv4Address, addr)


def is_valid_ipv6(addr: object) -> bool:
    """Whether it is the text of an IPv6 address."""
    return isinstance(addr, str) and _is(ipaddress.IPv6Address, addr)


def is_valid_mac(mac: object) -> bool:
    """Whether it is the text of a MAC address."""
    return isinstance(mac, str) and bool(_MAC.fullmatch(mac))


def _is(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address], text: str) -> bool:
    try:
        kind(text)
        return True
    except ValueError:
        return False
