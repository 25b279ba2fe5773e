"""What callers give for an argument: numbers, addresses and words, also as text, as Tcl scripts have them.

A reader takes the name of the argument and its value, and returns the value in one form. It raises
``STLArgumentError``, which names the argument and says what to give.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from .._errors import STLArgumentError

Reader = Callable[[str, object], Any]

_LOW_32_BITS = 0xFFFF_FFFF
_MAC_PARTS = re.compile(r"[-:.\s]+")
_HEXADECIMAL = re.compile(r"(0[xX])?[0-9A-Fa-f]+")
_MAC_FORMS = "a MAC address: 01:23:45:67:89:10, 01-23-45-67-89-10, 0123.4567.8910 or {01 23 45 67 89 10}"
_YES = ("true", "1", "enable", "enabled", "yes", "y")
_NO = ("false", "0", "disable", "disabled", "no", "n", "")
_TAG_PROTOCOLS = (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300)


def anything(name: str, value: object) -> Any:
    """The value as it is."""
    return value


def flag(name: str, value: object) -> bool:
    """Yes or no, as True, 1, "1", "yes", "enable" and the like."""
    word = str(value).lower()
    if word not in (*_YES, *_NO):
        raise STLArgumentError(name, value, "True or False")
    return word in _YES


def whole(least: int, most: int) -> Reader:
    """A whole number from ``least`` to ``most``."""

    def read(name: str, value: object) -> int:
        number = _number(value)
        if number is None or not least <= number <= most:
            raise STLArgumentError(name, value, f"a whole number from {least} to {most}")
        return number

    return read


def real(least: float, most: float = float("inf"), above: bool = False) -> Reader:
    """A number from ``least`` (with ``above``: greater than that) to ``most``."""

    def read(name: str, value: object) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        if isinstance(value, bool) or not least <= number <= most or (above and number == least):
            limit = "" if most == float("inf") else f" and at most {most:g}"
            raise STLArgumentError(name, value, f"a number {'above' if above else 'from'} {least:g}{limit}")
        return number

    return read


def as_given(reader: Reader) -> Reader:
    """What another reader takes, in the type in which it was given: 12 is sent as 12, not as 12.0."""

    def read(name: str, value: object) -> Any:
        number = reader(name, value)
        return value if isinstance(value, (int, float)) else number

    return read


def one_of(*words: str) -> Reader:
    """One of some words."""

    def read(name: str, value: object) -> str:
        if value not in words:
            raise STLArgumentError(name, value, words)
        return str(value)

    return read


def mac(name: str, value: object) -> str:
    """A MAC address in any of the usual forms, as "01:23:45:67:89:10"."""
    octets = _mac_bytes(value)
    if octets is None:
        raise STLArgumentError(name, value, _MAC_FORMS)
    return octets.hex(":")


def ipv4(name: str, value: object) -> str:
    """An IPv4 address, as "16.0.0.1" or a number."""
    number = _ip_number(ipaddress.IPv4Address, value)
    if number is None:
        raise STLArgumentError(name, value, "an IPv4 address such as 16.0.0.1")
    return str(ipaddress.IPv4Address(number))


def ipv6(name: str, value: object) -> str:
    """An IPv6 address, as "2001:db8::1"."""
    number = _ip_number(ipaddress.IPv6Address, value) if isinstance(value, str) else None
    if number is None:
        raise STLArgumentError(name, value, "an IPv6 address such as 2001:db8::1")
    return str(ipaddress.IPv6Address(number))


def step(form: str) -> Reader:
    """How far values are apart: a number, or an address of a ``form``, of which the lowest 32 bits count."""

    def read(name: str, value: object) -> int:
        number = _number(value)
        if number is None and form == "mac":
            octets = _mac_bytes(value)
            number = None if octets is None else int.from_bytes(octets[2:], "big")
        elif number is None:
            kind = ipaddress.IPv4Address if form == "ipv4" else ipaddress.IPv6Address
            address = _ip_number(kind, value)
            number = None if address is None else address & _LOW_32_BITS
        if number is None or not 0 <= number <= _LOW_32_BITS:
            raise STLArgumentError(
                name, value, f"a number from 1 to {_LOW_32_BITS}, or it in the form of {form}"
            )
        return number

    return read


def tag_protocol(name: str, value: object) -> int | None:
    """The type that announces a VLAN tag: a number or hexadecimal text; None is the usual 0x8100."""
    if value is None:
        return None
    protocol = value if isinstance(value, int) else None
    if isinstance(value, str) and _HEXADECIMAL.fullmatch(value):
        protocol = int(value, 16)
    if protocol not in _TAG_PROTOCOLS:
        raise STLArgumentError(
            name, value, f"one of {', '.join(f'0x{known:04x}' for known in _TAG_PROTOCOLS)}"
        )
    return protocol


def several(read_one: Reader) -> Reader:
    """A value for each VLAN tag, from the outermost: a list, "1 2 3", "{1 2 3}", or one value."""

    def read(name: str, value: object) -> list[Any]:
        if isinstance(value, str):
            value = value.strip("{} ").split()
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if not values:
            raise STLArgumentError(name, value, "one value for each VLAN tag")
        return [read_one(name, one) for one in values]

    return read


def _number(value: object) -> int | None:
    """A whole number, also in text; None for all else."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value):
        return int(value)
    return int(value) if isinstance(value, int) else None


def _mac_bytes(value: object) -> bytes | None:
    if not isinstance(value, str):
        return None
    parts = _MAC_PARTS.split(value.strip("{} "))
    widths = {6: 2, 3: 4}.get(len(parts), 0)
    if any(not re.fullmatch(rf"[0-9A-Fa-f]{{1,{widths or 1}}}", part) for part in parts):
        return None
    digits = "".join(part.zfill(widths) for part in parts)
    return bytes.fromhex(digits) if len(digits) == 12 else None


def _ip_number(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address], value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    try:
        return int(kind(value))
    except ValueError:
        return None
