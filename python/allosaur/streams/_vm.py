"""The field engine's language: variables, and what is written into each packet.

One class an instruction, with its check and its JSON; the server runs it. An instruction that needs offsets
is compiled when the packet is known: ``to_json(layers)``.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .._errors import STLPacketError, STLTypeError
from ..packets._offsets import Layers

#: A position in the packet: bytes from its start, or a name like "IP.src", "IP:1.src".
Offset = int | str
#: A value: a number, or an IPv4 address.
Value = int | str

_SIZES = (1, 2, 4, 8)
_OPERATIONS = ("inc", "dec", "random")
_TUPLE_FIELDS = {"ip": 4, "port": 2, "flow_limit": 4}


class Instruction:
    """One line of a field engine program."""

    #: Name and size in bytes of the variables that it declares.
    declares: Mapping[str, int] = MappingProxyType({})
    #: Name of the variable that must follow this one, if any.
    next_var: str | None = None
    #: Name of the variable that it reads, if any.
    reads: str | None = None
    #: Where it touches the packet.
    places: tuple[Offset, ...] = ()

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        raise NotImplementedError


class STLVmFlowVar(Instruction):
    """A variable that counts up or down or is random, from a range or a list of values.

    ``size`` is 1, 2, 4 or 8 bytes; ``op`` is inc, dec or random. Values may be IPv4 addresses.
    Without ``init_value`` it starts at the minimum (dec: at the maximum). With ``split_to_cores``
    all data cores together send what one would; without, each core counts alone, so N cores send
    each value N times. ``next_var`` names a variable that moves when this one wraps; that one is
    shared by the cores as this one is. What is random is always shared.
    """

    def __init__(
        self,
        name: str,
        init_value: Value | None = None,
        min_value: Value = 0,
        max_value: Value = 255,
        size: int = 4,
        step: Value = 1,
        op: str = "inc",
        value_list: Sequence[Value] | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        self.name = _name(name)
        self.declares = {self.name: _size(name, size)}
        self.next_var = next_var
        self.op = op
        if op not in _OPERATIONS:
            raise STLPacketError(f"variable '{name}': op is '{op}', give one of {', '.join(_OPERATIONS)}")
        self._fields: dict[str, Any] = {
            "type": "flow_var",
            "name": name,
            "size": size,
            "op": op,
            "next_var": next_var,
            "split_to_cores": split_to_cores,
        }
        if value_list is not None:
            self._fields["value_list"] = [_value(name, "value_list", value, size) for value in value_list]
            if not value_list:
                raise STLPacketError(f"variable '{name}': value_list is empty, give at least one value")
        else:
            self._fields |= self._range(size, init_value, min_value, max_value)
        self._fields["step"] = _value(name, "step", step, size)
        if self._fields["step"] == 0:
            raise STLPacketError(f"variable '{name}': step is 0, give 1 or more")

    def _range(
        self, size: int, init_value: Value | None, min_value: Value, max_value: Value
    ) -> dict[str, int]:
        lowest = _value(self.name, "min_value", min_value, size)
        highest = _value(self.name, "max_value", max_value, size)
        if lowest > highest:
            raise STLPacketError(
                f"variable '{self.name}': max_value {highest} is lower than min_value {lowest}"
            )
        if init_value is None:
            first = highest if self.op == "dec" else lowest
        else:
            first = _value(self.name, "init_value", init_value, size)
        if not lowest <= first <= highest:
            raise STLPacketError(
                f"variable '{self.name}': init_value {first} is outside of "
                f"min_value {lowest} to max_value {highest}"
            )
        return {"init_value": first, "min_value": lowest, "max_value": highest}

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return dict(self._fields)


class STLVmFlowVarRepeatableRandom(Instruction):
    """A random variable that repeats after ``limit`` values; the same ``seed`` gives the same values.

    ``split_to_cores`` and ``next_var`` are as those of ``STLVmFlowVar``.
    """

    def __init__(
        self,
        name: str,
        size: int = 4,
        limit: int = 100,
        seed: int | None = None,
        min_value: Value | None = 0,
        max_value: Value | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        self.name = _name(name)
        self.declares = {self.name: _size(name, size)}
        self.next_var = next_var
        lowest = _value(name, "min_value", 0 if min_value is None else min_value, size)
        highest = _value(name, "max_value", (1 << 8 * size) - 1 if max_value is None else max_value, size)
        if lowest > highest:
            raise STLPacketError(f"variable '{name}': max_value {highest} is lower than min_value {lowest}")
        if limit < 1:
            raise STLPacketError(f"variable '{name}': limit is {limit}, give 1 or more")
        self._fields = {
            "type": "flow_var_rand_limit",
            "name": name,
            "size": size,
            "limit": limit,
            "seed": random.randint(1, 32_000) if seed is None else seed,
            "min_value": lowest,
            "max_value": highest,
            "split_to_cores": split_to_cores,
            "next_var": next_var,
        }

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return dict(self._fields)


class STLVmTupleGen(Instruction):
    """Client addresses and ports: gives the variables name.ip (4 bytes) and name.port (2 bytes)."""

    #: For ``flags``: ports are not limited to the range.
    FLOW_OVER_LIMIT = 1

    def __init__(
        self,
        name: str,
        ip_min: Value = "0.0.0.1",
        ip_max: Value = "0.0.0.10",
        port_min: int = 1025,
        port_max: int = 65535,
        limit_flows: int = 100_000,
        flags: int = 0,
    ) -> None:
        self.name = _name(name)
        self.declares = {f"{name}.{part}": size for part, size in _TUPLE_FIELDS.items()}
        self._fields: dict[str, Any] = {
            "type": "tuple_flow_var",
            "name": name,
            "ip_min": _value(name, "ip_min", ip_min, 4),
            "ip_max": _value(name, "ip_max", ip_max, 4),
            "port_min": _value(name, "port_min", port_min, 2),
            "port_max": _value(name, "port_max", port_max, 2),
            "limit_flows": limit_flows,
            "flags": flags,
        }
        for part in ("ip", "port"):
            if self._fields[f"{part}_min"] > self._fields[f"{part}_max"]:
                raise STLPacketError(f"tuple '{name}': {part}_max is lower than {part}_min")

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return dict(self._fields)


class STLVmWrFlowVar(Instruction):
    """Write a variable plus ``add_val`` at ``pkt_offset`` plus ``offset_fixup`` bytes."""

    def __init__(
        self, fv_name: str, pkt_offset: Offset, offset_fixup: int = 0, add_val: int = 0, is_big: bool = True
    ) -> None:
        self.reads = _name(fv_name)
        self._pkt_offset = _offset(pkt_offset)
        self.places = (self._pkt_offset,)
        self._offset_fixup = offset_fixup
        self._add_value = add_val
        self._is_big = is_big

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return {
            "type": "write_flow_var",
            "name": self.reads,
            "pkt_offset": layers.offset(self._pkt_offset) + self._offset_fixup,
            "add_value": self._add_value,
            "is_big_endian": self._is_big,
        }


class STLVmWrMaskFlowVar(Instruction):
    """Write the bits of ``mask``: (variable + ``add_value``) shifted left by ``shift`` bits."""

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_value: int = 0,
        offset_fixup: int = 0,
        is_big: bool = True,
    ) -> None:
        self.reads = _name(fv_name)
        if pkt_cast_size not in (1, 2, 4):
            raise STLPacketError(
                f"variable '{fv_name}': pkt_cast_size is {pkt_cast_size}, give 1, 2 or 4 bytes"
            )
        self.cast_size = pkt_cast_size
        self._pkt_offset = _offset(pkt_offset)
        self.places = (self._pkt_offset,)
        self._offset_fixup = offset_fixup
        self._fields = {"mask": mask, "shift": shift, "add_value": add_value, "is_big_endian": is_big}

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return {
            "type": "write_mask_flow_var",
            "name": self.reads,
            "pkt_offset": layers.offset(self._pkt_offset) + self._offset_fixup,
            "pkt_cast_size": self.cast_size,
            **self._fields,
        }


class STLVmFixIpv4(Instruction):
    """Compute the IPv4 header checksum again; ``offset`` is a header: "IP", "IP:1", or bytes."""

    def __init__(self, offset: Offset) -> None:
        self._offset = _offset(offset)
        self.places = (self._offset,)

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return {"type": "fix_checksum_ipv4", "pkt_offset": layers.header(self._offset)}


class STLVmFixChecksumHw(Instruction):
    """Have the checksums of IPv4 and TCP or UDP computed, by hardware where the port can."""

    L4_TYPE_UDP = 11
    L4_TYPE_TCP = 13
    L4_TYPE_IP = 17

    def __init__(self, l3_offset: Offset, l4_offset: Offset, l4_type: int) -> None:
        kinds = (self.L4_TYPE_UDP, self.L4_TYPE_TCP, self.L4_TYPE_IP)
        if l4_type not in kinds:
            raise STLPacketError(f"l4_type is {l4_type}, give 11 (UDP), 13 (TCP) or 17 (only IP)")
        self._l3_offset = _offset(l3_offset)
        self._l4_offset = _offset(l4_offset)
        self.places = (self._l3_offset, self._l4_offset)
        self._l4_type = l4_type

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        lengths = _lengths(layers, self._l3_offset, self._l4_offset)
        return {"type": "fix_checksum_hw", **lengths, "l4_type": self._l4_type}


class STLVmFixIcmpv6(Instruction):
    """Compute the ICMPv6 checksum again."""

    def __init__(self, l3_offset: Offset, l4_offset: Offset) -> None:
        self._l3_offset = _offset(l3_offset)
        self._l4_offset = _offset(l4_offset)
        self.places = (self._l3_offset, self._l4_offset)

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return {"type": "fix_checksum_icmpv6", **_lengths(layers, self._l3_offset, self._l4_offset)}


class STLVmTrimPktSize(Instruction):
    """Give the packet the length that a 2-byte variable has, in bytes without FCS."""

    def __init__(self, fv_name: str) -> None:
        self.reads = _name(fv_name)

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return {"type": "trim_pkt_size", "name": self.reads}


class RawInstruction(Instruction):
    """An instruction in the words of the protocol, as read from a file or from a server."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        kind, name = fields.get("type"), str(fields.get("name"))
        if kind in ("flow_var", "flow_var_rand_limit"):
            self.declares = {name: int(fields.get("size", 4))}
            self.next_var = fields.get("next_var")
        elif kind == "tuple_flow_var":
            self.declares = {f"{name}.{part}": size for part, size in _TUPLE_FIELDS.items()}
        elif "name" in fields:
            self.reads = name

    def to_json(self, layers: Layers) -> dict[str, Any]:
        """The instruction of the protocol."""
        return dict(self._fields)


