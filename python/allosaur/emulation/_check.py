"""Arguments of the methods, checked before anything is sent: an error names the argument and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .._errors import STLArgumentError, STLTypeError

_T = TypeVar("_T")

MTU_MIN, MTU_MAX = 256, 9000


def kind(name: str, value: object, *kinds: type[Any]) -> None:
    """Refuse a value that is of none of these types; a bool is no number."""
    is_bool = isinstance(value, bool)
    if not isinstance(value, kinds) or (is_bool and bool not in kinds):
        raise STLTypeError(name, type(value), list(kinds))


def optional(name: str, value: object, *kinds: type[Any]) -> None:
    """Refuse a value that is neither None nor of one of these types."""
    if value is not None:
        kind(name, value, *kinds)


def within(name: str, value: object, lowest: int, highest: int) -> int:
    """A whole number of this range."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise STLArgumentError(name, value, f"a number from {lowest} to {highest}")
    return value


def several(name: str, value: _T | Iterable[_T], wanted: type[_T]) -> list[_T]:
    """One thing or several, as a list. Raises ``STLTypeError`` for one of another type."""
    things: Sequence[Any] = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    for thing in things:
        if not isinstance(thing, wanted):
            raise STLTypeError(name, type(thing), wanted)
    return list(things)


def rate(max_rate: int | None) -> None:
    """Refuse a rate at which nothing would ever be sent."""
    optional("max_rate", max_rate, int, float)
    if max_rate is not None and max_rate <= 0:
        raise STLArgumentError("max_rate", max_rate, "clients a second above zero, or leave it out")


def unique(name: str, addresses: Sequence[bytes], shown: Callable[[bytes], object]) -> None:
    """Refuse an address that is there twice; `shown` makes of its bytes what the error says."""
    if len(set(addresses)) == len(addresses):
        return
    seen: set[bytes] = set()
    for address in addresses:
        if address in seen:
            raise STLArgumentError(name, str(shown(address)), "another MAC: two of these clients have it")
        seen.add(address)
