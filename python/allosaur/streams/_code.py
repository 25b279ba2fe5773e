"""Streams as Python code: a file that ``STLProfile.load`` turns into the same streams.

A packet is written as Scapy layers where they give the same bytes, else as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._errors import STLProfileError
from ._modes import STLTXMode
from ._packet import STLPktBuilder

if TYPE_CHECKING:
    from ._stream import STLFlowStats, STLStream

_HEAD = '''"""{title}"""

from allosaur.api import *


class Profile:
    """{count}."""

    def get_streams(self, **kwargs):
        """Return the streams."""
        streams = []
'''
_TAIL = """        return streams


def register():
    return Profile()
"""
_INDENT = " " * 8
_BYTES_PER_LINE = 32
#: From this length on a payload of one repeated byte is written as a product.
_REPEATED_MIN = 4

_MODES = {"continuous": "STLTXCont", "single_burst": "STLTXSingleBurst", "multi_burst": "STLTXMultiBurst"}
#: Of each instruction: its class, and the argument of each field whose name is another.
_INSTRUCTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "flow_var": ("STLVmFlowVar", {}),
    "flow_var_rand_limit": ("STLVmFlowVarRepeatableRandom", {}),
    "tuple_flow_var": ("STLVmTupleGen", {}),
    "write_flow_var": (
        "STLVmWrFlowVar",
        {"name": "fv_name", "add_value": "add_val", "is_big_endian": "is_big"},
    ),
    "write_mask_flow_var": ("STLVmWrMaskFlowVar", {"name": "fv_name", "is_big_endian": "is_big"}),
    "fix_checksum_ipv4": ("STLVmFixIpv4", {"pkt_offset": "offset"}),
    "fix_checksum_hw": ("STLVmFixChecksumHw", {}),
    "fix_checksum_icmpv6": ("STLVmFixIcmpv6", {}),
    "trim_pkt_size": ("STLVmTrimPktSize", {"name": "fv_name"}),
}
#: The fields of a stream that are arguments of the same name, and what they are when left out.
_FIELDS = {"enabled": True, "self_start": True, "start_paused": False, "isg": 0.0, "core_id": -1}


def profile_code(streams: Iterable[STLStream], title: str = "Written by dump_to_code().") -> str:
    """The text of a profile file. Raises ``STLProfileError`` when a stream has no form in Python."""
    streams = list(streams)
    parts = [f"{_INDENT}{line}\n" if line else "\n" for stream in streams for line in stream_code(stream)]
    count = "1 stream" if len(streams) == 1 else f"{len(streams)} streams"
    return _HEAD.format(title=title, count=count) + "".join(parts) + _TAIL


def stream_code(stream: STLStream) -> list[str]:
    """The lines that append one stream to ``streams``."""
    fields = stream.to_json()
    lines = _packet_lines(stream.packet)
    arguments = [f"packet=STLPktBuilder({lines.pop()})", f"mode={_mode(stream.mode)}"]
    for name in ("name", "next"):
        if fields.get(name) is not None:
            arguments.append(f"{name}={fields[name]!r}")
    arguments += [f"{name}={fields[name]!r}" for name, usual in _FIELDS.items() if fields[name] != usual]
    for name in ("action_count", "random_seed", "scale_isg"):
        if fields.get(name):
            arguments.append(f"{name}={fields[name]!r}")
    flags = fields["flags"]
    arguments += [f"mac_src_override_by_pkt={bool(flags & 1)}", f"mac_dst_override_mode={flags >> 1 & 3}"]
    if stream.is_dummy():
        arguments.append("dummy_stream=True")
    if stream.flow_stats is not None:
        arguments.append(f"flow_stats={_flow_stats(stream.flow_stats)}")
    body = [f"        {argument}," for argument in arguments]
    return [*lines, "streams.append(", "    STLStream(", *body, "    )", ")", ""]


def _packet_lines(builder: STLPktBuilder) -> list[str]:
    """The lines that make ``packet`` and ``program``; the last has the builder's arguments."""
    data = bytes(builder.dump_pkt(encode=False)["binary"])
    layers = _layers(builder, data)
    if layers is not None:
        lines = ["packet = (", *(f"    {'/ ' if at else ''}{layer}" for at, layer in enumerate(layers)), ")"]
        arguments = "pkt=packet, build_raw=True"
    else:
        chunks = [data[at : at + _BYTES_PER_LINE] for at in range(0, len(data), _BYTES_PER_LINE)]
        lines = ["packet = bytes.fromhex(", *(f"    '{chunk.hex()}'" for chunk in chunks), ")"]
        arguments = "pkt_buffer=packet, remove_fcs=False"
    program = builder.vm_json()
    if program["instructions"] or program.get("cache"):
        instructions = [f"        {_instruction(dict(fields))}," for fields in program["instructions"]]
        cache = f"    cache_size={program['cache']}," if program.get("cache") else ""
        lines += ["program = STLScVmRaw(", "    [", *instructions, "    ],", *([cache] if cache else []), ")"]
        arguments += ", vm=program"
    return [*lines, arguments]


def _layers(builder: STLPktBuilder, data: bytes) -> list[str] | None:
    """The packet as Scapy layers, one a line; None when they do not give the same bytes again."""
    # Scapy is loaded here, when a packet is written.
    from ..packets._scapy import Ether
    from ..packets._scapy_star import scapy_star

    try:
        packet: Any = Ether(data) if builder.pkt is None else builder.pkt.copy()
        layers = []
        while packet and type(packet).__name__ != "NoPayload":
            layer = packet.copy()
            layer.remove_payload()
            if builder.pkt is None:
                layer.hide_defaults()
            layers.append(_layer(layer))
            packet = packet.payload
        again = eval(" / ".join(layers), dict(scapy_star()))
        same = STLPktBuilder(pkt=again, build_raw=True).dump_pkt(encode=False)["binary"] == data
    except Exception:
        # Scapy knows thousands of fields; whatever it cannot write or read back is written as bytes.
        return None
    return layers if same else None


def _layer(layer: Any) -> str:
    load = layer.fields.get("load") if type(layer).__name__ == "Raw" else None
    if isinstance(load, bytes) and len(load) >= _REPEATED_MIN and len(set(load)) == 1:
        return f"Raw(load={load[:1]!r} * {len(load)})"
    return str(layer.command())


def _mode(mode: STLTXMode) -> str:
    fields = mode.to_json()
    rate = fields.pop("rate")
    arguments = {rate["type"]: rate["value"], **fields}
    return f"{_MODES[arguments.pop('type')]}({_keywords(arguments)})"


def _flow_stats(stats: STLFlowStats) -> str:
    fields = stats.to_json()
    more = {name: True for name in ("vxlan", "ieee_1588") if fields[name]}
    return f"{type(stats).__name__}({_keywords({'pg_id': fields['stream_id'], **more})})"


def _instruction(fields: dict[str, Any]) -> str:
    kind = fields.pop("type")
    if kind not in _INSTRUCTIONS:
        raise STLProfileError(f"the instruction '{kind}' has no form in Python: leave it out, or save JSON")
    name, arguments = _INSTRUCTIONS[kind]
    if "l2_len" in fields:
        l3_offset = fields.pop("l2_len")
        fields = {"l3_offset": l3_offset, "l4_offset": l3_offset + fields.pop("l3_len"), **fields}
    return f"{name}({_keywords({arguments.get(key, key): value for key, value in fields.items()})})"


def _keywords(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
