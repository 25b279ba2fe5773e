"""Which packets are the run's own: a packet group for each stream, so that packets of others count nowhere.

A server knows the packets of a group by a sign in them: the identification of IPv4, the flow label of IPv6.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.report._streams import StreamCounters, StreamLatency

if TYPE_CHECKING:
    from allosaur import STLClient, STLStream

_PGIDS = 1 << 32
_VLAN_TYPES = (0x8100, 0x88A8)
_VLAN_TAGS_MAX = 2
_IPV4, _IPV6 = 0x0800, 0x86DD
_IPV4_BYTES, _IPV6_BYTES = 20, 40
_FRAGMENT_HEADER = 44
"""The next header of IPv6 that says that this is a fragment (RFC 8200, section 4.5)."""
_UNWANTED = "--port-counters leaves packets as they are"
_NO_PLACE = (
    "a packet group needs an IPv4 or IPv6 packet that is no fragment, and whose identification or flow label "
    "the field engine leaves alone"
)
_NAMES_KEPT = 16
_PERCENTILES = ("p50", "p90", "p99", "p99_9")


@dataclass(frozen=True)
class Row:
    """The streams of one packet group that one port sends."""

    port: int
    pg_id: int
    names: Sequence[str]
    senders: Sequence[int]
    """All ports that send packets of the group: a profile may have given several the same one."""
    to_many: bool = False
    """The packets go to a multicast or broadcast address: each port may receive each of them once."""


@dataclass(frozen=True)
class Grouping:
    """How the streams of a run are counted."""

    rows: Sequence[Row] = ()
    ungrouped: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """By port: the streams without a group, for which the ports' counters must do."""
    reasons: Sequence[str] = ()
    """Why they have none."""

    @staticmethod
    def none(ports: Sequence[int], reason: str) -> Grouping:
        """Return the grouping of packets of which nobody knows whose they are."""
        return Grouping((), {port: ["all packets"] for port in ports}, [reason])


def assign(client: STLClient, streams: Mapping[int, Sequence[STLStream]], wanted: bool = True) -> Grouping:
    """Give a packet group to each stream that has none and can have one; streams keep the group they have.

    With fewer groups on the server than streams, the streams of a port share one. Groups of others stay
    theirs. With `wanted` false no packet is changed.
    """
    active = client.get_active_pgids()
    foreign = {*active["flow_stats"], *active["latency"]}
    room = _room(client, list(streams)) - len(active["flow_stats"]) if wanted else 0
    found = [
        _Member(port, stream, str(stream.get_name() or f"stream {number}"))
        for port, of_port in streams.items()
        for number, stream in enumerate(of_port, 1)
        if not stream.is_dummy()
    ]
    refused: list[tuple[_Member, str]] = []
    grouped: list[_Member] = []
    candidates: list[_Member] = []
    for one in found:
        pg_id = one.stream.get_pg_id()
        if pg_id is None:
            reason = _cannot(one.stream, room) if wanted else _UNWANTED
        elif pg_id in foreign:
            reason = f"packet group {pg_id} is also that of streams of others"
        else:
            reason = _NO_PLACE if _is_overwritten(one.stream) else None
        if reason is not None:
            refused.append((one, reason))
        else:
            (candidates if pg_id is None else grouped).append(one)
    # Groups for latency have other places than those that only count.
    own = {one.stream.get_pg_id(): one.stream.get_flow_stats_type() for one in grouped}
    room -= sum(kind != "latency" for kind in own.values())
    if _share_out(candidates, room, {*foreign, *own}):
        grouped += candidates
    else:
        refused += [(one, "the server has no packet group left") for one in candidates]
    ungrouped: dict[int, list[str]] = {}
    for one, _ in refused:
        ungrouped.setdefault(one.port, []).append(one.name)
    reasons = dict.fromkeys(reason for _, reason in refused)
    return Grouping(_rows(grouped, [one.name for one in found]), ungrouped, list(reasons))


def stream_counters(grouping: Grouping, stats: Mapping[Any, Any]) -> list[StreamCounters]:
    """Return what the groups counted; `stats` is what `STLClient.get_stats()` gives."""
    groups, measured = stats.get("flow_stats") or {}, stats.get("latency") or {}
    return [
        _row_counters(row, groups[row.pg_id], measured.get(row.pg_id))
        for row in grouping.rows
        if row.pg_id in groups
    ]


