"""Replies of the RPC: arp.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class ArpConfig(TypedDict):
    """Whether ARP is on."""

    enable: bool
    """Whether it is."""


class ArpNeighbor(TypedDict):
    """A neighbor."""

    ipv4: list[int]
    """Its IPv4 address."""
    refc: int
    """How many clients need it."""
    state: int
    """How well it is known: 16 heard of, 17 looked for, 18 known, 19 known and silent for long."""
    resolve: bool
    """Whether its MAC address is known."""
    mac: list[int]
    """Its MAC address."""


class PageOfArpNeighbor(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[ArpNeighbor] | None
    """What is on the page, in the order of the table."""
