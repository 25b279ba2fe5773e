"""Replies of the RPC: bgp speakers.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class RoutesAnnounced(TypedDict):
    """Reply of `routes_announce`."""

    routes: int
    """Routes of the table."""
    family: Literal["ipv4", "ipv6"]
    """Their family."""
    sessions: int
    """Sessions on which they are being sent; others get them when they come up."""


class AnnouncedTableInfo(TypedDict):
    """A table that is announced."""

    name: str
    """Its name."""
    family: Literal["ipv4", "ipv6"]
    """The family of its routes."""
    routes: int
    """How many it has."""
    encoded_bytes: int
    """Bytes of the messages that it was encoded into."""
    rate: int | None
    """Routes per second, where that was said."""


class BgpCounters(TypedDict):
    """What a session counts, from its begin on."""

    established: int
    """How often it came to be established."""
    announced: int
    """Routes announced to the peer."""
    withdrawn: int
    """Routes withdrawn from the peer."""
    bytes_sent: int
    """Bytes that the kernel took."""
    bytes_unacknowledged: int
    """Bytes that the peer has not acknowledged."""
    bytes_received: int
    """Bytes received."""
    updates_received: int
    """UPDATE messages received."""
    announcements_received: int
    """Routes that the peer announced."""
    looped_received: int
    """Routes of the peer that were ignored, since their path has the speaker's own AS number."""
    withdrawals_received: int
    """Routes that the peer withdrew."""
    treated_as_withdrawn: int
    """UPDATE messages whose routes counted as withdrawn for an error in them (RFC 7606)."""
    discarded_attributes: int
    """Attributes that were ignored for an error in them (RFC 7606)."""
    notifications_sent: int
    """NOTIFICATION messages sent."""
    notifications_received: int
    """NOTIFICATION messages received."""
    connections_failed: int
    """Connections that could not be opened."""


class BgpSessionInfo(TypedDict):
    """A session."""

    peer: str
    """The peer's address."""
    peer_asn: int | None
    """The peer's AS number, once it has told it, or as it was asked for."""
    state: str
    """Idle, Connect, Active, OpenSent, OpenConfirm or Established (RFC 4271)."""
    established_s: float | None
    """For how long it is established."""
    hold_time_s: int | None
    """The hold time that both ends agreed upon; 0 is none."""
    families: list[Literal["ipv4", "ipv6"]]
    """The families that both ends have."""
    last_error: str | None
    """Why it ended the last time, or could not be made."""
    queued: int
    """Tables that wait to be sent, announcements and withdrawals together."""
    queued_s: float | None
    """Seconds since the last routes were queued."""
    sent_s: float | None
    """Seconds from then until the last byte was handed to the kernel; `null` while some wait."""
    acknowledged_s: float | None
    """Seconds from then until the peer's kernel had acknowledged all; `null` until it has."""
    counters: BgpCounters
    """What it has counted."""


class SpeakerInfo(TypedDict):
    """A speaker."""

    name: str
    """Its name."""
    asn: int
    """Its AS number."""
    router_id: str
    """Its BGP Identifier."""
    hold_time_s: int
    """The hold time that it offers."""
    namespace: str | None
    """The network namespace that it is in; `null` is the server's own."""
    address: str | None
    """The address that its connections come from."""
    tables: list[AnnouncedTableInfo]
    """What it announces."""
    sessions: list[BgpSessionInfo]
    """Its sessions."""
    shared_bytes: int
    """Bytes of memory of encoded tables, which all its sessions share."""


class RoutesShown(TypedDict):
    """Reply of `routes_show`."""

    speakers: list[SpeakerInfo]
    """The speakers, by their names."""
