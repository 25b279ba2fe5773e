"""The buffers of a profile: the bytes that programs send, each kept once.

Beside them are the lists of values that replace parts of a buffer, one for each connection.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from ._commands import BufferCmd, Drawn
from ._errors import ASTFError

DRAW_LISTS_MAX = 256


class Buffers:
    """The ``buf_list`` and the ``draw_lists`` of a profile, in the order in which they were first used."""

    def __init__(self) -> None:
        self._buffers: dict[str, tuple[int, Any]] = {}
        self._draws: dict[tuple[tuple[bytes, ...], str], int] = {}

    def sent(self, command: BufferCmd) -> dict[str, Any]:
        """The fields by which a command names its bytes."""
        buffer = command.buffer()
        key = json.dumps(buffer, sort_keys=True)
        index, _ = self._buffers.setdefault(key, (len(self._buffers), buffer))
        fields: dict[str, Any] = {"buf_index": index}
        if command.draws:
            fields["draw"] = [{"offset": drawn.offset, "list": self._drawn(drawn)} for drawn in command.draws]
        return fields

    def to_json(self) -> list[str | dict[str, Any]]:
        """The ``buf_list`` of the protocol."""
        return [buffer for _, buffer in self._buffers.values()]

    def draws_to_json(self) -> list[dict[str, Any]]:
        """The ``draw_lists``, which are our own: see ``ASTFProgram.replace_header``."""
        return [
            {
                "distribution": distribution,
                "values": [base64.b64encode(value).decode() for value in values],
            }
            for values, distribution in self._draws
        ]

    def __len__(self) -> int:
        return len(self._buffers)

    def _drawn(self, drawn: Drawn) -> int:
        index = self._draws.setdefault((drawn.values, drawn.distribution), len(self._draws))
        if index >= DRAW_LISTS_MAX:
            raise ASTFError(f"a profile has at most {DRAW_LISTS_MAX} lists that connections draw from")
        return index
