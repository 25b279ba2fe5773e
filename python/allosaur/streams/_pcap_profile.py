"""Profiles from captures: a chain of streams of one packet each, with the gaps of the capture."""

from __future__ import annotations

import itertools
import struct
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._errors import STLArgumentError, STLError, STLProfileError
from ..packets._capture_reader import (
    Frame,
    check_whole,
    early_packets,
    frames,
    no_frames,
    send_times,
    told_early,
)
from ._modes import STLTXSingleBurst
from ._packet import PACKET_BYTES_MAX, PACKET_BYTES_MIN, STLPktBuilder
from ._profile_warning import ProfileWarning
from ._stream import STLStream, STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT

#: A profile takes no more streams, and each packet is one.
PACKETS_MAX = 20_000
SPLIT_MODES = ("MAC", "IP")

_GAP_USEC_MIN = 0.001
#: Where a capture begins at once, both sides of a split wait so long for each other to start.
_SPLIT_START_USEC = 1000
#: The name of the stream that takes the time until the other side is done.
_REST = "delay_stream"


class CaptureTimeWarning(ProfileWarning):
    """Packets of a capture leave at other times than were recorded, since those go back."""


@dataclass(frozen=True)
class PcapOptions:
    """How a capture becomes streams; see ``STLProfile.load_pcap``. Raises ``STLArgumentError``."""

    ipg_usec: float | None = None
    speedup: float = 1.0
    loop_count: int = 1
    vm: Any = None
    packet_hook: Callable[[bytes], bytes] | None = None
    split_mode: str | None = None
    min_ipg_usec: float | None = None
    src_mac_pcap: bool = False
    dst_mac_pcap: bool = False

    def __post_init__(self) -> None:
        for name, value in (("ipg_usec", self.ipg_usec), ("min_ipg_usec", self.min_ipg_usec)):
            if value is not None and not (_is_number(value) and value >= _GAP_USEC_MIN):
                raise STLArgumentError(name, value, f"{_GAP_USEC_MIN} or more microseconds")
        if not (_is_number(self.speedup) and self.speedup > 0):
            raise STLArgumentError("speedup", self.speedup, "a factor above zero")
        if not isinstance(self.loop_count, int) or isinstance(self.loop_count, bool) or self.loop_count < 0:
            raise STLArgumentError("loop_count", self.loop_count, "how often to send, 0 is forever")
        if self.packet_hook is not None and not callable(self.packet_hook):
            raise STLArgumentError("packet_hook", self.packet_hook, "a function from bytes to bytes")
        if self.split_mode is not None and self.split_mode not in SPLIT_MODES:
            raise STLArgumentError("split_mode", self.split_mode, SPLIT_MODES)


def load_pcap(path: Path, options: PcapOptions) -> list[STLStream]:
    """All packets of a capture as one chain. Raises ``STLProfileError``."""
    found = _frames(path, options)
    return _chain(path, _packets(path, found, options), _gaps(found, options), options)


def load_pcap_split(path: Path, options: PcapOptions) -> tuple[list[STLStream], list[STLStream]]:
    """The two sides of a capture: that which sent first, and the other.

    Both take the same time, so that they stay together over many rounds. Raises ``STLProfileError``.
    """
    found = _frames(path, options)
    packets, gaps = _packets(path, found, options), _gaps(found, options)
    start = gaps[0] or _SPLIT_START_USEC
    times, now = [], start
    for gap in gaps:
        now += gap
        times.append(now)
    on_first = _sides(path, [frame.data for frame in found], options.split_mode)
    sides = []
    for side in (on_first[0], not on_first[0]):
        chosen = [at for at, is_first in enumerate(on_first) if is_first is side]
        if not chosen:
            raise STLProfileError(
                f"the capture {path} has packets of one direction only: load it without split_mode"
            )
        own_times = [times[at] for at in chosen]
        own_gaps = [later - earlier for earlier, later in zip([0, *own_times], own_times, strict=False)]
        sides.append(_chain(path, [packets[at] for at in chosen], own_gaps, options, now - own_times[-1]))
    return sides[0], sides[1]


def _frames(path: Path, options: PcapOptions) -> list[Frame]:
    """What was recorded. Raises ``STLProfileError``, also where packets lack bytes and nobody mends them."""
    found: list[Frame] = []
    try:
        for frame in frames(path):
            if len(found) == PACKETS_MAX:
                raise STLProfileError(
                    f"the capture {path} has more than {PACKETS_MAX} packets, and each becomes a stream: "
                    f"cut it, or have the server read it with push_remote()"
                )
            found.append(frame)
        if options.packet_hook is None:
            check_whole(path, found)
    except STLProfileError:
        raise
    except STLError as error:
        raise STLProfileError(str(error)) from error
    if not found:
        raise STLProfileError(str(no_frames(path)))
    early = early_packets(frame.time_ns for frame in found)
    if early and options.ipg_usec is None:
        warnings.warn(told_early(path, early), CaptureTimeWarning, stacklevel=2)
    return found


def _packets(path: Path, found: Sequence[Frame], options: PcapOptions) -> list[bytes]:
    """The packets to send."""
    return [_packet(path, number, frame.data, options) for number, frame in enumerate(found, 1)]


def _packet(path: Path, number: int, data: bytes, options: PcapOptions) -> bytes:
    if options.packet_hook is not None:
        data = options.packet_hook(data)
        if not isinstance(data, bytes):
            raise STLProfileError(
                f"the capture {path}, packet {number}: packet_hook gave {type(data).__name__}, "
                f"it must return bytes"
            )
    if not PACKET_BYTES_MIN <= len(data) <= PACKET_BYTES_MAX:
        raise STLProfileError(
            f"the capture {path}, packet {number} has {len(data)} bytes: "
            f"a packet has {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}, without FCS"
        )
    return data


