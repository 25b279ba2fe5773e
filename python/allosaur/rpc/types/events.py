"""Replies of the RPC: events.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import Any, TypedDict


class QueuedEvent(TypedDict):
    """An event as a session sees it."""

    name: str
    """`trex-event`."""
    type: int
    """The number of its type."""
    data: dict[str, Any]
    """What has happened: the fields of its type."""
    seq: int
    """Counts from 0 in each session, without gaps."""


class Events(TypedDict):
    """Reply of `get_async_events`."""

    data: list[QueuedEvent]
    """The events, oldest first."""
