"""Clients as JSON text, fast: those with the same keys share a template, their addresses are made at once.

A byte of an address is three characters and a comma, padded in front by spaces, which JSON allows: so the
digits of all bytes come from three translations of all addresses in a row, and lie at known places.
Other values are made once each while they are the same object, or alike.
"""

from __future__ import annotations

import json
import marshal
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._profile import ADDRESSES, EMUClientObj

_CHARACTERS_A_BYTE = 4
_DIGITS = [bytes(f"{byte:3d}"[place].encode()[0] for byte in range(256)) for place in range(3)]
"""What each byte becomes at each of the three places."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


class _Plan(NamedTuple):
    """How clients with some keys are written: the addresses as lists of bytes, then the other values."""

    addresses: tuple[str, ...]
    others: tuple[str, ...]
    lists: struct.Struct
    template: bytes


def members(clients: Sequence[EMUClientObj]) -> bytes:
    """The member "clients" of the parameters of a request."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, client in enumerate(clients):
        names = tuple(client._given)
        if names in alike:
            alike[names].append(number)
        else:
            alike[names] = [number]
    known: dict[int | bytes, bytes] = {}
    texts = [b""] * len(clients)
    for names, numbers in alike.items():
        plan = _plan(names)
        given = [clients[number]._given for number in numbers]
        lists = plan.lists.iter_unpack(
            _listed(b"".join([one[name] for one in given for name in plan.addresses]))
        )
        for number, one, bytes_of in zip(numbers, given, lists, strict=True):
            texts[number] = plan.template % (*bytes_of, *[_text(one[name], known) for name in plan.others])
    return b'"clients":[' + b",".join(texts) + b"]"


def _plan(names: tuple[str, ...]) -> _Plan:
    addresses = tuple(name for name in names if name in ADDRESSES)
    others = tuple(name for name in names if name not in ADDRESSES)
    sizes = [_CHARACTERS_A_BYTE * ADDRESSES[name].BYTES_NUM - 1 for name in addresses]
    lists = struct.Struct("".join(f"{size}sx" for size in sizes))
    parts = [*(f'"{name}":[%b]' for name in addresses), *(f'"{name}":%b' for name in others)]
    return _Plan(addresses, others, lists, ("{" + ",".join(parts) + "}").encode())


def _listed(data: bytes) -> bytes:
    """Bytes as decimal numbers, a comma behind each."""
    text = bytearray(b"," * (_CHARACTERS_A_BYTE * len(data)))
    for place, digits in enumerate(_DIGITS):
        text[place::_CHARACTERS_A_BYTE] = data.translate(digits)
    return bytes(text)


def _text(value: Any, known: dict[int | bytes, bytes]) -> bytes:
    # Values live as long as their clients, so that their number is theirs alone.
    text = known.get(id(value))
    if text is None:
        text = known[id(value)] = _alike(value, known)
    return text


def _alike(value: Any, known: dict[int | bytes, bytes]) -> bytes:
    """The text of a value, made once for all that are alike to the type: 1, 1.0 and True are not.

    Version 2 of marshal is the last in which the bytes depend on nothing but the value.
    """
    try:
        same = marshal.dumps(value, 2)
    except ValueError:
        return _encode(value).encode()
    text = known.get(same)
    if text is None:
        text = known[same] = _encode(value).encode()
    return text
