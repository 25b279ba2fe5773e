"""Replies of the RPC: stateful mode: the server.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class ContextHandlers(TypedDict):
    """Reply of `acquire` in stateful mode."""

    handler: str
    """What commands of the server's owner carry."""
    ports: dict[str, str]
    """By port, what commands of a port's owner carry."""


class Synced(TypedDict):
    """Reply of `sync`."""

    epoch: int
    """How often stateful traffic has begun."""
    state: int
    """What all profiles do together."""
    state_profile: NotRequired[dict[str, int]]
    """What each profile does, if it was asked for."""


class Epoch(TypedDict):
    """Reply of `inc_epoch`."""

    epoch: int
    """How often stateful traffic has begun."""
