"""Replies of the RPC: stateful mode: tunnels.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class TunnelSupport(TypedDict):
    """Reply of `is_tunnel_supported`."""

    is_tunnel_supported: bool
    """Whether there are such tunnels."""
    error_msg: NotRequired[str]
    """Why not."""


class TunnelTopology(TypedDict):
    """Reply of `tunnel_topo_get`."""

    tunnel_topo_data: str
    """The tunnels: JSON as text."""
