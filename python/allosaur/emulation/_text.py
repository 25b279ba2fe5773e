"""What the server says of namespaces and clients, with addresses as text instead of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._values import EMUType, Ipv4, Ipv6, Mac

_KINDS: dict[str, type[EMUType]] = {
    **dict.fromkeys(("ipv4", "ipv4_dg"), Ipv4),
    **dict.fromkeys(("ipv6", "dg_ipv6", "dhcp_ipv6", "ipv6_local", "ipv6_slaac", "prefix"), Ipv6),
    **dict.fromkeys(("mac", "ipv4_force_mac", "ipv6_force_mac", "rmac", "dgmac", "dmac"), Mac),
}
_BY_LENGTH: dict[int, type[EMUType]] = {kind.BYTES_NUM: kind for kind in (Mac, Ipv4, Ipv6)}
_TAGS = ("tci", "tpid")


def record(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the server with addresses as text; lists of names are one text, sorted."""
    return {name: value(name, given) for name, given in fields.items()}


def value(name: str, given: Any) -> Any:
    """One value of a record. Tags that are all zero are None: there is no tag."""
    if isinstance(given, Mapping):
        return record(given)
    if not isinstance(given, list):
        return given
    if name in _TAGS and not any(given):
        return None
    kind = _KINDS.get(name)
    if kind is not None:
        return kind(given).S()
    if name == "plug_names":
        return ", ".join(sorted(map(str, given)))
    return ", ".join(hex(one) if name == "tpid" else str(one) for one in given)


def address(given: list[int]) -> str:
    """Bytes of an address, by their number."""
    kind = _BY_LENGTH.get(len(given))
    return kind(given).S() if kind is not None else str(given)
