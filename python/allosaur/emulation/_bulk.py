"""Clients as JSON text, fast: most of an address is the same as that of the client before.

The bytes of an address are decimal numbers in a list. Of each half of it (all but the last two bytes, and
those) the text is made once; the values of other keys are made once each while they are the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rpc import _framing
from ._profile import EMUClientObj
from ._values import EMUType

_HEADS_MAX = 4_096
"""Of so many beginnings of addresses the text is kept; then they are made anew."""


class _Text(dict[bytes, str]):
    """The text of bytes, made when it is first wanted."""

    def __missing__(self, data: bytes) -> str:
        if len(self) > _HEADS_MAX and len(data) > 2:
            self.clear()
        text = self[data] = "".join(f"{byte}," for byte in data)
        return text


_HEADS = _Text()
_TAILS = _Text()


def members(clients: Sequence[EMUClientObj]) -> bytes:
    """The member "clients" of the parameters of a request."""
    others: dict[int, str] = {}
    texts = [
        "{" + ",".join([f'"{name}":{_value(value, others)}' for name, value in client.fields.items()]) + "}"
        for client in clients
    ]
    return ('"clients":[' + ",".join(texts) + "]").encode()


def _value(value: Any, others: dict[int, str]) -> str:
    if isinstance(value, EMUType):
        data = value._bytes
        return f"[{_HEADS[data[:-2]]}{_TAILS[data[-2:]][:-1]}]"
    # Values live as long as their clients, so that their number is theirs alone.
    text = others.get(id(value))
    if text is None:
        text = others[id(value)] = _framing.encode(value).decode()
    return text
