"""A stream: a packet, how it is sent, when it starts, and what comes after it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .._errors import STLArgumentError, STLError, STLTypeError
from ._modes import STLTXCont, STLTXMode, mode_from_json
from ._packet import STLPktBuilder

#: For ``mac_dst_override_mode``: the destination MAC is the port's, the packet's, or resolved.
STLStreamDstMAC_CFG_FILE = 0
STLStreamDstMAC_PKT = 1
STLStreamDstMAC_ARP = 2

_FLAG_SOURCE_MAC = 1
_FLAG_DESTINATION_SHIFT = 1
_FLAG_DUMMY = 8


#: Streams of captures are numbered; the protocol has both, and tells 1 from "1".
StreamName = str | int


class STLFlowStats:
    """Count what is sent and received of a stream, under the number ``pg_id``."""

    rule_type = "stats"

    def __init__(self, pg_id: int, vxlan: bool = False, ieee_1588: bool = False) -> None:
        if isinstance(pg_id, bool) or not isinstance(pg_id, int) or not 0 <= pg_id < 1 << 32:
            raise STLArgumentError("pg_id", pg_id, "a number from 0 to 4294967295")
        self.fields: dict[str, Any] = {
            "enabled": True,
            "stream_id": pg_id,
            "vxlan": vxlan,
            "ieee_1588": ieee_1588,
            "rule_type": self.rule_type,
        }

    def to_json(self) -> dict[str, Any]:
        """The ``flow_stats`` object of the protocol."""
        return dict(self.fields)


class STLFlowLatencyStats(STLFlowStats):
    """Count a stream, and measure the latency, jitter, loss and order of its packets."""

    rule_type = "latency"


class STLStream:
    """One stream of a profile.

    ``isg`` is the delay before the first packet in microseconds; the multiplier leaves it as it is, unless
    ``scale_isg``: then it grows shorter as gaps between packets do, and a chain of such streams has its
    average rate, as those of a capture. ``next`` is the name of the
    stream that starts after this one's last packet; ``action_count`` limits how often a loop of
    streams goes round (0 is forever). ``self_start=False`` waits for another stream's ``next``.
    ``random_seed`` makes the field engine's random values the same in every run.
    MAC addresses that the packet leaves open are the port's; ``mac_src_override_by_pkt`` and
    ``mac_dst_override_mode`` say otherwise. A ``dummy_stream`` sends nothing and only takes time.

    Raises ``STLError``.
    """

    def __init__(
        self,
        name: StreamName | None = None,
        packet: STLPktBuilder | None = None,
        mode: STLTXMode | None = None,
        enabled: bool = True,
        self_start: bool = True,
        isg: float = 0.0,
        flow_stats: STLFlowStats | None = None,
        next: StreamName | None = None,
        stream_id: int | None = None,
        action_count: int = 0,
        random_seed: int = 0,
        mac_src_override_by_pkt: bool | int | None = None,
        mac_dst_override_mode: int | None = None,
        dummy_stream: bool = False,
        start_paused: bool = False,
        core_id: int = -1,
        scale_isg: bool = False,
    ) -> None:
        mode = STLTXCont(pps=1) if mode is None else mode
        _check_types(name, packet, mode, flow_stats, next)
        label = f"stream '{name}'" if name else "the stream"
        for field, value in (
            ("enabled", enabled),
            ("self_start", self_start),
            ("start_paused", start_paused),
            ("scale_isg", scale_isg),
        ):
            if not isinstance(value, bool):
                raise STLTypeError(field, type(value), bool)
        if packet is None and not dummy_stream:
            raise STLError(f"{label} has no packet: give packet=STLPktBuilder(pkt=...)")
        if isinstance(isg, bool) or not isinstance(isg, (int, float)) or not 0 <= isg < float("inf"):
            raise STLError(f"{label}: isg is {isg!r}, give the delay in microseconds, zero or more")
        if next is not None and isinstance(mode, STLTXCont):
            raise STLError(
                f"{label} is continuous and never ends, so next='{next}' cannot follow: "
                f"leave next out, or use STLTXSingleBurst or STLTXMultiBurst"
            )
        self.name = name
        self.next = next
        self.id = stream_id
        self.packet = packet or STLPktBuilder(pkt_buffer=bytes(60))
        self.mode = mode
        self.flow_stats = flow_stats
        self._fields: dict[str, Any] = {
            "flags": self._flags(mac_src_override_by_pkt, mac_dst_override_mode, dummy_stream),
            "action_count": _number(label, "action_count", action_count),
            "enabled": enabled,
            "self_start": self_start,
            "start_paused": start_paused,
            "isg": isg,
            "core_id": core_id,
        }
        if scale_isg:
            # Only our own server has it; for one of TRex's, streams look as they did.
            self._fields["scale_isg"] = True
        if random_seed:
            self._fields["random_seed"] = _number(label, "random_seed", random_seed)

    def to_json(self) -> dict[str, Any]:
        """The ``stream`` object of the protocol, without the number of the next stream."""
        fields = dict(self._fields)
        fields["mode"] = self.mode.to_json()
        fields |= self.packet.to_json()
        fields["flow_stats"] = self.flow_stats.to_json() if self.flow_stats else {"enabled": False}
        if self.name:
            fields["name"] = self.name
        if self.next:
            fields["next"] = self.next
        return fields

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLStream:
        """A stream from the ``stream`` object of the protocol. Raises ``STLError``."""
        fields = json_data
        missing = [name for name in ("mode", "packet") if not isinstance(fields.get(name), dict)]
        if missing:
            raise STLError(
                f"stream '{fields.get('name', '?')}': field '{missing[0]}' is missing or not an object"
            )
        flags = int(fields.get("flags", 0))
        return STLStream(
            name=fields.get("name"),
            packet=STLPktBuilder.from_json(fields),
            mode=mode_from_json(fields["mode"]),
            enabled=fields.get("enabled", True),
            self_start=fields.get("self_start", True),
            isg=fields.get("isg", 0.0),
            flow_stats=_flow_stats_from_json(fields.get("flow_stats") or {}),
            next=fields.get("next"),
            action_count=fields.get("action_count", 0),
            random_seed=fields.get("random_seed", 0),
            mac_src_override_by_pkt=flags & _FLAG_SOURCE_MAC,
            mac_dst_override_mode=flags >> _FLAG_DESTINATION_SHIFT & 3,
            dummy_stream=bool(flags & _FLAG_DUMMY),
            start_paused=fields.get("start_paused", False),
            core_id=fields.get("core_id", -1),
            scale_isg=fields.get("scale_isg", False),
        )

    def clone(self) -> STLStream:
        """A copy without a number."""
        twin = copy.deepcopy(self)
        twin.id = None
        return twin

    def get_id(self) -> int | None:
        """The number that the stream has on its port; None before it was added."""
        return self.id

    def get_name(self) -> StreamName | None:
        """The name, or None."""
        return self.name

    def get_next(self) -> StreamName | None:
        """The name of the stream that follows, or None."""
        return self.next

    def get_mode(self) -> str:
        """The mode in words."""
        return str(self.mode)

    def get_pkt(self) -> bytes:
        """The bytes of the packet without FCS."""
        return bytes(self.packet.dump_pkt(encode=False)["binary"])

    def get_pkt_len(self, count_crc: bool = True) -> int:
        """Bytes of the packet, with FCS unless told otherwise."""
        return self.packet.get_pkt_len() + (4 if count_crc else 0)

    def get_rate(self) -> str:
        """The rate in words."""
        return f"{self.mode.rate['value']} {self.mode.rate['type']}"

    def get_pg_id(self) -> int | None:
        """The number that the stream is counted under, or None."""
        return self.flow_stats.fields["stream_id"] if self.flow_stats else None

    def has_flow_stats(self) -> bool:
        """Whether the stream is counted for itself."""
        return self.flow_stats is not None

    def get_flow_stats_type(self) -> str | None:
        """What is counted: "stats", "latency", or None."""
        return self.flow_stats.rule_type if self.flow_stats else None

    def has_custom_mac_addr(self) -> bool:
        """Whether a MAC address comes from the packet and not from the port."""
        flags = self._fields["flags"]
        return bool(flags & _FLAG_SOURCE_MAC) or self.is_explicit_dst_mac()

    def is_explicit_dst_mac(self) -> bool:
        """Whether the destination MAC comes from the packet."""
        return bool(self._fields["flags"] >> _FLAG_DESTINATION_SHIFT & 3 == STLStreamDstMAC_PKT)

    def is_dummy(self) -> bool:
        """Whether the stream only takes time."""
        return bool(self._fields["flags"] & _FLAG_DUMMY)

    def _flags(self, source: bool | int | None, destination: int | None, dummy: bool) -> int:
        keep_source = not self.packet.is_default_src_mac() if source is None else bool(source)
        if destination is None:
            destination = (
                STLStreamDstMAC_CFG_FILE if self.packet.is_default_dst_mac() else STLStreamDstMAC_PKT
            )
        if destination not in (STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT, STLStreamDstMAC_ARP):
            raise STLArgumentError(
                "mac_dst_override_mode", destination, "0 (port), 1 (packet) or 2 (resolved)"
            )
        return int(keep_source) | int(destination) << _FLAG_DESTINATION_SHIFT | (_FLAG_DUMMY if dummy else 0)


def link(
    streams: list[STLStream], ids: list[int], existing: Mapping[StreamName, int] | None = None
) -> list[dict[str, Any]]:
    """The JSON of streams that have numbers, each with the number of the stream that follows.

    Raises ``STLError`` when a name is used twice or ``next`` names no stream.
    """
    numbers = dict(existing or {})
    fresh: set[StreamName] = set()
    for stream, number in zip(streams, ids, strict=True):
        if not stream.name:
            continue
        if stream.name in fresh:
            raise STLError(f"two streams have the name {stream.name!r}: give each its own")
        fresh.add(stream.name)
        numbers[stream.name] = number
    linked = []
    for stream in streams:
        if stream.next and stream.next not in numbers:
            known = ", ".join(sorted(map(str, numbers))) or "none has a name"
            raise STLError(
                f"stream '{stream.name}': next={stream.next!r} is not a stream's name, known are: {known}"
            )
        next_id = numbers[stream.next] if stream.next else -1
        linked.append({**stream.to_json(), "next_stream_id": next_id})
    return linked


def _check_types(name: object, packet: object, mode: object, flow_stats: object, next: object) -> None:
    for argument, value, kind in (
        ("name", name, (str, int)),
        ("packet", packet, STLPktBuilder),
        ("mode", mode, STLTXMode),
        ("flow_stats", flow_stats, STLFlowStats),
        ("next", next, (str, int)),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise STLTypeError(argument, type(value), kind)


def _number(label: str, field: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise STLError(f"{label}: {field} is {value!r}, give a whole number from 0 to 4294967295")
    return value


def _flow_stats_from_json(fields: dict[str, Any]) -> STLFlowStats | None:
    if not fields.get("enabled"):
        return None
    kind = STLFlowLatencyStats if fields.get("rule_type") == "latency" else STLFlowStats
    return kind(int(fields.get("stream_id", 0)), bool(fields.get("vxlan")), bool(fields.get("ieee_1588")))
