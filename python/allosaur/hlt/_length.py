"""The length of frames: fixed, or different from packet to packet.

Callers give lengths of frames with FCS; packets are made without.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._errors import STLError
from ..packets._offline import offline
from ..packets._scapy import Packet, with_fixed_addresses
from ..streams._vm import Instruction, STLVmFlowVar, STLVmTrimPktSize, STLVmWrFlowVar
from ._arguments import Settings

_FCS_BYTES = 4
_IPV6_BYTES = 40
_FILLER = "!"
_VARIABLE = "pkt_len"
_OPERATIONS = {"increment": "inc", "decrement": "dec", "random": "random"}
#: The least that a length may go down to, in bytes as callers give them.
_LEAST = {"frame_size": 48, "l3_length": 40}


@dataclass(frozen=True)
class Headers:
    """The headers of a packet."""

    layer_2: Packet
    layer_3: Packet | None
    layer_4: Packet | None

    def packet(self) -> Packet:
        """All of them, one in the other."""
        packet = self.layer_2
        for layer in (self.layer_3, self.layer_4):
            packet = packet if layer is None else packet / layer
        return packet


def fill(settings: Settings, headers: Headers) -> tuple[Packet, list[Instruction]]:
    """The packet at its greatest length, and what changes the length. Raises ``STLError``."""
    packet = headers.packet()
    mode = settings["length_mode"]
    if mode == "auto":
        return packet, []
    names = ("frame_size_min", "frame_size_max") if mode in _OPERATIONS else ("frame_size",)
    by_frame = bool(settings.given & set(names)) or (mode == "fixed" and "l3_length" not in settings.given)
    kind = "frame_size" if by_frame else "l3_length"
    # What is added to a length that the caller gives, for that of the packet.
    more = -_FCS_BYTES if by_frame else _length(headers.layer_2)
    instructions: list[Instruction] = []
    name = kind
    if mode in _OPERATIONS:
        name = f"{kind}_max"
        instructions = _changing(settings, kind, more, headers)
    missing = settings[name] + more - _length(packet)
    if missing < 0:
        raise STLError(
            f"argument '{name}' cannot be {settings[name]}: the headers alone need "
            f"{settings[name] - missing} bytes, give at least that"
        )
    return packet / (_FILLER * missing), instructions


def _changing(settings: Settings, kind: str, more: int, headers: Headers) -> list[Instruction]:
    least, most = (settings[f"{kind}_{end}"] for end in ("min", "max"))
    if least < _LEAST[kind]:
        raise STLError(f"argument '{kind}_min' cannot be {least}: give at least {_LEAST[kind]} bytes")
    if least > most:
        raise STLError(
            f"argument '{kind}_min' cannot be {least}: '{kind}_max' is {most}, give {most} or less"
        )
    if least == most:
        return []
    before = _length(headers.layer_2)
    instructions: list[Instruction] = [
        STLVmFlowVar(
            _VARIABLE,
            size=2,
            op=_OPERATIONS[settings["length_mode"]],
            step=settings[f"{kind}_step"],
            min_value=least + more,
            max_value=most + more,
        ),
        STLVmTrimPktSize(_VARIABLE),
    ]
    if headers.layer_3 is not None and settings["l3_protocol"] == "ipv4":
        instructions.append(STLVmWrFlowVar(_VARIABLE, "IP.len", add_val=-before))
    elif headers.layer_3 is not None and settings["ipv6_length"] is None:
        instructions.append(STLVmWrFlowVar(_VARIABLE, "IPv6.plen", add_val=-before - _IPV6_BYTES))
    if headers.layer_3 is not None and settings["l4_protocol"] == "udp":
        instructions.append(STLVmWrFlowVar(_VARIABLE, "UDP.len", add_val=-before - _length(headers.layer_3)))
    return instructions


def _length(packet: Packet) -> int:
    """Bytes of a packet, of which the open addresses are not looked up on this machine."""
    with offline():
        return len(bytes(with_fixed_addresses(packet)))