def _gaps(found: Sequence[Frame], options: PcapOptions) -> list[float]:
    """Microseconds before each packet. One that seems earlier than one in front follows at once.

    A gap that is not computed has the type in which it was given, as TRex's client sends it.
    """
    least = options.min_ipg_usec or 0
    if options.ipg_usec is not None:
        return [max(options.ipg_usec / options.speedup, least)] * len(found)
    times = send_times(frame.time_ns for frame in found)
    recorded = [(later - earlier) / 1000 for earlier, later in itertools.pairwise(times)]
    return [least, *(float(max(gap / options.speedup, least)) for gap in recorded)]


def _chain(
    path: Path, packets: list[bytes], gaps: list[float], options: PcapOptions, rest_usec: float = 0.0
) -> list[STLStream]:
    """A ring of streams; the last, which leads back to the first, counts the rounds."""
    streams = []
    last = len(packets)
    for number, (data, gap) in enumerate(zip(packets, gaps, strict=True), 1):
        ends = number == last and not rest_usec
        try:
            streams.append(
                STLStream(
                    name=number,
                    packet=STLPktBuilder(pkt_buffer=data, vm=options.vm, remove_fcs=options.vm is not None),
                    mode=STLTXSingleBurst(total_pkts=1, percentage=100),
                    self_start=number == 1,
                    isg=gap,
                    scale_isg=True,
                    next=1 if ends else _REST if number == last else number + 1,
                    action_count=options.loop_count if ends else 0,
                    **_macs(options),
                )
            )
        except STLError as error:
            raise STLProfileError(f"the capture {path}, packet {number}: {error}") from error
    if rest_usec:
        streams.insert(-1, _rest(rest_usec, options))  # where TRex's client has it
    return streams


def _rest(rest_usec: float, options: PcapOptions) -> STLStream:
    """What takes the time until the other half of the capture is done, too."""
    return STLStream(
        name=_REST,
        mode=STLTXSingleBurst(total_pkts=1, percentage=100),
        self_start=False,
        isg=rest_usec,
        scale_isg=True,
        next=1,
        action_count=options.loop_count,
        dummy_stream=True,
        **_macs(options),
    )


def _macs(options: PcapOptions) -> dict[str, Any]:
    """Whose MAC addresses packets have."""
    destination = STLStreamDstMAC_PKT if options.dst_mac_pcap else STLStreamDstMAC_CFG_FILE
    return {"mac_src_override_by_pkt": options.src_mac_pcap, "mac_dst_override_mode": destination}


def _sides(path: Path, frames: Sequence[bytes], split_mode: str | None) -> list[bool]:
    """Whether each frame is of the side that holds whoever is seen first.

    Who sends to whom is a graph, which falls into two sides: no two hosts of a side send to each other. Hosts
    that never meet are on the side of those who were seen first. A frame without addresses is on the
    first side. Raises ``STLProfileError``.
    """
    ends = [_ends(data, split_mode) for data in frames]
    colors = _two_colors([pair for pair in ends if pair]) or _two_colors(
        [pair for pair in ends if pair and not _is_group(pair[1], split_mode)]
    )
    if colors is None:
        other = "IP" if split_mode == "MAC" else "MAC"
        raise STLProfileError(
            f"the capture {path} has no two sides by {split_mode} addresses: hosts of one side send to each "
            f"other; try split_mode='{other}', or load it without split_mode"
        )
    return [pair is None or colors.get(pair[0], True) for pair in ends]


def _two_colors(edges: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bool] | None:
    """A side for each host, so that each edge joins both sides; None when there is no such way."""
    neighbors: dict[bytes, set[bytes]] = {}
    for source, target in edges:
        neighbors.setdefault(source, set()).add(target)
        neighbors.setdefault(target, set()).add(source)
    colors: dict[bytes, bool] = {}
    for first in neighbors:
        if first in colors:
            continue
        colors[first] = True
        waiting = [first]
        while waiting:
            host = waiting.pop()
            for other in neighbors[host] - {host}:
                if other not in colors:
                    colors[other] = not colors[host]
                    waiting.append(other)
                elif colors[other] == colors[host]:
                    return None
    return colors


def _ends(data: bytes, split_mode: str | None) -> tuple[bytes, bytes] | None:
    """The addresses that a frame is from and to; None when it has none of this kind."""
    if split_mode == "MAC":
        return data[6:12], data[:6]
    if len(data) < PACKET_BYTES_MIN:
        return None
    at = 12
    (kind,) = struct.unpack_from("!H", data, at)
    while kind in (0x8100, 0x88A8) and len(data) >= at + 6:
        at += 4
        (kind,) = struct.unpack_from("!H", data, at)
    start, size = {0x0800: (12, 4), 0x86DD: (8, 16)}.get(kind, (0, 0))
    addresses = data[at + 2 + start : at + 2 + start + 2 * size]
    if not size or len(addresses) < 2 * size:
        return None
    return addresses[:size], addresses[size:]


def _is_group(address: bytes, split_mode: str | None) -> bool:
    """Whether it is an address of many: multicast or broadcast."""
    if split_mode == "MAC":
        return bool(address[0] & 1)
    if len(address) == 4:
        return address[0] >> 4 == 0xE or address == b"\xff" * 4
    return address[0] == 0xFF


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
