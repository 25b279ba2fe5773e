"""A program: what one side of a flow does, written call by call, or made from a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._arguments import listed, octets, of_kind, whole
from ._buffers import Buffers
from ._capture_place import find_capture
from ._captured import UDP_HEADERS_BYTES, captured_commands
from ._commands import (
    VARIABLES_MAX,
    ASTFCmd,
    ASTFCmdAddStatsVal,
    ASTFCmdAddTickStats,
    ASTFCmdAddTickVar,
    ASTFCmdAddVal,
    ASTFCmdCloseMsg,
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFCmdExecTemplate,
    ASTFCmdJMPBase,
    ASTFCmdJMPCMP,
    ASTFCmdJMPDP,
    ASTFCmdJMPNZ,
    ASTFCmdKeepaliveMsg,
    ASTFCmdNoClose,
    ASTFCmdRecv,
    ASTFCmdRecvMsg,
    ASTFCmdRecvUntilClose,
    ASTFCmdReset,
    ASTFCmdSend,
    ASTFCmdSetTemplate,
    ASTFCmdSetTickVar,
    ASTFCmdSetVal,
    ASTFCmdTxMode,
    ASTFCmdTxPkt,
    BufferCmd,
)
from ._errors import ASTFError, ASTFErrorBadTG
from ._replace import Field, Pattern, Values, header_places, pattern_places, rewrite

_TICK_COMMANDS = (ASTFCmdSetTickVar, ASTFCmdAddTickVar, ASTFCmdAddTickStats, ASTFCmdJMPDP)
#: What takes no time, and always goes on.
_INSTANT = (
    ASTFCmdSetVal,
    ASTFCmdAddVal,
    ASTFCmdSetTickVar,
    ASTFCmdAddTickVar,
    ASTFCmdAddStatsVal,
    ASTFCmdAddTickStats,
    ASTFCmdTxMode,
    ASTFCmdSetTemplate,
    ASTFCmdJMPCMP,
)
_ADDONS = ("latency",)


class ASTFProgram:
    """What one side of a flow does.

    With ``file`` the program is made from a capture (pcap, pcapng) of one flow: that of
    ``side`` "c" (client: whoever sent the first packet) or "s" (server). A relative name is looked for
    beside the profile and in the current folder; a name without a folder also among the captures that
    come with this package. Each side waits for as many bytes (TCP) or messages (UDP) as the capture has
    before it goes on: a peer that closes after fewer has closed early.
    ``commands`` are commands to begin with. ``stream`` is True for TCP and False for UDP.

    ``s_delay`` (``ASTFCmdDelay`` or ``ASTFCmdDelayRnd``) is what the server of a capture waits before
    it answers. ``udp_mtu`` cuts the messages of a capture so that packets, with 42 bytes of headers,
    are no longer. ``addon="latency"`` (UDP) has each message begin with a header by which the way
    there and back is measured.

    Each flow has five variables, and five that keep times ("tick" variables, in ticks of 10 ms), both
    by name. Raises ``ASTFError``.
    """

    def __init__(
        self,
        file: str | Path | None = None,
        side: str = "c",
        commands: ASTFCmd | Sequence[ASTFCmd] | None = None,
        stream: bool = True,
        s_delay: ASTFCmdDelay | ASTFCmdDelayRnd | None = None,
        udp_mtu: int | None = None,
        addon: str | None = None,
    ) -> None:
        self._check(side, s_delay, udp_mtu, addon)
        self.stream = bool(stream)
        self.addon = addon
        self.commands: list[ASTFCmd] = []
        self.labels: dict[str, int] = {}
        #: Names of variables, in the order of their numbers.
        self.vars: list[str] = []
        self.tick_vars: list[str] = []
        self._payload_bytes: int | None = None
        self._received = 0
        if file is not None:
            made = captured_commands(find_capture(file), side, s_delay, udp_mtu)
            self.commands, self.stream, self._payload_bytes = made.commands, made.stream, made.payload_bytes
        elif commands is not None:
            self.commands = listed("ASTFProgram", "commands", commands, ASTFCmd)

    @property
    def payload_len(self) -> int:
        """The bytes of payload of both sides of the capture. Raises ``ASTFError`` without a capture."""
        if self._payload_bytes is None:
            raise ASTFError("ASTFProgram.payload_len: the program was not made from a capture")
        return self._payload_bytes

    @property
    def total_send_bytes(self) -> int:
        """The bytes that the commands send, each counted once."""
        return sum(command.buf_len for command in self.commands if isinstance(command, BufferCmd))

    def is_stream(self) -> bool:
        """Whether the program is for TCP."""
        return self.stream

    def send(self, buf: bytes | str, size: int | None = 0, fill: bytes | str | None = None) -> None:
        """Send bytes (TCP); the next command waits until the peer has acknowledged them.

        With a ``size`` above that of ``buf``, ``fill`` (zeros without it) is repeated behind it; this is
        described to the server and takes no memory. Text must be ASCII.
        """
        self.commands.append(ASTFCmdSend(buf, size, fill))

    def send_chunk(self, l7_buf: bytes | str, chunk_size: int, delay_usec: float) -> None:
        """Send bytes in pieces of ``chunk_size`` (TCP), with ``delay_usec`` microseconds after each."""
        data = octets("send_chunk", "l7_buf", l7_buf)
        step = whole("send_chunk", "chunk_size", chunk_size, 1, max(len(data), chunk_size, 1))
        for start in range(0, len(data), step):
            self.send(data[start : start + step])
            if delay_usec:
                self.delay(delay_usec)

    def send_msg(self, buf: bytes | str, size: int | None = 0, fill: bytes | str | None = None) -> None:
        """Send a message (UDP); ``size`` and ``fill`` as for ``send``."""
        self.commands.append(ASTFCmdTxPkt(buf, size, fill))

    def recv(self, bytes: int, clear: bool = False) -> None:
        """Wait until so many bytes more came (TCP); ``clear`` starts counting from zero after it.

        A peer that closes before so many came has closed early, and fails the flow: for an answer
        whose length only the peer knows, there is ``recv_until_close``.
        """
        self.commands.append(ASTFCmdRecv(self._watermark("recv", "bytes", bytes, clear), clear))

    def recv_until_close(self) -> None:
        """Wait until the peer closes in order (TCP), however many bytes come before.

        A reset ends the flow before its program. A server of TRex's takes it for ``recv`` of 4 GiB: the
        peer's close ends the flow there, too, but such a server does not tell how flows ended.
        """
        self.commands.append(ASTFCmdRecvUntilClose())

    def recv_msg(self, pkts: int, clear: bool = False) -> None:
        """Wait until so many messages more came (UDP); ``clear`` starts counting from zero after it."""
        self.commands.append(ASTFCmdRecvMsg(self._watermark("recv_msg", "pkts", pkts, clear), clear))

    def set_keepalive_msg(self, msec: int, rx_mode: bool = False) -> None:
        """End the flow after ``msec`` milliseconds of silence (UDP).

        With ``rx_mode`` only messages that come break the silence.
        """
        self.commands.append(ASTFCmdKeepaliveMsg(msec, rx_mode))

    def close_msg(self) -> None:
        """End the flow now (UDP)."""
        self.commands.append(ASTFCmdCloseMsg())

    def set_send_blocking(self, block: bool) -> None:
        """What a send waits for (TCP): until all is acknowledged, or with False until nearly all is sent."""
        self.commands.append(ASTFCmdTxMode(0 if block else 1))

    def delay(self, usec: float) -> None:
        """Wait ``usec`` microseconds."""
        self.commands.append(ASTFCmdDelay(usec))

    def delay_rand(self, min_usec: float, max_usec: float) -> None:
        """Wait a random time between two, in microseconds."""
        self.commands.append(ASTFCmdDelayRnd(min_usec, max_usec))

    def connect(self) -> None:
        """Wait until the connection is established (TCP): a client's first command.

        The acknowledgment that completes the connection leaves by itself, before what the next command sends.
        """
        self.commands.append(ASTFCmdConnect())

    def accept(self) -> None:
        """Wait until the connection is established (TCP): the first command of a server that sends first."""
        self.commands.append(ASTFCmdConnect())

    def reset(self) -> None:
        """End the connection with a reset (TCP)."""
        self.commands.append(ASTFCmdReset())

    def wait_for_peer_close(self) -> None:
        """Wait until the peer closes, acknowledge that, and close then (TCP)."""
        self.commands.append(ASTFCmdNoClose())

    def set_var(self, var_id: str | int, val: int) -> None:
        """Set a variable; the first time makes it."""
        self.commands.append(ASTFCmdSetVal(var_id, val))
        self._declare(self.vars, var_id)

    def add_var(self, var_id: str | int, val: int) -> None:
        """Add to a variable."""
        self.commands.append(ASTFCmdAddVal(var_id, val))

    def set_tick_var(self, var_id: str | int) -> None:
        """Keep the time now in a tick variable; the first time makes it."""
        self.commands.append(ASTFCmdSetTickVar(var_id))
        self._declare(self.tick_vars, var_id)

    def add_tick_var(self, var_id: str | int, duration: float) -> None:
        """Add seconds to a tick variable."""
        self.commands.append(ASTFCmdAddTickVar(var_id, duration))

    def add_stats(self, stats_id: int | str, val: int) -> None:
        """Add to a counter of your own: 0 to 3, or "A" to "D"; see ``user_counter_A`` in statistics."""
        self.commands.append(ASTFCmdAddStatsVal(stats_id, val))

    def add_tick_stats(self, stats_id: int | str, var_id: str | int) -> None:
        """Add the time since a tick variable was set to a counter of your own."""
        self.commands.append(ASTFCmdAddTickStats(stats_id, var_id))

    def set_label(self, label: str) -> None:
        """Name this place, for jumps."""
        if not isinstance(label, str) or not label:
            raise ASTFError(f"set_label: label is {label!r}, give a name")
        if label in self.labels:
            raise ASTFError(f"set_label: label '{label}' is set twice: give each place its own name")
        self.labels[label] = len(self.commands)

    def jmp(self, label: str) -> None:
        """Go on at a label."""
        self.commands.append(ASTFCmdJMPCMP("", 0, label, "", 0))

    def jmp_nz(self, var_id: str | int, label: str) -> None:
        """Count a variable down by one, and go on at a label unless it is zero then."""
        self.commands.append(ASTFCmdJMPNZ(var_id, 0, label))

    def jmp_dp(self, var_id: str | int, label: str, duration: float) -> None:
        """Go on at a label while less than ``duration`` seconds went by since a tick variable was set."""
        self.commands.append(ASTFCmdJMPDP(var_id, 0, label, duration))

    def jmp_cmp(self, var_id: str | int, label: str, cmp_op: str, cmp_val: int) -> None:
        """Go on at a label when a variable is lt, gt, eq, ge, le or ne a value."""
        self.commands.append(ASTFCmdJMPCMP(var_id, 0, label, cmp_op, cmp_val))

    def jmp_lt(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable is less than a value."""
        self.jmp_cmp(var_id, label, "lt", value)

    def jmp_gt(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable is greater than a value."""
        self.jmp_cmp(var_id, label, "gt", value)

    def jmp_eq(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable equals a value."""
        self.jmp_cmp(var_id, label, "eq", value)

    def jmp_ge(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable is a value or more."""
        self.jmp_cmp(var_id, label, "ge", value)

    def jmp_le(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable is a value or less."""
        self.jmp_cmp(var_id, label, "le", value)

    def jmp_ne(self, var_id: str | int, label: str, value: int) -> None:
        """Go on at a label when a variable is not a value."""
        self.jmp_cmp(var_id, label, "ne", value)

    def set_next_template(self, tg_id: str | int) -> None:
        """Choose the template group, by name or number, of which ``exec_template`` opens a flow."""
        self.commands.append(ASTFCmdSetTemplate(tg_id))

    def exec_template(self) -> None:
        """Open a flow of the chosen template group, and wait until it is done."""
        self.commands.append(ASTFCmdExecTemplate())

    def replace_header(
        self,
        name: str,
        values: Values,
        distribution: str = "rand",
        peer: ASTFProgram | None = None,
    ) -> int:
        """Change a header ("User-Agent", "Host") in all that the program sends; how often it was found.

        One text is written into the program; the bytes that ``peer``, the program of its peer,
        waits for are changed with it. Of a list of texts each connection draws one: at random, or with
        ``distribution="seq"`` in order; the shorter ones get spaces behind them, which a header may
        have. The list is described to the server, which must know how (see ``draw_lists``).
        """
        return self._rewrite(header_places(name), values, distribution, b" ", peer)

    def replace_pattern(
        self,
        pattern: Pattern,
        values: Values,
        distribution: str = "rand",
        pad: bytes | str | None = None,
        peer: ASTFProgram | None = None,
    ) -> int:
        r"""Change what a regular expression matches, or its first group, in all that the program sends.

        As ``replace_header``. Of several values the shorter ones are filled up with ``pad``, one
        character; without it all must be equally long.
        """
        filler = None if pad is None else octets("replace_pattern", "pad", pad)
        return self._rewrite(pattern_places(pattern), values, distribution, filler, peer)

    def _rewrite(
        self, field: Field, values: Values, distribution: str, pad: bytes | None, peer: ASTFProgram | None
    ) -> int:
        """Change a field; of TCP the peer's counts of bytes follow."""
        counting = peer.commands if peer is not None and self.is_stream() else None
        return rewrite(self.commands, field, values, distribution, pad, counting)

    def to_json(
        self, buffers: Buffers | None = None, groups: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """The program in the words of the protocol. ``buffers`` takes the bytes that it sends."""
        buffers = Buffers() if buffers is None else buffers
        written = []
        for index, command in enumerate(self.commands):
            try:
                written.append(self._command(index, command, buffers, groups or {}))
            except ASTFError as error:
                raise type(error)(f"command {index} ({command.word}): {error}") from error
        self._check_loops()
        fields: dict[str, Any] = {"commands": written}
        if not self.stream:
            fields["stream"] = False
        if self.addon is not None:
            fields["addon"] = self.addon
        return fields

    def dump(self, out: Any, var_name: str = "program") -> None:
        """Write the commands for people to a text file."""
        for index, command in enumerate(self.commands):
            names = "".join(f"{name}: " for name, place in self.labels.items() if place == index)
            out.write(f"{var_name}[{index}] {names}{command.dump()}\n")

    def _check(self, side: str, s_delay: Any, udp_mtu: Any, addon: Any) -> None:
        if side not in ("c", "s"):
            raise ASTFError(f"ASTFProgram: side is {side!r}, give 'c' for the client or 's' for the server")
        if s_delay is not None:
            of_kind("ASTFProgram", "s_delay", s_delay, (ASTFCmdDelay, ASTFCmdDelayRnd))
        if udp_mtu is not None:
            whole("ASTFProgram", "udp_mtu", udp_mtu, UDP_HEADERS_BYTES + 1, 65_535)
        if addon is not None and addon not in _ADDONS:
            raise ASTFError(f"ASTFProgram: addon is {addon!r}, give one of: {', '.join(_ADDONS)}")

    def _watermark(self, where: str, name: str, count: int, clear: bool) -> int:
        total = self._received + whole(where, name, count, 0, 1 << 62)
        self._received = 0 if clear else total
        return total

    @staticmethod
    def _declare(names: list[str], given: str | int) -> None:
        if isinstance(given, str) and given not in names:
            if len(names) == VARIABLES_MAX:
                raise ASTFError(
                    f"variable '{given}' is the sixth: a flow has {VARIABLES_MAX}, {', '.join(names)}"
                )
            names.append(given)

    def _command(
        self, index: int, command: ASTFCmd, buffers: Buffers, groups: Mapping[str, int]
    ) -> dict[str, Any]:
        if command.stream is not None and command.stream != self.stream:
            raise ASTFError(
                "this is a command for TCP, and the program is for UDP (stream=False)"
                if command.stream
                else "this is a command for UDP, and the program is for TCP: give stream=False"
            )
        fields = command.to_json()
        if isinstance(command, BufferCmd):
            fields |= buffers.sent(command)
        if isinstance(command, ASTFCmdJMPBase):
            fields["offset"] = self._place(command.label) - index
        for name in ("id", "var_id"):
            if isinstance(fields.get(name), str):
                names = self.tick_vars if isinstance(command, _TICK_COMMANDS) else self.vars
                fields[name] = _number(fields[name], names, isinstance(command, _TICK_COMMANDS))
        if isinstance(command, ASTFCmdSetTemplate) and isinstance(fields["tg_id"], str):
            fields["tg_id"] = _group(fields["tg_id"], groups)
        return fields

    def _place(self, label: str) -> int:
        if label not in self.labels:
            known = ", ".join(self.labels) or "none"
            raise ASTFError(f"label '{label}' is not set: call set_label(), the labels are: {known}")
        return self.labels[label]

    def _check_loops(self) -> None:
        """Refuse a circle of commands that never waits for anything: it would hold up its core for ever."""
        for start, command in enumerate(self.commands):
            at = start
            for _ in range(len(self.commands)):
                step = self.commands[at] if at < len(self.commands) else None
                if not isinstance(step, _INSTANT) or (
                    isinstance(step, ASTFCmdJMPBase) and "id" in step.fields
                ):
                    break
                at = self._place(step.label) if isinstance(step, ASTFCmdJMPBase) else at + 1
                if at == start:
                    raise ASTFError(
                        f"command {start} ({command.word}) begins a circle that never ends and never "
                        f"waits: put a delay, a send or a receive into it"
                    )


def _number(name: str, names: list[str], is_tick: bool) -> int:
    if name not in names:
        setter = "set_tick_var" if is_tick else "set_var"
        known = ", ".join(names) or "none"
        raise ASTFError(f"variable '{name}' is not set: call {setter}() first, there are: {known}")
    return names.index(name)


def _group(name: str, groups: Mapping[str, int]) -> int:
    if name not in groups:
        known = ", ".join(groups) or "none"
        raise ASTFErrorBadTG(f"no template has the group '{name}', the groups are: {known}")
    return groups[name]
