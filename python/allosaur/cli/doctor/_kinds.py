"""Kinds of ports, and what they need of a machine: as the server's program tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MEMORY, INTERFACE, CARD = "memory", "interface", "card"
"""What ports are on."""


@dataclass(frozen=True)
class PortKind:
    """A kind of ports: a row of the server's table."""

    name: str
    title: str
    """What people call it."""
    on: str
    is_built: bool = True
    """Whether the server was built with it."""
    linux: tuple[int, int] = (0, 0)
    """The oldest kernel."""
    capabilities: tuple[str, ...] = ()
    capabilities_given: tuple[str, ...] = ()
    """Those to give to a program that lacks some: with some that it could do without."""
    sockets: str = ""
    """What the server opens, in words."""
    protocol: str = ""
    """The line of /proc/net/protocols without which the kernel has none."""
    kernel_option: str = ""
    locked_mib: int = 0
    """Memory that stays in place."""
    hugepages_mib: int = 0


def rows(kinds: Iterable[dict[str, Any]]) -> tuple[PortKind, ...]:
    """Read the table."""
    return tuple(_row(kind, kind["needs"]) for kind in kinds)


def _row(kind: dict[str, Any], needs: dict[str, Any]) -> PortKind:
    major, minor = needs["linux"]
    return PortKind(
        name=kind["name"],
        title=kind["title"],
        on=kind["on"],
        is_built=kind["built"],
        linux=(major, minor),
        capabilities=tuple(needs["capabilities"]),
        capabilities_given=tuple(needs["capabilities_given"]),
        sockets=needs["sockets"],
        protocol=needs["protocol"],
        kernel_option=needs["kernel_option"],
        locked_mib=needs["locked_mib"],
        hugepages_mib=needs["hugepages_mib"],
    )


def names(kinds: Iterable[PortKind]) -> tuple[str, ...]:
    """Return their names."""
    return tuple(kind.name for kind in kinds)


def titles(kinds: Iterable[PortKind]) -> str:
    """Return what people call them, in a row."""
    return " and ".join(kind.title for kind in kinds)
