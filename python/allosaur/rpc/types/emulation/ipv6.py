"""Replies of the RPC: ipv6.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class MldGroup(TypedDict):
    """A group."""

    ipv6: list[int]
    """Its address."""
    management: bool
    """Whether a user asked for it."""
    refc: int
    """How many addresses of clients are in it."""
    mode: int
    """1 from all sources, 2 from those of `sv`."""
    sv: NotRequired[list[list[int]]]
    """Its sources."""


class PageOfMldGroup(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[MldGroup] | None
    """What is on the page, in the order of the table."""


class NdNeighbor(TypedDict):
    """A neighbor, in the RPC."""

    ipv6: list[int]
    """Its IPv6 address."""
    refc: int
    """How many clients need it."""
    state: int
    """How well it is known: 16 heard of, 17 looked for, 18 known, 19 known and silent for long."""
    resolve: bool
    """Whether its MAC address is known."""
    mac: list[int]
    """Its MAC address."""


class PageOfNdNeighbor(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[NdNeighbor] | None
    """What is on the page, in the order of the table."""