def lost_and_duplicates(
    sent: int, by_port: Mapping[int, int], to_many: bool = False, known_duplicates: int = 0
) -> tuple[int, int]:
    """Return how many packets are lost, and how many came that were not sent so often.

    `known_duplicates` are those that sequence numbers tell of. Of packets to many receivers each port may
    have all.
    """
    if to_many:
        received = max(by_port.values(), default=0)
        surplus = sum(max(count - sent, 0) for count in by_port.values())
    else:
        received = sum(by_port.values())
        surplus = max(received - sent, 0)
    # A packet that came twice is no other one: it does not make up for a lost one.
    return max(sent - (received - known_duplicates), 0), max(surplus, known_duplicates)


def can_carry_sign(packet: bytes, instructions: Sequence[Mapping[str, Any]] = ()) -> bool:
    """Whether a packet has room for the sign of a group that nothing writes over.

    Fragments are left alone: their identification says which belong together.
    """
    found = _sign_place(packet)
    if found is None:
        return False
    link_end, sign = found
    sizes = _variable_sizes(instructions)
    for line in instructions:
        start = line.get("pkt_offset")
        kind = line.get("type")
        if not isinstance(start, int) or kind not in ("write_flow_var", "write_mask_flow_var"):
            continue
        default = sizes.get(str(line.get("name")), 8)
        end = start + int(line.get("pkt_cast_size", default))
        # The sign itself, and what says that this is IP: its type, and its version.
        if any(start < stop and begin < end for begin, stop in ((sign, sign + 2), (12, link_end + 1))):
            return False
    return True


@dataclass(frozen=True)
class _Member:
    """A stream that sends something."""

    port: int
    stream: STLStream
    name: str


def _share_out(candidates: Sequence[_Member], room: int, taken: set[Any]) -> bool:
    """Give the candidates groups: one each, or one a port; tell whether there are as many."""
    from allosaur import STLFlowStats

    ports = dict.fromkeys(one.port for one in candidates)
    own_each = len(candidates) <= room
    if not own_each and len(ports) > room:
        return False
    numbers = _fresh_numbers(taken)
    of_ports = {} if own_each else {port: next(numbers) for port in ports}
    for one in candidates:
        one.stream.flow_stats = STLFlowStats(next(numbers) if own_each else of_ports[one.port])
    return True


def _rows(members: Sequence[_Member], order: Sequence[str]) -> list[Row]:
    """Return a row for each group of each port, in the order of the streams' names."""
    by_group: dict[tuple[int, Any], list[_Member]] = {}
    for one in members:
        by_group.setdefault((one.port, one.stream.get_pg_id()), []).append(one)
    place = {name: number for number, name in reversed([*enumerate(order)])}
    in_order = sorted(by_group.items(), key=lambda one: (one[0][0], place[one[1][0].name]))
    rows = []
    for (port, pg_id), of_row in in_order:
        names = list(dict.fromkeys(one.name for one in of_row))
        if len(names) > _NAMES_KEPT:
            names = [f"{len(names)} streams"]
        senders = [other for other, number in by_group if number == pg_id]
        rows.append(Row(port, pg_id, names, senders, any(_is_to_many(one.stream) for one in of_row)))
    return rows


def _room(client: STLClient, ports: Sequence[int]) -> int:
    """Return how many groups the ports of the server have."""
    infos = [client.get_port(port).info.get("rx") or {} for port in ports]
    if not infos or any("flow_stats" not in (info.get("caps") or ()) for info in infos):
        return 0
    return min(int(info.get("counters") or 0) for info in infos)


def _cannot(stream: STLStream, room: int) -> str | None:
    """Return why a stream can have no group, or `None`."""
    if room <= 0:
        return "the server has no packet group left, or counts none"
    fields = stream.to_json()
    packet = base64.b64decode(fields["packet"]["binary"])
    return None if can_carry_sign(packet, fields["vm"]["instructions"]) else _NO_PLACE


def _is_overwritten(stream: STLStream) -> bool:
    """Whether the field engine writes over the sign of a stream that has a group by its profile."""
    fields = stream.to_json()
    packet, instructions = base64.b64decode(fields["packet"]["binary"]), fields["vm"]["instructions"]
    is_inner = bool(fields["flow_stats"].get("vxlan"))
    return not is_inner and can_carry_sign(packet) and not can_carry_sign(packet, instructions)


