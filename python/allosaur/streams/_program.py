"""Field engine programs: a list of instructions, written as a list or call by call."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from .._errors import STLPacketError, STLTypeError
from ..packets._offsets import Layers
from ._vm import (
    Instruction,
    Offset,
    RawInstruction,
    STLVmFixChecksumHw,
    STLVmFixIcmpv6,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmTupleGen,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
    Value,
)

_FRAME_BYTES_MIN = 60
_CACHE_PACKETS_MAX = 65_535


class STLScVmRaw:
    """A program as a list of instructions. ``cache_size`` packets are made ahead by the server."""

    def __init__(
        self, list_of_commands: Iterable[Instruction] | None = None, cache_size: int | None = None
    ) -> None:
        self.commands: list[Instruction] = []
        self.cache_size: int | None = None
        for command in list_of_commands or []:
            self.add_cmd(command)
        if cache_size is not None:
            self.set_cached(cache_size)

    def add_cmd(self, cmd: Instruction) -> None:
        """Append an instruction."""
        if not isinstance(cmd, Instruction):
            raise STLTypeError("cmd", type(cmd), Instruction)
        self.commands.append(cmd)

    def set_cached(self, cache_size: int) -> None:
        """Have the server make that many packets ahead and repeat them."""
        if not isinstance(cache_size, int) or not 0 <= cache_size <= _CACHE_PACKETS_MAX:
            raise STLPacketError(f"cache_size is {cache_size!r}, give 0 to {_CACHE_PACKETS_MAX} packets")
        self.cache_size = cache_size

    def clone(self) -> STLScVmRaw:
        """A copy that can be changed on its own."""
        return copy.deepcopy(self)

    def uses_names(self) -> bool:
        """Whether an instruction gives its place by a name, so that the packet must be parsed."""
        return any(isinstance(place, str) for command in self.commands for place in command.places)

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The ``vm`` object of the protocol for a packet. Raises ``STLPacketError``."""
        sizes = _declared(self.commands)
        instructions = [command.to_json(layers) for command in _ordered(self.commands)]
        for command, fields in zip(_ordered(self.commands), instructions, strict=True):
            _check(command, fields, sizes, layers)
        followers = {command.next_var for command in self.commands if command.next_var}
        for fields in instructions:
            if fields.get("name") in followers and "split_to_cores" in fields:
                fields["split_to_cores"] = False  # It moves with the one before; servers refuse true.
        program: dict[str, Any] = {"instructions": instructions}
        if self.cache_size:
            program["cache"] = self.cache_size
        return program

    @staticmethod
    def from_json(fields: dict[str, Any]) -> STLScVmRaw:
        """A program from the ``vm`` object of the protocol."""
        return STLScVmRaw(
            [RawInstruction(dict(instruction)) for instruction in fields.get("instructions", [])],
            fields.get("cache"),
        )


