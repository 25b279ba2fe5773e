"""Checks of arguments: each names the place, the parameter, what was given and what to give."""

from __future__ import annotations

import ipaddress
from typing import Any

from ._errors import ASTFError, ASTFErrorBadIp, ASTFErrorBadIpRange, ASTFErrorMissingParam, ASTFErrorWrongType

U16_MAX = (1 << 16) - 1
U32_MAX = (1 << 32) - 1
U64_MAX = (1 << 64) - 1


def whole(where: str, name: str, value: Any, low: int, high: int) -> int:
    """A whole number within its range. Raises ``ASTFError``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give a whole number, {low} to {high}")
    if not low <= value <= high:
        raise ASTFError(f"{where}: {name} is {value}, give {low} to {high}")
    return value


def number(where: str, name: str, value: Any, low: float, high: float) -> float:
    """A number within its range, as it was given. Raises ``ASTFError``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give a number, {low:g} to {high:g}")
    if not low <= value <= high:
        raise ASTFError(f"{where}: {name} is {value}, give {low:g} to {high:g}")
    return value


def flag(where: str, name: str, value: Any) -> bool:
    """True or False. Raises ``ASTFError``."""
    if value not in (0, 1) or not isinstance(value, int):
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give True or False")
    return bool(value)


def of_kind(where: str, name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    """An object of one of our classes. Raises ``ASTFError``."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        if value is None:
            raise ASTFErrorMissingParam(f"{where}: {name} is missing, give an object of {names}")
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give an object of {names}")


def listed(where: str, name: str, value: Any, kind: type) -> list[Any]:
    """One object of a class, or several in a list. Raises ``ASTFError``."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        of_kind(where, name, item, kind)
    return items


def octets(where: str, name: str, value: Any) -> bytes:
    """Bytes, or text of ASCII characters. Raises ``ASTFError``."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if not isinstance(value, str):
        raise ASTFErrorWrongType(f"{where}: {name} is {value!r}, give bytes or text")
    try:
        return value.encode("ascii")
    except UnicodeEncodeError:
        raise ASTFError(f"{where}: {name} is text that is not ASCII: encode it and give bytes") from None


def ipv4(where: str, name: str, value: Any) -> str:
    """An IPv4 address as text. Raises ``ASTFError``."""
    try:
        return str(ipaddress.IPv4Address(str(value)))
    except ValueError:
        raise ASTFErrorBadIp(
            f"{where}: {name} is {value!r}, give an IPv4 address such as '16.0.0.1'"
        ) from None


def ipv6_octets(where: str, name: str, value: Any) -> list[int]:
    """The sixteen bytes of an IPv6 address. Raises ``ASTFError``."""
    try:
        return list(ipaddress.IPv6Address(value if isinstance(value, str) else None).packed)
    except ValueError:
        raise ASTFErrorBadIp(
            f"{where}: {name} is {value!r}, give an IPv6 address such as '2001:db8::'"
        ) from None


def ipv4_range(where: str, name: str, value: Any) -> tuple[str, str]:
    """Two IPv4 addresses in order. Raises ``ASTFError``."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ASTFErrorBadIpRange(f"{where}: {name} is {value!r}, give the first and the last address")
    first, last = (ipv4(where, name, address) for address in value)
    if as_number(first) > as_number(last):
        raise ASTFErrorBadIpRange(f"{where}: {name} is empty, {first} comes after {last}: swap them")
    return first, last


def as_number(address: str) -> int:
    """An IPv4 address as a number."""
    return int(ipaddress.IPv4Address(address))
