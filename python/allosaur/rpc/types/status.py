"""Replies of the RPC: status.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class PortOwner(TypedDict):
    """Who owns a port."""

    user: str
    """The user."""
    session_id: int
    """The user's session."""
    lease_s: float | None
    """How long it may be silent, in seconds; `null` for ever."""


class RunUse(TypedDict):
    """What runs."""

    running_s: float
    """Since how many seconds; negative before a start that lies ahead."""
    duration_s: float | None
    """For how many seconds in all; `null` until it is stopped."""
    multiplier: float
    """What its rates are multiplied by."""


class ProfileUse(TypedDict):
    """What a profile does."""

    profile_id: str
    """Its name."""
    state: str | int
    """What it does."""
    streams: int | None
    """Its streams; `null` of a stateful one."""
    run: RunUse | None
    """What runs of it, if something does."""


class PortUse(TypedDict):
    """Who owns a port, and what it does."""

    port_id: int
    """Its number."""
    mode: str
    """Its mode: `STL` or `ASTF`."""
    owner: PortOwner | None
    """Who owns it, if somebody does."""
    state: str
    """As `get_port_status` calls it."""
    profiles: list[ProfileUse]
    """Its profiles that have streams."""


class Status(TypedDict):
    """Reply of `get_status`."""

    mode: str
    """The mode that the request is for: `STL` or `ASTF`."""
    modes: list[str]
    """The modes that ports can be in."""
    uptime_s: float
    """How long the server runs, in seconds."""
    ports: list[PortUse]
    """The ports, in order."""
    profiles: list[ProfileUse]
    """Profiles of flows; none in stateless mode."""
