"""The commands of a program: what one side of a flow does, step by step.

Labels, the names of variables and buffers belong to the whole program (``_program``).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from ._arguments import U32_MAX, U64_MAX, flag, number, octets, whole
from ._errors import ASTFError

#: The longest that a command waits, in microseconds; the protocol has 32 bits for it.
DELAY_USEC_MAX = U32_MAX
VARIABLES_MAX = 5
COUNTERS = "ABCD"
COMPARISONS = ("lt", "gt", "eq", "ge", "le", "ne")
_BUFFER_BYTES_MAX = U32_MAX
_I64_MAX = (1 << 63) - 1


class ASTFCmd:
    """A command. ``stream`` says whether it is for TCP (True), for UDP (False), or for both (None)."""

    word = ""
    stream: bool | None = None

    def __init__(self, **fields: Any) -> None:
        self.fields: dict[str, Any] = {"name": self.word, **fields}

    def to_json(self) -> dict[str, Any]:
        """The command in the words of the protocol; names and labels as they were written."""
        return dict(self.fields)

    def dump(self) -> str:
        """The command for people."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields.items() if name != "name")
        return f"{type(self).__name__}({shown})"

    def _where(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Drawn:
    """A place in a buffer, from ``offset`` on, where each connection has its own of equally long values."""

    offset: int
    values: tuple[bytes, ...]
    distribution: str


class BufferCmd(ASTFCmd):
    """A command that sends bytes: ``buf``, then ``fill`` again and again until there are ``size``."""

    def __init__(self, buf: bytes | str, size: int | None = 0, fill: bytes | str | None = None) -> None:
        super().__init__()
        data = octets(self._where(), "buf", buf)
        total = whole(self._where(), "size", size or 0, 0, _BUFFER_BYTES_MAX)
        filler = None if fill is None else octets(self._where(), "fill", fill)
        # An empty message is a datagram all the same; of a stream nothing would be left.
        if not data and not total and self.stream:
            raise ASTFError(f"{self._where()}: buf is empty, there is nothing to send: leave the command out")
        self.data = data
        # A size that is not longer than the bytes has no effect, as in TRex.
        self.size = total if total > len(data) else 0
        self.filler = filler if self.size else None
        self.draws: list[Drawn] = []

    @property
    def buf_len(self) -> int:
        """How many bytes are sent."""
        return self.size or len(self.data)

    def replace(self, data: bytes, draws: list[Drawn]) -> None:
        """Send other bytes at the beginning; what follows them stays as long as it was."""
        if self.size:
            self.size += len(data) - len(self.data)
        self.data = data
        self.draws = draws

    def buffer(self) -> str | dict[str, Any]:
        """The bytes in the words of the protocol; what fills up is described, not written out."""
        base = base64.b64encode(self.data).decode()
        if not self.size:
            return base
        described: dict[str, Any] = {"base": base, "size": self.size}
        if self.filler is not None:
            described["fill"] = base64.b64encode(self.filler).decode()
        return described

    def dump(self) -> str:
        """The command for people, with the beginning of its bytes."""
        shown = self.data if len(self.data) <= 32 else self.data[:32] + b"..."
        return f"{type(self).__name__}({shown!r}, {self.buf_len} bytes)"


class ASTFCmdSend(BufferCmd):
    """Send bytes of a stream (TCP)."""

    word, stream = "tx", True


class ASTFCmdTxPkt(BufferCmd):
    """Send a message (UDP)."""

    word, stream = "tx_msg", False


class ASTFCmdRecv(ASTFCmd):
    """Wait until ``min_bytes`` came since the beginning, or since the last command with ``clear``.

    A peer that closes before has closed early: see ``ASTFCmdRecvUntilClose``.
    """

    word, stream = "rx", True

    def __init__(self, min_bytes: int, clear: bool = False) -> None:
        super().__init__(min_bytes=whole(self._where(), "min_bytes", min_bytes, 0, U64_MAX))
        if flag(self._where(), "clear", clear):
            self.fields["clear"] = True


class ASTFCmdRecvUntilClose(ASTFCmd):
    """Wait until the peer closes (TCP), however much comes before."""

    word, stream = "rx", True

    def __init__(self) -> None:
        # TRex's servers know no such thing: they wait for more bytes than come.
        super().__init__(min_bytes=U32_MAX, until_close=True)


class ASTFCmdRecvMsg(ASTFCmd):
    """Wait until ``min_pkts`` messages came since the beginning, or since the last ``clear``."""

    word, stream = "rx_msg", False

    def __init__(self, min_pkts: int, clear: bool = False) -> None:
        super().__init__(min_pkts=whole(self._where(), "min_pkts", min_pkts, 0, U64_MAX))
        if flag(self._where(), "clear", clear):
            self.fields["clear"] = True


class ASTFCmdKeepaliveMsg(ASTFCmd):
    """How long a UDP flow may be silent, in milliseconds; with ``rx_mode`` only what comes counts."""

    word, stream = "keepalive", False

    def __init__(self, msec: int, rx_mode: bool = False) -> None:
        super().__init__(msec=whole(self._where(), "msec", msec, 1, U32_MAX))
        if flag(self._where(), "rx_mode", rx_mode):
            self.fields["rx_mode"] = True


class ASTFCmdCloseMsg(ASTFCmd):
    """End a UDP flow now."""

    word, stream = "close_msg", False


class ASTFCmdDelay(ASTFCmd):
    """Wait ``usec`` microseconds."""

    word = "delay"

    def __init__(self, usec: float) -> None:
        super().__init__(usec=number(self._where(), "usec", usec, 0, DELAY_USEC_MAX))


class ASTFCmdDelayRnd(ASTFCmd):
    """Wait a random time, from ``min_usec`` to ``max_usec`` microseconds."""

    word = "delay_rnd"

    def __init__(self, min_usec: float, max_usec: float) -> None:
        low = number(self._where(), "min_usec", min_usec, 0, DELAY_USEC_MAX)
        high = number(self._where(), "max_usec", max_usec, 0, DELAY_USEC_MAX)
        if low > high:
            raise ASTFError(f"{self._where()}: min_usec {low} is more than max_usec {high}: swap them")
        super().__init__(min_usec=low, max_usec=high)


class ASTFCmdReset(ASTFCmd):
    """End a TCP connection with a reset."""

    word, stream = "reset", True


class ASTFCmdNoClose(ASTFCmd):
    """Wait until the peer closes, and close then."""

    word, stream = "nc", True


class ASTFCmdConnect(ASTFCmd):
    """Wait until the TCP connection is established."""

    word, stream = "connect", True


class ASTFCmdTxMode(ASTFCmd):
    """What a send waits for: 0 until all is acknowledged, 1 until nearly all is sent."""

    word, stream = "tx_mode", True

    def __init__(self, flags: int) -> None:
        super().__init__(flags=whole(self._where(), "flags", flags, 0, 1))


class ASTFCmdSetVal(ASTFCmd):
    """Set a variable, by name or number."""

    word = "set_var"

    def __init__(self, id_val: str | int, val: int) -> None:
        super().__init__(id=variable(self._where(), id_val))
        self.fields["val"] = whole(self._where(), "val", val, 0, U64_MAX)


class ASTFCmdAddVal(ASTFCmd):
    """Add to a variable."""

    word = "add_var"

    def __init__(self, id_val: str | int, val: int) -> None:
        super().__init__(id=variable(self._where(), id_val))
        self.fields["val"] = whole(self._where(), "val", val, -_I64_MAX, _I64_MAX)


class ASTFCmdSetTickVar(ASTFCmd):
    """Keep the time now in a tick variable."""

    word = "set_tick_var"

    def __init__(self, id_val: str | int) -> None:
        super().__init__(id=variable(self._where(), id_val))


class ASTFCmdAddTickVar(ASTFCmd):
    """Add ``duration`` seconds to a tick variable."""

    word = "add_tick_var"

    def __init__(self, id_val: str | int, duration: float) -> None:
        super().__init__(id=variable(self._where(), id_val))
        self.fields["duration"] = number(self._where(), "duration", duration, 0, U32_MAX)


class ASTFCmdAddStatsVal(ASTFCmd):
    """Add to one of the counters of your own, A to D."""

    word = "add_stats"

    def __init__(self, id_val: int | str, val: int) -> None:
        super().__init__(stats_id=counter(self._where(), id_val))
        self.fields["val"] = whole(self._where(), "val", val, 0, U64_MAX)


class ASTFCmdAddTickStats(ASTFCmd):
    """Add the time since a tick variable was set to one of the counters of your own."""

    word = "add_tick_stats"

    def __init__(self, id_val: int | str, tick_var: str | int) -> None:
        super().__init__(stats_id=counter(self._where(), id_val))
        self.fields["var_id"] = variable(self._where(), tick_var)


class ASTFCmdJMPBase(ASTFCmd):
    """A jump to a label."""

    def __init__(self, label: str, **fields: Any) -> None:
        super().__init__(**fields)
        self.label = label


class ASTFCmdJMPNZ(ASTFCmdJMPBase):
    """Count a variable down and jump unless it is zero then."""

    word = "jmp_nz"

    def __init__(self, id_val: str | int, offset: int, label: str) -> None:
        super().__init__(label, id=variable(self._where(), id_val), offset=offset)


class ASTFCmdJMPDP(ASTFCmdJMPBase):
    """Jump while less than ``duration`` seconds went by since a tick variable was set."""

    word = "jmp_dp"

    def __init__(self, id_val: str | int, offset: int, label: str, duration: float) -> None:
        super().__init__(label, id=variable(self._where(), id_val), offset=offset)
        self.fields["duration"] = float(number(self._where(), "duration", duration, 0, U32_MAX))


class ASTFCmdJMPCMP(ASTFCmdJMPBase):
    """Jump when a variable compares so to a value; without a variable always."""

    word = "jmp_cmp"

    def __init__(self, id_val: str | int, offset: int, label: str, cmp_op: str, cmp_val: int) -> None:
        super().__init__(label, offset=offset)
        if id_val != "":
            if cmp_op not in COMPARISONS:
                known = ", ".join(COMPARISONS)
                raise ASTFError(f"{self._where()}: cmp_op is {cmp_op!r}, give one of {known}")
            self.fields["id"] = variable(self._where(), id_val)
            self.fields["cmp_op"] = cmp_op
            self.fields["cmp_val"] = whole(self._where(), "cmp_val", cmp_val, 0, U64_MAX)


class ASTFCmdSetTemplate(ASTFCmd):
    """Choose the template group of which ``exec_template`` opens a flow."""

    word = "set_template"

    def __init__(self, id_val: str | int) -> None:
        if not isinstance(id_val, str):
            whole(self._where(), "tg_id", id_val, 0, U32_MAX)
        super().__init__(tg_id=id_val)


class ASTFCmdExecTemplate(ASTFCmd):
    """Open a flow of the chosen template group, and wait until it is done."""

    word = "exec_template"


def variable(where: str, given: str | int) -> str | int:
    """A variable's name, or its number. Raises ``ASTFError``."""
    if isinstance(given, str):
        if not given:
            raise ASTFError(f"{where}: the variable has no name")
        return given
    return whole(where, "the variable's number", given, 0, VARIABLES_MAX - 1)


def counter(where: str, given: int | str) -> int:
    """The number of one of the four counters, given by number or letter. Raises ``ASTFError``."""
    if isinstance(given, str):
        if len(given) != 1 or given.upper() not in COUNTERS:
            raise ASTFError(f"{where}: stats_id is {given!r}, give 0 to 3 or 'A' to 'D'")
        return COUNTERS.index(given.upper())
    return whole(where, "stats_id", given, 0, len(COUNTERS) - 1)
