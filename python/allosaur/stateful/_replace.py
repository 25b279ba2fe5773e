"""Fields of applications in what programs send: found by header or pattern, and changed.

The peer's bytes and counts follow such a change. What differs from connection to connection is chosen by
the server: the ``draw`` of a command is an offset and a list of equally long values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ._arguments import octets
from ._commands import ASTFCmd, ASTFCmdJMPBase, ASTFCmdRecv, BufferCmd, Drawn
from ._errors import ASTFError, ASTFErrorWrongType

#: One text, or several of which each connection draws one.
Values = bytes | str | Sequence[bytes | str]
#: A regular expression, written or compiled.
Pattern = bytes | str | re.Pattern[bytes]
#: The places of a field in a buffer, as (start, end), in order.
Places = Callable[[bytes], Iterator[tuple[int, int]]]

VALUES_MAX = 65_535
#: The most places of one buffer that are drawn for each connection.
PLACES_MAX = 255
DISTRIBUTIONS = ("rand", "seq")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(rb"\r?\ncontent-length[ \t]*:[ \t]*(\d+)", re.IGNORECASE)
_START_LINE = re.compile(rb"[A-Z]+ [^\r\n]+ [A-Z]+/\d|[A-Z]+/\d\.\d \d{3}")
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class Field:
    """A field of applications: its name in messages, and where it is."""

    def __init__(self, name: str, find: Places) -> None:
        self.name = name
        self.find = find


def header_places(name: str) -> Field:
    """Where the value of a header is. Raises ``ASTFError`` for what is no name of a header."""
    token = octets("replace_header", "name", name).rstrip(b": ")
    if not _TOKEN.fullmatch(token):
        raise ASTFError(f"replace_header: name is {name!r}, give the name of a header such as 'User-Agent'")
    line = re.compile(rb"\n" + re.escape(token) + rb"[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)

    def find(data: bytes) -> Iterator[tuple[int, int]]:
        for start, end in _heads(data):
            for match in line.finditer(data, start, end):
                yield match.span(1)

    return Field(f"the header '{token.decode()}'", find)


def pattern_places(pattern: Pattern) -> Field:
    """Where a pattern, or its first group, matches. Raises ``ASTFError`` for what is no pattern."""
    try:
        compiled = (
            pattern
            if isinstance(pattern, re.Pattern)
            else re.compile(octets("replace_pattern", "pattern", pattern))
        )
    except re.error as error:
        raise ASTFError(f"replace_pattern: {pattern!r} is no regular expression: {error}") from error
    if not isinstance(compiled.pattern, bytes):
        raise ASTFErrorWrongType("replace_pattern: the pattern is compiled from text, compile it from bytes")

    def find(data: bytes) -> Iterator[tuple[int, int]]:
        for match in compiled.finditer(data):
            group = 1 if compiled.groups else 0
            if match.start(group) >= 0 and match.end(group) > match.start(group):
                yield match.span(group)

    return Field(f"the pattern {compiled.pattern!r}", find)


def rewrite(
    commands: Sequence[ASTFCmd],
    places: Field,
    values: Values,
    distribution: str,
    pad: bytes | None,
    peer: Sequence[ASTFCmd] | None,
) -> int:
    """Change a field in all that the commands of a program send; how often it was found.

    ``peer`` are the commands that count the bytes received, if any do. Raises ``ASTFError``.
    """
    if distribution not in DISTRIBUTIONS:
        raise ASTFError(f"{places.name}: distribution is {distribution!r}, give 'rand' or 'seq'")
    written = _values(places.name, values, pad)
    draws = tuple(written) if len(written) > 1 else None
    sends = [command for command in commands if isinstance(command, BufferCmd)]
    moved = [_Moved(command.buf_len, list(places.find(command.data)), len(written[0])) for command in sends]
    found = sum(len(one.spans) for one in moved)
    if not found:
        raise ASTFError(
            f"{places.name} is in none of the {len(sends)} buffers that the program sends: see program.dump()"
        )
    # All is worked out before anything is changed, so that an error leaves the programs as they were.
    changed = [
        _changed(command, one.spans, written[0], draws, distribution)
        for command, one in zip(sends, moved, strict=True)
    ]
    if peer is not None and any(one.size != one.new_size for one in moved):
        _follow(places.name, commands, peer, moved)
    for command, (data, drawn) in zip(sends, changed, strict=True):
        command.replace(data, drawn)
    return found


@dataclass(frozen=True)
class _Moved:
    """A buffer of ``size`` bytes in which each of ``spans`` becomes ``value_bytes`` long."""

    size: int
    spans: list[tuple[int, int]]
    value_bytes: int

    @property
    def new_size(self) -> int:
        """How long the buffer is then."""
        return self.at(self.size)

    def at(self, offset: int) -> int:
        """Where an offset comes to lie; what was within a span does at most at its end."""
        new = offset
        for start, end in self.spans:
            if end <= offset:
                new += self.value_bytes - (end - start)
            elif start < offset:
                new += min(self.value_bytes - (offset - start), 0)
        return new


def _changed(
    command: BufferCmd,
    spans: list[tuple[int, int]],
    value: bytes,
    draws: tuple[bytes, ...] | None,
    distribution: str,
) -> tuple[bytes, list[Drawn]]:
    """The new bytes of a buffer, and what is drawn in them; earlier draws move along."""
    data, at = bytearray(), 0
    drawn: list[Drawn] = []
    moves: list[tuple[int, int]] = []
    for start, end in spans:
        data += command.data[at:start]
        if draws is not None:
            drawn.append(Drawn(len(data), draws, distribution))
        data += value
        moves.append((end, len(data) - end))
        at = end
    data += command.data[at:]
    for old in command.draws:
        last = old.offset + len(old.values[0])
        if any(start < last and old.offset < end for start, end in spans):
            continue
        shift = next((shift for end, shift in reversed(moves) if end <= old.offset), 0)
        drawn.append(Drawn(old.offset + shift, old.values, old.distribution))
    if len(drawn) > PLACES_MAX:
        raise ASTFError(f"a buffer would have {len(drawn)} places that are drawn, {PLACES_MAX} is the most")
    return bytes(data), sorted(drawn, key=lambda one: one.offset)


def _values(name: str, values: Values, pad: bytes | None) -> list[bytes]:
    given = [values] if isinstance(values, (bytes, str)) else list(values)
    written = list(dict.fromkeys(octets(name, "a value", value) for value in given))
    if not 1 <= len(written) <= VALUES_MAX:
        raise ASTFError(f"{name}: there are {len(written)} values, give 1 to {VALUES_MAX}")
    if any(b"\n" in value or b"\r" in value for value in written) and name.startswith("the header"):
        raise ASTFError(f"{name}: a value has a line end, which would end the header: leave it out")
    longest = max(len(value) for value in written)
    if pad is None and any(len(value) != longest for value in written):
        raise ASTFError(
            f"{name}: the values have different lengths, give pad=, one character to fill up with"
        )
    if pad is not None and len(pad) != 1:
        raise ASTFError(f"{name}: pad is {pad!r}, give one character")
    return (
        [value if pad is None else value.ljust(longest, pad) for value in written]
        if len(written) > 1
        else written
    )


def _heads(data: bytes) -> Iterator[tuple[int, int]]:
    """The heads of the messages in a buffer: from the start line to the empty line."""
    start = 0
    while start < len(data):
        end = _HEAD_END.search(data, start)
        stop = end.start() if end else len(data)
        yield start, stop
        if end is None:
            return
        length = _LENGTH.search(data, start, stop)
        start = end.end() + (int(length[1]) if length else 0)
        if not _START_LINE.match(data, start):
            # What follows is a body of unknown length.
            return


def _follow(name: str, commands: Sequence[ASTFCmd], peer: Sequence[ASTFCmd], moved: list[_Moved]) -> None:
    """Let a program wait for as many bytes as now come. Raises ``ASTFError`` where that is not clear."""
    receives = [command for command in peer if isinstance(command, ASTFCmdRecv)]
    loops = any(isinstance(command, ASTFCmdJMPBase) for command in commands)
    base = new_base = 0
    counts = []
    for command in receives:
        position = base + command.fields["min_bytes"]
        new = _position(position, moved, loops)
        if new is None:
            raise ASTFError(
                f"{name}: the text has another length, and it is not clear how many bytes the peer "
                f"waits for then: give a text of the same length, or write the program with it"
            )
        counts.append(new - new_base)
        if command.fields.get("clear"):
            base, new_base = position, new
    for command, count in zip(receives, counts, strict=True):
        command.fields["min_bytes"] = count


def _position(position: int, moved: list[_Moved], loops: bool) -> int | None:
    """Where a position in what is sent comes to lie; None when it is not clear."""
    total, new_total = sum(one.size for one in moved), sum(one.new_size for one in moved)
    if position > total and not loops:
        # More than is ever sent: the wait is for ever, before as after.
        return position + new_total - total
    if position > total:
        # One buffer, again and again; of several it is not known which are repeated.
        rounds, rest = divmod(position, total)
        return rounds * new_total + moved[0].at(rest) if len(moved) == 1 else None
    start = new_start = 0
    for one in moved:
        if position <= start + one.size:
            return new_start + one.at(position - start)
        start, new_start = start + one.size, new_start + one.new_size
    return new_start
