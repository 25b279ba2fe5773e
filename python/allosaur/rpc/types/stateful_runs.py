"""Replies of the RPC: stateful mode: runs.

Written from the command table in `crates/api`: change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class FlowRates(TypedDict):
    """Reply of `get_flow_rates`."""

    offered_cps: float
    """Connections per second that the profile asks for now, with its multiplier and on the
    client ports that take part."""
    begun_cps: float
    """Connections per second that began over the last second."""
    achieved_cps: float
    """Connections per second that were established over the last second."""
    begun: int
    """Connections that began since the start."""
    established: int
    """Connections that were established since the start."""
    missed: int
    """Connections that could not begin in time since the start."""
    duration_s: float
    """Seconds since the start, or from the start to the end."""
    ended_by: Literal["done", "stopped", "not established"] | None
    """Why it ended; `null` while it runs."""
    hosts: int
    """How many emulated clients were ready when it began, of all its pools of such."""


class OutcomeCounts(TypedDict):
    """How many flows ended in which way, and what their programs met."""

    completed: int
    """The program came to its end, and all that it sent was acknowledged."""
    reset: int
    """The peer reset it before."""
    closed_early: int
    """The peer closed in order while the program waited for data, or had some to deliver."""
    timed_out: int
    """The peer was silent."""
    refused: int
    """A reset answered the SYN."""
    cut_off: int
    """The end of the test ended it."""
    aborted: int
    """We gave it up for want of room, or could not handle what came."""
    unanswered: int
    """Flows whose program waits for data, and that ended without any."""
    http_1xx: int
    """Answers to requests of HTTP/1 with a status of 100 to 199."""
    http_2xx: int
    """With 200 to 299."""
    http_3xx: int
    """With 300 to 399."""
    http_4xx: int
    """With 400 to 499."""
    http_5xx: int
    """With 500 to 599."""
    http_other: int
    """Answers to requests of HTTP/1 that begin with no status line."""


class GroupOutcomes(TypedDict):
    """How the flows of a template group ended."""

    client: OutcomeCounts
    """Those of clients."""
    server: OutcomeCounts
    """Those of servers."""


class DurationStats(TypedDict):
    """How long something took."""

    count: int
    """How many were measured. The other fields are there when it is not 0."""
    average_us: NotRequired[float]
    """The mean, in microseconds."""
    max_us: NotRequired[float]
    """The longest, in microseconds."""
    min_us: NotRequired[float]
    """The shortest, in microseconds."""
    p50_us: NotRequired[float]
    """So many microseconds or less did half of them take. Percentiles are right within a few
    percent."""
    p90_us: NotRequired[float]
    """The same of 90 %."""
    p99_9_us: NotRequired[float]
    """The same of 99.9 %."""
    p99_us: NotRequired[float]
    """The same of 99 %."""


class FlowDurations(TypedDict):
    """How long flows took that clients began."""

    connect: DurationStats
    """TCP: from the SYN to the connection."""
    first_byte: DurationStats
    """From the beginning to the first data."""
    program: DurationStats
    """From the beginning to the end of the program, of flows that completed."""
    handshake: DurationStats
    """The handshake that secures a connection, such as TLS."""
    response_begin: DurationStats
    """From a request of HTTP to the first byte of its response."""
    response: DurationStats
    """From a request of HTTP to the last byte of its response."""


class ApplicationCount(TypedDict):
    """A counter that an application declares, such as handshakes of TLS by their kind."""

    name: str
    """Its name."""
    is_error: bool
    """Whether it is 0 unless something goes wrong."""
    client: int
    """What clients counted."""
    server: int
    """What servers counted."""
    label: NotRequired[str]
    """What of its kind it counts: of an alert, its name."""


class FlowOutcomes(TypedDict):
    """Reply of `get_flow_outcomes`."""

    client: OutcomeCounts
    """How many of the clients' flows ended in which way."""
    server: OutcomeCounts
    """The same of servers. One is `completed`, too, when its peer closes between two requests."""
    groups: dict[str, GroupOutcomes]
    """The same by the name of the template group."""
    times: FlowDurations
    """How long flows took that clients began."""
    applications: list[ApplicationCount]
    """What the applications count that programs run over, such as TLS; nothing where they run
    over none."""


class TcpFlow(TypedDict):
    """What TCP knows of a flow."""

    origin: Literal["client", "server"]
    """Which end of it is ours."""
    duration: int
    """How long it has been there, in milliseconds."""
    state: int
    """The state of TCP, as BSD numbers it."""
    options: str
    """What both ends use: `/timestamps`, `/sack`, `/wscale`, `/ecn`, one after the other."""
    rto: int
    """The retransmission timeout, in milliseconds."""
    last_data_recv: int
    """How long ago something was heard last, in milliseconds."""
    rtt: float
    """The smoothed round trip, in milliseconds; 0 when none was measured."""
    rttvar: float
    """How much it varies, in milliseconds."""
    snd_ssthresh: int
    """The slow start threshold, in bytes; 2³⁰ before any loss."""
    snd_cwnd: int
    """The congestion window, in bytes."""
    rcv_space: int
    """The window that is offered, in bytes."""
    snd_wnd: int
    """The window of the other end, in bytes."""
    rcv_nxt: int
    """The sequence number that is expected next."""
    snd_nxt: int
    """The sequence number to send next."""
    snd_mss: int
    """Bytes of data in a full segment to send."""
    rcv_mss: int
    """Bytes of data in a segment that we asked for."""
    snd_rexmitpack: int
    """Segments with data sent again, at most 65535."""
    rcv_ooopack: int
    """Segments that came out of order, at most 65535."""
    snd_zerowin: int
    """Times that the other end closed its window, at most 65535."""
    rcv_wscale: NotRequired[int]
    """The shift of ours."""
    snd_wscale: NotRequired[int]
    """The shift of the windows that the other end tells, if windows are scaled."""


FlowLook = dict[str, Any]
"""What one data thread saw of flows at a time."""


FlowRecords = list[FlowLook]
"""Records of flows, the oldest first. Each has, besides its number, the flows by
`address:port-address:port`, our end first."""
