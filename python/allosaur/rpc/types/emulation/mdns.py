"""Replies of the RPC: mdns.

Written from the command table in `crates/emulation`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


Refused = bool | list[str]
"""The host names that were not given, since another client has them, or not taken, since the
client does not have them; `true` when there are none."""


class CachedAnswer(TypedDict):
    """An answer that is kept, in the RPC."""

    name: str
    """The name."""
    dns_type: str
    """The type, such as `A`."""
    dns_class: str
    """The class, such as `IN`."""
    ttl: int
    """For how many seconds it was said to hold."""
    answer: str
    """The answer."""
    time_left: int
    """For how many seconds it is kept still."""


class PageOfCachedAnswer(TypedDict):
    """A page of a table."""

    empty: bool
    """Whether the table has nothing."""
    stopped: bool
    """Whether there was nothing left to go on with."""
    data: list[CachedAnswer] | None
    """What is on the page, in the order of the table."""
