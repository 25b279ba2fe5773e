"""VLAN tags of packets: none, one, or two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._errors import STLArgumentError

_TAGS_MAX = 2
_KINDS = {1: "Q", 2: "DQ"}


class VLAN:
    """Tags of a packet, the outer first: ``VLAN(100)``, ``VLAN([100, 200])``, ``VLAN(None)`` for none."""

    def __init__(self, vlan: VLAN | int | Iterable[int] | None = None) -> None:
        self._is_default = vlan is None or (isinstance(vlan, VLAN) and vlan.is_default())
        self.tags: tuple[int, ...] = vlan_tags(tuple(vlan) if isinstance(vlan, VLAN) else vlan)

    def __bool__(self) -> bool:
        return bool(self.tags)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tags)

    def get_tags(self) -> tuple[int, ...]:
        """The tags, the outer first."""
        return self.tags

    def is_default(self) -> bool:
        """Whether nothing was said of tags, not even that there are none."""
        return self._is_default

    def get_desc(self) -> str:
        """The tags in words."""
        if not self.tags:
            return ""
        kind = "VLAN" if len(self.tags) == 1 else "QinQ"
        return f"{kind} {'/'.join(str(tag) for tag in self.tags)}"

    def embed(self, packet: Any, fmt: str | None = None) -> Any:
        """Put the tags into a Scapy packet behind its Ethernet header, and return the packet.

        ``fmt`` has a letter for each tag: Q for 802.1Q, D for 802.1ad. Two tags are "DQ" unless it
        is given.
        """
        if not self.tags:
            return packet
        from scapy.layers.l2 import Dot1AD, Dot1Q

        layers = {"Q": Dot1Q, "D": Dot1AD}
        kinds = fmt or _KINDS[len(self.tags)]
        if len(kinds) != len(self.tags) or not set(kinds) <= set(layers):
            raise STLArgumentError("fmt", fmt, "a letter for each tag, Q or D")
        inner = packet.payload
        for tag, kind in reversed(list(zip(self.tags, kinds, strict=True))):
            inner = layers[kind](vlan=tag) / inner
        packet.remove_payload()
        # A type that the packet says itself would hide the tags.
        packet.fields.pop("type", None)
        packet.add_payload(inner)
        return packet

    @staticmethod
    def extract(packet: Any) -> list[int]:
        """The tags of a Scapy packet, the outer first."""
        from scapy.layers.l2 import Dot1AD, Dot1Q

        tags = []
        layer = packet.payload
        while isinstance(layer, (Dot1Q, Dot1AD)):
            tags.append(int(layer.vlan))
            layer = layer.payload
        return tags


def vlan_tags(vlan: int | Iterable[int] | None) -> tuple[int, ...]:
    """The tags of a ``vlan`` argument, the outer first. Raises ``STLArgumentError``."""
    many: Any = () if vlan is None else vlan
    tags = tuple(many) if isinstance(many, (list, tuple)) else (many,)
    if len(tags) > _TAGS_MAX or not all(_is_tag(tag) for tag in tags):
        raise STLArgumentError("vlan", vlan, "none, one or two of 1 to 4095")
    return tags


def seen_tags(packet: Any) -> tuple[int, ...]:
    """The tags that a received Scapy packet has; tag 0 only carries a priority, and is none."""
    return tuple(tag for tag in VLAN.extract(packet) if tag)


def _is_tag(tag: object) -> bool:
    return isinstance(tag, int) and not isinstance(tag, bool) and 1 <= tag <= 4095
