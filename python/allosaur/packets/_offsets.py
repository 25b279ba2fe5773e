"""Where headers and fields lie in a packet: "IP.src" to a number of bytes.

A header's name is that of Scapy's class ("Ether", "ICMPv6ND_NS") or the one that Scapy shows ("Ethernet",
"ICMPv6 Neighbor Discovery - Neighbor Solicitation"; "802.1Q" may be written "802|1Q"); a second header of a
kind is "IP:1".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._errors import STLPacketError

if TYPE_CHECKING:
    from scapy.packet import Packet

_LAYER = re.compile(r"(?P<layer>[^:]*[^:\s])(?::(?P<count>\d+))?")
_FIELD = re.compile(_LAYER.pattern + r"\.(?P<field>\w+)")


class Layers:
    """The headers of one packet that is built. ``packet`` None knows numbers only."""

    def __init__(self, packet: Packet | None, packet_bytes: int) -> None:
        self._packet = packet
        self.packet_bytes = packet_bytes

    def offset(self, name: int | str) -> int:
        """Bytes from the start of the packet to a field like "IP.src". Raises ``STLPacketError``."""
        if isinstance(name, int):
            return name
        shape = _FIELD.fullmatch(name)
        if shape is None:
            raise STLPacketError(
                f"'{name}' is not a field: give a number of bytes, or a name like IP.src or IP:1.src"
            )
        start, layer = self._find(name, shape["layer"], int(shape["count"] or 0))
        return start + _field_offset(layer, shape["field"], name)

    def header(self, name: int | str) -> int:
        """Bytes from the start of the packet to a header like "IP" or "IP:1"."""
        if isinstance(name, int):
            return name
        shape = _LAYER.fullmatch(name)
        field = _FIELD.fullmatch(name)
        if shape is None or (field is not None and not self._has(shape["layer"])):
            raise STLPacketError(
                f"'{name}' is not a header: give a number of bytes, or a name like IP or IP:1"
            )
        return self._find(name, shape["layer"], int(shape["count"] or 0))[0]

    def _has(self, wanted: str) -> bool:
        return self._packet is not None and any(wanted in _names(layer) for _, layer in _walk(self._packet))

    def _find(self, name: str, wanted: str, count: int) -> tuple[int, Packet]:
        if self._packet is None:
            raise STLPacketError(f"'{name}' cannot be found in raw bytes: give a number of bytes")
        wanted = wanted.replace("|", ".")
        names = []
        before = 0
        for start, layer in _walk(self._packet):
            names.append(type(layer).__name__)
            if wanted in _names(layer):
                if before == count:
                    return start, layer
                before += 1
        which = f"{wanted}:{count}" if count else wanted
        raise STLPacketError(f"'{name}': the packet has no {which}, its headers are {'/'.join(names)}")


def _walk(packet: Packet) -> Iterator[tuple[int, Packet]]:
    """Each layer and where it begins: what a layer has more than its payload comes before it."""
    start = 0
    layer: Any = packet
    while layer and type(layer).__name__ != "NoPayload":
        yield start, layer
        start += len(bytes(layer)) - len(bytes(layer.payload))
        layer = layer.payload


def _names(layer: Packet) -> set[str]:
    """What a layer may be called: by its class, and as Scapy shows it."""
    return {type(layer).__name__, str(layer.name), *(kind.__name__ for kind in layer.aliastypes)}


def _field_offset(layer: Packet, wanted: str, name: str) -> int:
    """Bytes from the start of a layer to a field, of bit fields to the byte where they begin."""
    built: Any = b""
    for field in layer.fields_desc:
        if field.name == wanted:
            return len(built[0] if isinstance(built, tuple) else built)
        # A bit field leaves a tuple (bytes so far, bits pending, their value) for the next one.
        built = field.addfield(layer, built, layer.getfieldval(field.name))
    fields = ", ".join(field.name for field in layer.fields_desc)
    raise STLPacketError(f"'{name}': {type(layer).__name__} has no field '{wanted}', its fields are {fields}")