class STLVM(STLScVmRaw):
    """A program that is written call by call."""

    def __init__(self) -> None:
        super().__init__()

    def var(
        self,
        name: str,
        min_value: Value,
        max_value: Value,
        size: int,
        op: str,
        step: Value = 1,
        split_to_cores: bool = True,
        next_var: str | None = None,
        **more: Any,
    ) -> None:
        """Declare a variable; see ``STLVmFlowVar`` (also for ``init_value`` and ``value_list``)."""
        self.add_cmd(
            STLVmFlowVar(
                name,
                min_value=min_value,
                max_value=max_value,
                size=size,
                op=op,
                step=step,
                split_to_cores=split_to_cores,
                next_var=next_var,
                **more,
            )
        )

    def repeatable_random_var(
        self,
        fv_name: str,
        size: int,
        limit: int,
        seed: int | None = None,
        min_value: Value | None = None,
        max_value: Value | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        """Declare a random variable that repeats; see ``STLVmFlowVarRepeatableRandom``."""
        self.add_cmd(
            STLVmFlowVarRepeatableRandom(
                fv_name, size, limit, seed, min_value, max_value, split_to_cores, next_var
            )
        )

    def tuple_var(
        self,
        name: str,
        ip_min: Value,
        ip_max: Value,
        port_min: int,
        port_max: int,
        limit_flows: int = 0,
        **more: Any,
    ) -> None:
        """Declare client addresses and ports; see ``STLVmTupleGen``."""
        self.add_cmd(STLVmTupleGen(name, ip_min, ip_max, port_min, port_max, limit_flows, **more))

    def write(
        self,
        fv_name: str,
        pkt_offset: Offset,
        offset_fixup: int = 0,
        add_val: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Write a variable into the packet; see ``STLVmWrFlowVar``."""
        self.add_cmd(STLVmWrFlowVar(fv_name, pkt_offset, offset_fixup, add_val, _is_big(byte_order)))

    def write_mask(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int,
        mask: int,
        shift: int = 0,
        offset_fixup: int = 0,
        add_val: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Write some bits of a variable; see ``STLVmWrMaskFlowVar``."""
        self.add_cmd(
            STLVmWrMaskFlowVar(
                fv_name, pkt_offset, pkt_cast_size, mask, shift, add_val, offset_fixup, _is_big(byte_order)
            )
        )

    def trim(self, fv_name: str) -> None:
        """Give the packet the length of a variable; see ``STLVmTrimPktSize``."""
        self.add_cmd(STLVmTrimPktSize(fv_name))

    def fix_chksum(self, offset: Offset = "IP") -> None:
        """Compute the IPv4 header checksum again."""
        self.add_cmd(STLVmFixIpv4(offset))

    def fix_chksum_hw(self, l3_offset: Offset, l4_offset: Offset, l4_type: int) -> None:
        """Have the checksums computed by hardware where the port can."""
        self.add_cmd(STLVmFixChecksumHw(l3_offset, l4_offset, l4_type))

    def fix_chksum_icmpv6(self, l3_offset: Offset, l4_offset: Offset) -> None:
        """Compute the ICMPv6 checksum again."""
        self.add_cmd(STLVmFixIcmpv6(l3_offset, l4_offset))


class STLIPRange(STLVM):
    """Ranges of IPv4 addresses: ``{"start": "16.0.0.1", "end": "16.0.0.254", "step": 1}`` for either."""

    def __init__(
        self, src: dict[str, Any] | None = None, dst: dict[str, Any] | None = None, fix_chksum: bool = True
    ) -> None:
        super().__init__()
        for name, addresses in (("src", src), ("dst", dst)):
            if addresses is None:
                continue
            missing = {"start", "end"} - addresses.keys()
            if missing:
                raise STLPacketError(
                    f"{name} has no '{min(missing)}': give a dictionary with start, end and step"
                )
            step = addresses.get("step", 1)
            self.var(name, addresses["start"], addresses["end"], size=4, op="inc", step=step)
            self.write(name, f"IP.{name}")
        if fix_chksum:
            self.fix_chksum()


def _is_big(byte_order: str) -> bool:
    if byte_order not in ("big", "little"):
        raise STLPacketError(f"byte_order is '{byte_order}', give 'big' or 'little'")
    return byte_order == "big"


def _declared(commands: Sequence[Instruction]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for command in commands:
        for name, size in command.declares.items():
            if name in sizes:
                raise STLPacketError(f"variable '{name}' is declared twice: give each its own name")
            sizes[name] = size
    return sizes


def _ordered(commands: Sequence[Instruction]) -> list[Instruction]:
    """Variables first, each chain of ``next_var`` together, then everything else as it was written."""
    variables = [command for command in commands if command.declares]
    by_name = {next(iter(variable.declares)): variable for variable in variables}
    followers = {variable.next_var for variable in variables if variable.next_var}
    for name in sorted(followers - by_name.keys()):
        raise STLPacketError(f"next_var '{name}' is not declared: {_known(by_name)}")
    ordered: list[Instruction] = []
    for variable in variables:
        if next(iter(variable.declares)) in followers:
            continue
        link: Instruction | None = variable
        while link is not None and link not in ordered:
            ordered.append(link)
            link = by_name[link.next_var] if link.next_var else None
    if len(ordered) != len(variables):
        raise STLPacketError("the variables form a circle by next_var: leave it out in one of them")
    return ordered + [command for command in commands if not command.declares]


def _check(command: Instruction, fields: dict[str, Any], sizes: dict[str, int], layers: Layers) -> None:
    if command.reads is not None and command.reads not in sizes:
        raise STLPacketError(f"{fields['type']}: variable '{command.reads}' is not declared, {_known(sizes)}")
    if fields["type"] == "trim_pkt_size" and sizes[str(command.reads)] != 2:
        raise STLPacketError(f"trim_pkt_size: variable '{command.reads}' must have a size of 2 bytes")
    offset = fields.get("pkt_offset")
    if offset is None:
        return
    width = (
        20
        if fields["type"] == "fix_checksum_ipv4"
        else fields.get("pkt_cast_size") or sizes[str(command.reads)]
    )
    packet_bytes = max(layers.packet_bytes, _FRAME_BYTES_MIN)
    if offset < 0 or offset + width > packet_bytes:
        what = f" of variable '{command.reads}'" if command.reads else ""
        raise STLPacketError(
            f"{fields['type']}{what} at offset {offset} touches {width} bytes, "
            f"but the packet has {packet_bytes}: give a smaller offset or a longer packet"
        )


def _known(names: Iterable[str]) -> str:
    known = ", ".join(sorted(names))
    return f"the variables are: {known}" if known else "the program declares no variables"
