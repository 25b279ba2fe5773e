"""Replies of the RPC: stateful mode: profiles.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class FragmentReply(TypedDict):
    """Reply of `profile_fragment`. After a first part, when this very text is loaded already and
    the other parts need not be sent; else `null`."""

    matches_loaded: bool
    """`true`."""


StatefulProfileNames = list[str | dict[str, list[str]]]
"""Reply of `get_profile_list` in stateful mode. The names, and with `profiles_in_ports` after
them the stateless profiles of each port."""
