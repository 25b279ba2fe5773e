"""Replies of the RPC: traffic.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TypedDict


class Started(TypedDict):
    """Reply of `start_traffic`."""

    multiplier: float
    """The factor of the rates in the streams."""
    ts: float
    """When the traffic starts, on the clock of `ping`, in seconds."""


class ValidatedRates(TypedDict):
    """Part of [`Validated`]; `min` is what no multiplier changes."""

    max_bps_l2: float
    """Bits a second at layer 2."""
    max_bps_l1: float
    """Bits a second at layer 1."""
    max_pps: float
    """Packets a second."""
    max_line_util: float
    """At layer 1, in percent of the line rate."""
    min_bps_l2: float
    """Of `max_bps_l2`, what no multiplier changes."""
    min_bps_l1: float
    """Of `max_bps_l1`, what no multiplier changes."""
    min_pps: float
    """Of `max_pps`, what no multiplier changes."""
    min_line_util: float
    """Of `max_line_util`, what no multiplier changes."""


class ValidatedEvent(TypedDict):
    """A stream begins or ends; how much the rate changes with that."""

    time_usec: float
    """When, in microseconds from the start."""
    diff_bps_l2: float
    """Bits a second at layer 2."""
    diff_bps_l1: float
    """Bits a second at layer 1."""
    diff_pps: float
    """Packets a second."""
    stream_id: int
    """The stream."""


class ValidatedGraph(TypedDict):
    """Part of [`Validated`]."""

    expected_duration: float
    """Microseconds until the last packet; -1 when there is no end."""
    events_count: int
    """How many events there are, also those that are left out here."""
    events: list[ValidatedEvent]
    """The first events, at most [`GRAPH_EVENTS_MAX`]."""


class Validated(TypedDict):
    """Reply of `validate`."""

    rate: ValidatedRates
    """The highest rates at a multiplier of 1."""
    graph: ValidatedGraph
    """The rate over time."""
