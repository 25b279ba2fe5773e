"""Replies of the RPC: captures that are sent.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class RemotePushed(TypedDict):
    """Reply of `push_remote`. It comes before the first packet leaves. Events 0 and 4 (or 1,
    when stopped) of the port follow, and with `is_dual` those of its peer."""

    early_packets: NotRequired[int]
    """How many packets of the file were recorded before one in front of them, where there are
    some: they leave with it."""
