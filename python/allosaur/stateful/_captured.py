"""Programs from captures: the commands of one side of a recorded connection, as TRex's client makes them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from ._commands import (
    ASTFCmd,
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFCmdKeepaliveMsg,
    ASTFCmdRecv,
    ASTFCmdRecvMsg,
    ASTFCmdSend,
    ASTFCmdTxPkt,
)
from ._recorded_flow import RecordedFlow, Turn, read_flow

#: Ethernet, IPv4 and UDP: what a message carries besides its payload.
UDP_HEADERS_BYTES = 14 + 20 + 8
#: Gaps between messages of one side become delays within these, in microseconds.
_DELAY_USEC_MIN, _DELAY_USEC_MAX = 50, 700_000
#: Half of a flow's usual keepalive: with longer gaps TRex gives the program one of its own.
_KEEPALIVE_USEC = 500_000
_LONG_SERVER_DELAY_USEC = 900_000


@dataclass(frozen=True)
class Captured:
    """The commands of one side, the protocol, and the bytes of payload of both sides."""

    commands: list[ASTFCmd]
    stream: bool
    payload_bytes: int


def captured_commands(
    path: Path, side: str, s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None, udp_mtu: int | None
) -> Captured:
    """The commands of the client ("c") or the server ("s") of a capture. Raises ``ASTFError``."""
    flow = flow_of(path)
    if flow.stream:
        commands = _stream_commands(flow.turns, side)
    else:
        commands = _message_commands(flow.turns, side, udp_mtu)
    if s_delay is not None and side == "s":
        commands = _delayed(commands, s_delay)
    if not flow.stream:
        commands = _kept_alive(commands)
    return Captured(commands, flow.stream, flow.payload_bytes)


def flow_of(path: Path) -> RecordedFlow:
    """The flow of a capture, read once as long as the file stays as it is."""
    status = path.stat()
    return _read_once(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _read_once(path: Path, _time_ns: int, _size: int) -> RecordedFlow:
    return read_flow(path)


def _stream_commands(turns: tuple[Turn, ...], side: str) -> list[ASTFCmd]:
    commands: list[ASTFCmd] = []
    if turns and turns[0].side == side == "s":
        # A server that speaks first must wait until there is somebody.
        commands.append(ASTFCmdConnect())
    received = 0
    for turn in turns:
        if turn.side == side:
            commands.append(ASTFCmdSend(turn.data))
        else:
            received += len(turn.data)
            commands.append(ASTFCmdRecv(received))
    return commands


def _message_commands(turns: tuple[Turn, ...], side: str, udp_mtu: int | None) -> list[ASTFCmd]:
    commands: list[ASTFCmd] = []
    longest = None if udp_mtu is None else udp_mtu - UDP_HEADERS_BYTES
    received, waiting, last, longest_usec = 0, False, "", 0
    for turn in turns:
        if turn.side != side:
            received, waiting = received + 1, True
        else:
            gap_usec = min(turn.gap_usec, _DELAY_USEC_MAX)
            if last == side and gap_usec > _DELAY_USEC_MIN:
                commands.append(ASTFCmdDelay(gap_usec))
                longest_usec = max(longest_usec, gap_usec)
            elif last != side and waiting:
                commands.append(ASTFCmdRecvMsg(received))
                waiting = False
            commands.append(ASTFCmdTxPkt(turn.data[:longest]))
        last = turn.side
    if waiting:
        commands.append(ASTFCmdRecvMsg(received))
    if longest_usec > _KEEPALIVE_USEC:
        # As many milliseconds as twice the gap has microseconds: so TRex's client counts.
        commands.insert(0, ASTFCmdKeepaliveMsg(longest_usec * 2))
    return commands


def _delayed(commands: list[ASTFCmd], s_delay: ASTFCmdDelay | ASTFCmdDelayRnd) -> list[ASTFCmd]:
    """Wait before the first answer to what was received."""
    delayed: list[ASTFCmd] = []
    heard = False
    for command in commands:
        if isinstance(command, (ASTFCmdRecv, ASTFCmdRecvMsg)):
            heard = True
        elif isinstance(command, (ASTFCmdSend, ASTFCmdTxPkt)) and heard:
            delayed.append(s_delay)
            heard = False
        delayed.append(command)
    return delayed


def _kept_alive(commands: list[ASTFCmd]) -> list[ASTFCmd]:
    """Let a flow outlive its longest delay, if that is long."""
    longest = max(
        (
            command.fields.get("max_usec", command.fields.get("usec", 0))
            for command in commands
            if isinstance(command, (ASTFCmdDelay, ASTFCmdDelayRnd))
        ),
        default=0,
    )
    if longest < _LONG_SERVER_DELAY_USEC:
        return commands
    return [ASTFCmdKeepaliveMsg(int(longest / 1000 * 1.5)), *commands]
