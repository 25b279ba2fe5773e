"""Replies of the RPC: profiles and streams.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


ProfileNames = list[str]
"""The names of profiles."""


StreamNumbers = list[int] | dict[str, list[int]]
"""The numbers of a profile's streams; for `*` an object of them by profile."""


class AllStreams(TypedDict):
    """Reply of `get_all_streams`."""

    profiles: NotRequired[dict[str, dict[str, dict[str, Any]]]]
    """For `*`: the streams by number, by profile, without profiles that have none."""
    streams: NotRequired[dict[str, dict[str, Any]]]
    """Of one profile: its streams by number, as they were given to `add_stream`."""


class OneStream(TypedDict):
    """Reply of `get_stream`."""

    stream: dict[str, Any]
    """The stream, as it was given to `add_stream`."""
