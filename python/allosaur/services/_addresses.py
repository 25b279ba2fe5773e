"""Addresses that follow from others: IPv6 from a MAC, multicast from IPv6."""

from __future__ import annotations

import ipaddress
from typing import Any

ALL_NODES = "ff02::1"
ALL_MLD_ROUTERS = "ff02::16"
_SOLICITED_NODE = int(ipaddress.IPv6Address("ff02::1:ff00:0"))
_LINK_LOCAL = int(ipaddress.IPv6Address("fe80::"))


def link_local(mac: str) -> str:
    """The link-local IPv6 address of a MAC (RFC 4291, appendix A)."""
    parts = bytes.fromhex(mac.replace(":", ""))
    interface = bytes([parts[0] ^ 2]) + parts[1:3] + b"\xff\xfe" + parts[3:]
    return str(ipaddress.IPv6Address(_LINK_LOCAL | int.from_bytes(interface, "big")))


def solicited_node(ip: str) -> str:
    """The multicast address at which the owner of an address listens (RFC 4291, 2.7.1)."""
    return str(ipaddress.IPv6Address(_SOLICITED_NODE | int(ipaddress.IPv6Address(ip)) & 0xFFFFFF))


def multicast_mac(ip: str) -> str:
    """The MAC of an IPv6 multicast address (RFC 2464, section 7)."""
    return "33:33:" + ":".join(f"{part:02x}" for part in ipaddress.IPv6Address(ip).packed[-4:])


def plain(ip: Any) -> str:
    """An IPv6 address as it is usually written."""
    return str(ipaddress.IPv6Address(str(ip)))


def port_ipv6(port: Any) -> str:
    """The IPv6 address of a port: the one it was given, or the link-local one of its MAC."""
    return plain(port.src_ipv6) if port.src_ipv6 else link_local(port.src_mac)
