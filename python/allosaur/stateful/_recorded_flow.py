"""The connection of a capture: who sent what, in order, although segments were lost or reordered."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._errors import STLError
from ..packets._capture_reader import frames, send_times
from ._errors import ASTFError
from ._segments import ACK, FIN, SYN, TCP, Malformed, Segment, segment

_SEQUENCE_MASK = (1 << 32) - 1
_HALF = 1 << 31
#: More would make a profile that no server takes.
_PAYLOAD_BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True)
class Turn:
    """What one side ("c" or "s") sent: with TCP all until the other answered, with UDP one message.

    ``gap_usec`` is the time since the message before, of either side.
    """

    side: str
    data: bytes
    gap_usec: int = 0


@dataclass(frozen=True)
class Ends:
    """What the first segment of each side says: the window, and TCP's options by name."""

    window: int = 0
    options: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedFlow:
    """A session: ``client`` and ``server`` are what their first segments say."""

    stream: bool
    turns: tuple[Turn, ...]
    payload_bytes: int
    server_port: int
    client: Ends
    server: Ends


@dataclass(frozen=True)
class _Seen:
    number: int
    time_ns: int
    side: str
    segment: Segment


def read_flow(path: Path) -> RecordedFlow:
    """The one session of a capture. Raises ``ASTFError`` when it has none, two, or a broken one."""
    seen = list(_session(path))
    if not seen:
        raise ASTFError(f"the capture {path} has no TCP or UDP session: give one with exactly one")
    first = seen[0].segment
    if first.protocol == TCP:
        turns = _Streams(path).turns(seen)
        payload_bytes = sum(len(turn.data) for turn in turns)
    else:
        turns = _messages(seen)
        payload_bytes = sum(len(turn.data) for turn in turns)
    if payload_bytes > _PAYLOAD_BYTES_MAX:
        raise ASTFError(f"the capture {path} has {payload_bytes} bytes of payload: cut it")
    ends = {
        side: next((_ends(one.segment) for one in seen if one.side == side), Ends()) for side in ("c", "s")
    }
    return RecordedFlow(
        stream=first.protocol == TCP,
        turns=tuple(turns),
        payload_bytes=payload_bytes,
        server_port=first.target[1],
        client=ends["c"],
        server=ends["s"],
    )


def _ends(first: Segment) -> Ends:
    return Ends(first.window, first.options)


def _session(path: Path) -> Iterator[_Seen]:
    """The segments of the session. What is neither TCP nor UDP (ARP, ICMP) is left out."""
    first: Segment | None = None
    try:
        for number, frame in enumerate(frames(path), 1):
            try:
                one = segment(frame.data)
            except Malformed as error:
                raise ASTFError(f"the capture {path}, packet {number}: {error}") from error
            if one is None:
                continue
            first = first or one
            if (one.protocol, one.source, one.target) == (first.protocol, first.source, first.target):
                yield _Seen(number, frame.time_ns, "c", one)
            elif (one.protocol, one.target, one.source) == (first.protocol, first.source, first.target):
                yield _Seen(number, frame.time_ns, "s", one)
            else:
                raise ASTFError(
                    f"the capture {path}, packet {number} is of another session: {_words(one)}, but the "
                    f"first is {_words(first)}; give a capture of one session, cut with a filter"
                )
    except ASTFError:
        raise
    except STLError as error:
        raise ASTFError(str(error)) from error


def _words(one: Segment) -> str:
    (source, source_port), (target, target_port) = one.source, one.target
    kind = "TCP" if one.protocol == TCP else "UDP"
    return (
        f"{kind} {ipaddress.ip_address(source)} port {source_port} to "
        f"{ipaddress.ip_address(target)} port {target_port}"
    )


def _messages(seen: list[_Seen]) -> list[Turn]:
    turns = []
    before_s = _seconds(seen[0].time_ns)
    for one, time_ns in zip(seen, send_times(one.time_ns for one in seen), strict=True):
        now_s = _seconds(time_ns)
        # In floating point, as TRex's client: so that delays are the same to the microsecond.
        turns.append(Turn(one.side, one.segment.payload, int((now_s - before_s) * 1_000_000)))
        before_s = now_s
    return turns


def _seconds(time_ns: int) -> float:
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return seconds + rest_ns / 1000 / 1e6


class _Streams:
    """TCP's two streams of bytes, and what was said in which order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: dict[str, int] = {}
        #: What came before what it follows, by sequence number.
        self._early: dict[str, dict[int, bytes]] = {"c": {}, "s": {}}
        self._turns: list[tuple[str, bytearray]] = []

    def turns(self, seen: list[_Seen]) -> list[Turn]:
        """Who said what. Raises ``ASTFError``."""
        for one in seen:
            if one.segment.flags & SYN:
                self._open(one)
            elif {"c", "s"} - self._next.keys():
                raise self._bad(
                    one, "comes before the handshake (SYN, SYN+ACK): capture the session from its beginning"
                )
            else:
                self._take(one.side, one.segment)
        for side, early in self._early.items():
            if early:
                missing = min((number - self._next[side]) & _SEQUENCE_MASK for number in early)
                who = "client" if side == "c" else "server"
                raise ASTFError(
                    f"the capture {self._path} lacks {missing} bytes that the {who} sent: packets were lost "
                    f"while it was made, capture again"
                )
        return [Turn(side, bytes(data)) for side, data in self._turns]

    def _open(self, one: _Seen) -> None:
        following = (one.segment.sequence + 1) & _SEQUENCE_MASK
        side = "s" if one.segment.flags & ACK else "c"
        if side != one.side:
            raise self._bad(
                one,
                "is SYN+ACK of the side that began: the SYN before it is missing, capture the session "
                "from its beginning"
                if side == "s"
                else "is a SYN of the server: simultaneous opening is not supported",
            )
        if self._next.get(side, following) != following:
            raise self._bad(one, "opens the connection again: give a capture of one session")
        self._next[side] = following
        # What a SYN carries (RFC 7413) comes behind its own number.
        self._take(side, replace(one.segment, sequence=following))

    def _take(self, side: str, one: Segment) -> None:
        if one.payload:
            self._early[side].setdefault(one.sequence, b"")
            kept = self._early[side][one.sequence]
            self._early[side][one.sequence] = max(kept, one.payload, key=len)
        self._deliver(side)
        if one.flags & FIN and not self._early[side]:
            end = (one.sequence + len(one.payload)) & _SEQUENCE_MASK
            if end == self._next[side]:
                self._next[side] = (end + 1) & _SEQUENCE_MASK

    def _deliver(self, side: str) -> None:
        """Take over what follows what is known; what is known already was sent again."""
        early = self._early[side]
        progress = True
        while progress:
            progress = False
            for number in sorted(early, key=lambda at: _distance(at, self._next[side])):
                distance = _distance(number, self._next[side])
                if distance > 0:
                    break
                fresh = early.pop(number)[-distance:]
                if fresh:
                    self._say(side, fresh)
                    self._next[side] = (self._next[side] + len(fresh)) & _SEQUENCE_MASK
                    progress = True

    def _say(self, side: str, data: bytes) -> None:
        if self._turns and self._turns[-1][0] == side:
            self._turns[-1][1].extend(data)
        else:
            self._turns.append((side, bytearray(data)))

    def _bad(self, one: _Seen, what: str) -> ASTFError:
        return ASTFError(f"the capture {self._path}, packet {one.number} {what}")


def _distance(number: int, base: int) -> int:
    """How far a sequence number is ahead of another; negative when it is behind."""
    return ((number - base + _HALF) & _SEQUENCE_MASK) - _HALF
