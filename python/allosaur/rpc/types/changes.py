"""Replies of the RPC: traffic that runs.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class Updated(TypedDict):
    """Reply of `update_traffic` and `update_streams`."""

    multiplier: float
    """The factor of the rates in the streams."""