def _name(name: str) -> str:
    if not isinstance(name, str):
        raise STLTypeError("name", type(name), str)
    return name


def _size(name: str, size: int) -> int:
    if size not in _SIZES:
        raise STLPacketError(f"variable '{name}': size is {size!r}, give 1, 2, 4 or 8 bytes")
    return size


def _offset(offset: Offset) -> Offset:
    if isinstance(offset, bool) or not isinstance(offset, (int, str)):
        raise STLTypeError("pkt_offset", type(offset), (int, str))
    return offset


def _value(name: str, field: str, value: Value, size: int) -> int:
    if isinstance(value, str):
        try:
            number = int(ipaddress.IPv4Address(value))
        except ValueError as error:
            raise STLPacketError(
                f"variable '{name}': {field} is '{value}', give a number or an IPv4 address"
            ) from error
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise STLTypeError(field, type(value), (int, str))
    if not 0 <= number < 1 << 8 * size:
        raise STLPacketError(
            f"variable '{name}': {field} {number} does not fit into {size} bytes, "
            f"give 0 to {(1 << 8 * size) - 1} or a larger size"
        )
    return number


def _lengths(layers: Layers, l3_offset: Offset, l4_offset: Offset) -> dict[str, int]:
    l2_bytes = layers.header(l3_offset)
    l3_bytes = layers.header(l4_offset) - l2_bytes
    if l2_bytes < 14 or l3_bytes <= 0:
        raise STLPacketError(
            f"l3_offset {l3_offset!r} and l4_offset {l4_offset!r}: "
            f"the IP header must begin at byte 14 or later, and the next header after it"
        )
    return {"l2_len": l2_bytes, "l3_len": l3_bytes}
