"""The field engine program of fields that differ from packet to packet.

A variable moves up or down from the middle of its range. Fields with the same pace share one; each adds how
far its own first value is from the middle.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._errors import STLError
from ..streams._vm import Instruction, STLVmFlowVar, STLVmWrFlowVar, STLVmWrMaskFlowVar
from ._arguments import Settings
from ._headers import tags

_OPERATIONS = {"increment": "inc", "decrement": "dec"}
_ID_MASK = 0x0FFF
_PRIORITY_MASK, _PRIORITY_SHIFT = 0xE000, 13


@dataclass(frozen=True)
class Change:
    """A field, and how it changes. ``name`` begins the names of its arguments."""

    name: str
    place: str
    size: int
    first: int
    pace: dict[str, Any]
    random_name: str
    #: Bytes into the field; only the bits of ``mask`` are written, where it is one.
    inside: int = 0
    mask: int | None = None
    shift: int = 0
    #: TRex's names of variables that go up begin so, but for those of VLAN tags.
    up: str = "inc"

    @property
    def is_fixed(self) -> bool:
        """Whether every packet has the first value."""
        mode, count = str(self.pace["mode"]), int(self.pace["count"])
        if mode != "fixed" and count < 1:
            raise STLError(f"argument '{self.name}_count' cannot be {count}: give 1 or more")
        return mode == "fixed" or (mode != "random" and count == 1)


class Program:
    """Instructions that are added field by field; a variable is declared once."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._operations: dict[str, str] = {}

    def change(self, change: Change) -> bool:
        """Add a field; False when it does not change. Raises ``STLError``."""
        if change.is_fixed:
            return False
        if change.pace["step"] < 1:
            raise STLError(
                f"argument '{change.name}_step' is 0 in the lowest 32 bits, which change: give 1 or more"
            )
        middle = (1 << 8 * change.size - 1) - 1
        if change.pace["mode"] == "random":
            name, added = self._random(change), 0
        else:
            name, added = self._moving(change, middle), _signed(change.first - middle, change.size)
        self.instructions.append(_write(change, name, added))
        return True

    def _random(self, change: Change) -> str:
        name = change.random_name
        if name in self._operations:
            name += str(sum(known.startswith(name) for known in self._operations))
        self._declare(name, "random", change.size, 1, 0, (1 << 8 * change.size) - 1)
        return name

    def _moving(self, change: Change, middle: int) -> str:
        count, step = change.pace["count"], change.pace["step"]
        span = (count - 1) * step
        if span > middle:
            raise STLError(
                f"arguments '{change.name}_count' and '{change.name}_step': {count} values {step} apart "
                f"span {span}, give less, so that they span {middle} at most"
            )
        operation = _OPERATIONS[change.pace["mode"]]
        name = f"{change.up if operation == 'inc' else 'dec'}_{change.size}_{count - 1}_{step}"
        if self._operations.get(name, operation) != operation:
            name += "_down"
        if name not in self._operations:
            least, most = (middle, middle + span) if operation == "inc" else (middle - span, middle)
            self._declare(name, operation, change.size, step, least, most)
        return name

    def _declare(self, name: str, operation: str, size: int, step: int, least: int, most: int) -> None:
        self._operations[name] = operation
        self.instructions.append(
            STLVmFlowVar(name, min_value=least, max_value=most, size=size, step=step, op=operation)
        )


def layer_2_changes(settings: Settings) -> Iterator[Change]:
    """The addresses of Ethernet, of which the lowest 32 bits change, and the VLAN tags."""
    for end in ("src", "dst") if not settings["ignore_macs"] else ():
        name = f"mac_{end}"
        first = int(settings[name].replace(":", "")[4:], 16)
        yield Change(name, f"Ethernet.{end}", 4, first, _pace(settings, name), f"{name}_random", inside=2)
    for number, tag in enumerate(tags(settings)):
        place = f"802|1Q:{number}.vlan"
        pace = {word: tag[f"vlan_id_{word}"] for word in ("mode", "count", "step")}
        yield Change("vlan_id", place, 2, tag["vlan_id"], pace, "vlan_id_random", mask=_ID_MASK, up="dec")
        pace = {word: tag[f"vlan_priority_{word}"] for word in ("mode", "count", "step")}
        yield Change(
            *("vlan_priority", place, 2, tag["vlan_user_priority"], pace, "vlan_priority_random"),
            mask=_PRIORITY_MASK,
            shift=_PRIORITY_SHIFT,
            up="dec",
        )


def layer_3_changes(settings: Settings) -> Iterator[Change]:
    """The addresses of IPv4, or the lowest 32 bits of those of IPv6."""
    protocol = settings["l3_protocol"]
    prefix, layer, inside = ("ip", "IP", 0) if protocol == "ipv4" else ("ipv6", "IPv6", 12)
    for end in ("src", "dst") if protocol else ():
        name = f"{prefix}_{end}"
        first = int(ipaddress.ip_address(settings[f"{name}_addr"])) & 0xFFFF_FFFF
        yield Change(name, f"{layer}.{end}", 4, first, _pace(settings, name), f"{name}_random", inside=inside)


def layer_4_changes(settings: Settings) -> Iterator[Change]:
    """The ports of TCP or UDP."""
    protocol = settings["l4_protocol"]
    for end in ("src", "dst") if protocol else ():
        name = f"{protocol}_{end}_port"
        place = f"{protocol.upper()}.{end[0]}port"
        yield Change(name, place, 2, settings[name], _pace(settings, name), f"{protocol}_{end}_random")


def _pace(settings: Settings, name: str) -> dict[str, Any]:
    return {word: settings[f"{name}_{word}"] for word in ("mode", "count", "step")}


def _signed(number: int, size: int) -> int:
    """The number of that many bytes with a sign that has the same bits."""
    half = 1 << 8 * size - 1
    return (number + half) % (2 * half) - half


def _write(change: Change, name: str, added: int) -> Instruction:
    if change.mask is None:
        return STLVmWrFlowVar(name, change.place, offset_fixup=change.inside, add_val=added)
    return STLVmWrMaskFlowVar(
        name, change.place, pkt_cast_size=change.size, mask=change.mask, shift=change.shift, add_value=added
    )
