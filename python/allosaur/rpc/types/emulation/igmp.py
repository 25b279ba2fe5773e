"""Replies of the RPC: igmp.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class IgmpGroup(TypedDict):
    """A group."""

    g: list[int]
    """Its address."""
    mode: int
    """1 from all sources, 2 from those of `sv`."""
    sv: NotRequired[list[list[int]]]
    """Its sources."""


class PageOfIgmpGroup(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[IgmpGroup] | None
    """What is on the page, in the order of the table."""


class MembershipSettings(TypedDict):
    """Who speaks for the groups of a namespace, and how."""

    mtu: int
    """The longest report, in bytes."""
    dmac: list[int]
    """The MAC address of the client that speaks."""
    version: int
    """The version of the protocol."""