def _fresh_numbers(taken: set[int]) -> Iterator[int]:
    """Return numbers for groups: by chance, as two runs may look at the same time for free ones."""
    base = secrets.randbelow(_PGIDS)
    for number in range(_PGIDS):
        pg_id = (base + number) % _PGIDS
        if pg_id not in taken:
            yield pg_id


def _is_to_many(stream: STLStream) -> bool:
    return stream.is_explicit_dst_mac() and bool(stream.get_pkt()[0] & 1)


def _sign_place(packet: bytes) -> tuple[int, int] | None:
    """Return where the IP header begins, and where its sign is; `None` without a place for one."""
    at = 12
    for _ in range(_VLAN_TAGS_MAX):
        if _u16(packet, at) not in _VLAN_TYPES:
            break
        at += 4
    kind, header = _u16(packet, at), at + 2
    if kind == _IPV4 and len(packet) >= header + _IPV4_BYTES:
        header_bytes = 4 * (packet[header] & 0xF)
        is_whole = packet[header] >> 4 == 4 and _IPV4_BYTES <= header_bytes <= len(packet) - header
        is_fragment = _u16(packet, header + 6) & 0x3FFF
        is_whole = is_whole and _u16(packet, header + 2) >= header_bytes
        return (header, header + 4) if is_whole and not is_fragment else None
    if kind == _IPV6 and len(packet) >= header + _IPV6_BYTES:
        is_whole = packet[header] >> 4 == 6 and packet[header + 6] != _FRAGMENT_HEADER
        return (header, header + 2) if is_whole else None
    return None


def _u16(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 2], "big")


def _variable_sizes(instructions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for line in instructions:
        name = str(line.get("name"))
        if line.get("type") == "tuple_flow_var":
            sizes |= {f"{name}.ip": 4, f"{name}.port": 2}
        elif "size" in line:
            sizes[name] = int(line["size"])
    return sizes


def _row_counters(row: Row, counted: Mapping[str, Any], measured: Mapping[str, Any] | None) -> StreamCounters:
    errors = (measured or {}).get("err_cntrs") or {}
    sent = int(counted["tx_pkts"].get(row.port, 0))
    rx_packets, rx_bytes = (_arrived(row, counted[name]) for name in ("rx_pkts", "rx_bytes"))
    lost, duplicates = lost_and_duplicates(sent, rx_packets, row.to_many, int(errors.get("dup", 0)))
    missed = counted.get("missed_pkts")
    return StreamCounters(
        port=row.port,
        names=row.names,
        pg_id=row.pg_id,
        tx_packets=sent,
        tx_bytes=int(counted["tx_bytes"].get(row.port, 0)),
        rx_packets=sum(rx_packets.values()),
        rx_bytes=sum(rx_bytes.values()),
        rx_by_port=rx_packets,
        lost_packets=lost,
        duplicate_packets=duplicates,
        missed_packets=None if missed is None else int(missed.get(row.port, 0)),
        out_of_order_packets=int(errors["out_of_order"]) if "out_of_order" in errors else None,
        impossible_times=int(errors.get("impossible_times", 0)) if errors else None,
        latency=_latency((measured or {}).get("latency") or {}),
    )


def _arrived(row: Row, by_port: Mapping[Any, Any]) -> dict[int, int]:
    """Return what arrived of a row, by port.

    Where several ports send packets of one group, nobody knows whose a packet is: those that a port
    received count as sent by the port at the other end of its wire.
    """
    counts = {port: int(count) for port, count in by_port.items() if isinstance(port, int) and count}
    if len(row.senders) > 1:
        return {port: count for port, count in counts.items() if port == row.port ^ 1}
    return counts


def _latency(times: Mapping[str, Any]) -> StreamLatency | None:
    """Return the times; `None` when nothing was measured."""
    if not times.get("histogram") and not times.get("total_max"):
        return None
    percentiles = {f"{name}_us": float(times[name]) for name in _PERCENTILES if name in times}
    return StreamLatency(
        # A server of TRex tells whole microseconds.
        min_us=float(times.get("min", times.get("total_min", 0))),
        average_us=float(times.get("average", 0)),
        max_us=float(times.get("max", times.get("total_max", 0))),
        jitter_us=float(times.get("jitter", 0)),
        **percentiles,
    )
