"""Clients as JSON text, fast: those with the same keys are one template, filled with the bytes of each.

The values of keys that are no addresses are made once each while they are the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..rpc import _framing
from ._profile import ADDRESSES, EMUClientObj


class _Plan(NamedTuple):
    """How clients with some keys are written: the bytes of the addresses, then the other values."""

    addresses: tuple[str, ...]
    others: tuple[str, ...]
    template: str


def members(clients: Sequence[EMUClientObj]) -> bytes:
    """The member "clients" of the parameters of a request."""
    plans: dict[tuple[str, ...], _Plan] = {}
    known: dict[int, str] = {}
    texts = []
    for client in clients:
        fields = client.fields
        names = tuple(fields)
        if names not in plans:
            plans[names] = _plan(names)
        addresses, others, template = plans[names]
        data = b"".join([fields[name]._bytes for name in addresses])
        if others:
            texts.append(template % (*data, *[_text(fields[name], known) for name in others]))
        else:
            texts.append(template % tuple(data))
    return ('"clients":[' + ",".join(texts) + "]").encode()


def _plan(names: tuple[str, ...]) -> _Plan:
    addresses = tuple(name for name in names if name in ADDRESSES)
    others = tuple(name for name in names if name not in ADDRESSES)
    lists = [f'"{name}":[{",".join(["%d"] * ADDRESSES[name].BYTES_NUM)}]' for name in addresses]
    template = "{" + ",".join([*lists, *(f'"{name}":%s' for name in others)]) + "}"
    return _Plan(addresses, others, template)


def _text(value: Any, known: dict[int, str]) -> str:
    # Values live as long as their clients, so that their number is theirs alone.
    text = known.get(id(value))
    if text is None:
        text = known[id(value)] = _framing.encode(value).decode()
    return text
