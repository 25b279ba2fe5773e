"""What this package needs of Scapy: few layers, and a packet whose bytes are the same everywhere.

Scapy fills in what a packet leaves open from the machine it runs on (routes, ARP). A profile must
give the same bytes on every machine, so open addresses get fixed values here. Importing this
module imports Scapy (about a fifth of a second); nothing imports it before a packet is needed.
"""

from __future__ import annotations

from typing import Any

from .._errors import STLPacketError
from ._offline import ADDRESSES, guard

# Scapy says on import, too, that it found no default route.
guard()

from scapy.fields import BitField  # noqa: E402
from scapy.layers.inet import IP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.l2 import ARP, Ether  # noqa: E402
from scapy.packet import Packet, Padding  # noqa: E402

_ADDRESSES: dict[type[Packet], dict[str, str]] = {
    kind: {field: address for (name, field), address in ADDRESSES.items() if name == kind.__name__}
    for kind in (Ether, IP, IPv6, ARP)
}

__all__ = [
    "ARP",
    "IP",
    "Ether",
    "IPv6",
    "Packet",
    "Padding",
    "check_bit_fields",
    "explicit_macs",
    "with_fixed_addresses",
]


def with_fixed_addresses(packet: Packet) -> Packet:
    """A copy of the packet in which no field depends on the machine."""
    packet = _copy(packet)
    layer: Any = packet
    while layer and type(layer).__name__ != "NoPayload":
        for field, address in _ADDRESSES.get(type(layer), {}).items():
            if field not in layer.fields and field not in layer.overloaded_fields:
                setattr(layer, field, address)
        layer = layer.payload
    return packet


def _copy(packet: Packet) -> Packet:
    twin: Packet = packet.copy()
    return twin


def check_bit_fields(packet: Packet) -> None:
    """Refuse values that Scapy would cut to the bits of their field. Raises ``STLPacketError``."""
    layer: Any = packet
    while layer and type(layer).__name__ != "NoPayload":
        for field in layer.fields_desc:
            value = layer.fields.get(field.name)
            if isinstance(field, BitField) and type(value) is int and value >> field.size > 0:
                raise STLPacketError(
                    f"{type(layer).__name__}({field.name}={value}): the field has {field.size} bits, "
                    f"give 0 to {(1 << field.size) - 1}"
                )
        layer = layer.payload


def explicit_macs(packet: Packet) -> tuple[bool, bool]:
    """Whether the packet itself says its source and its destination MAC."""
    if not isinstance(packet, Ether):
        return False, False
    return "src" in packet.fields, "dst" in packet.fields
