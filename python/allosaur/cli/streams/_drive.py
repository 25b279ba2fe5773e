"""One run of traffic from start to end: shared by `run`, `push` and `demo`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli import _impossible_times
from allosaur.cli._cut_short import CutShort
from allosaur.cli._elapsed import ran_s
from allosaur.cli._errors import EXIT_USAGE, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._steal import StealTime
from allosaur.cli.streams import _loss_hints
from allosaur.cli.streams._directions import directions, other_packets, pair_of
from allosaur.cli.streams._groups import Grouping, stream_counters
from allosaur.cli.streams._live_loss import LiveLoss
from allosaur.report import PortCounters, PortRates, Sampler, StreamCounters, total

if TYPE_CHECKING:
    from allosaur import STLClient

SAMPLE_INTERVAL_S = 0.25
_POLL_INTERVAL_S = 0.05
_SETTLE_S = 0.3
"""The end of a run: when nothing arrived for this long, nothing will."""
SETTLE_MAX_S = 10.0
"""Waiting for packets that still arrive ends here: a slow link may hold seconds of traffic."""
_SETTLE_SHARE = 0.01
"""Counted by ports: what arrives slower than this share of what was sent is of others, and not waited for."""
_STOP_GRACE_S = 5.0
"""A run that goes on this long after its duration is stopped from here."""
_READING_SHARE = 4
"""Samples are at least so many times as far apart as one takes to read: many groups take long."""


@dataclass(frozen=True)
class Plan:
    """What to do: which ports send, how fast and how long."""

    ports: Sequence[int]
    multiplier: str
    duration_s: float
    """Seconds, or `FOREVER`."""
    watched: Sequence[int] = ()
    """Ports whose counters are read: those that send, and their peers."""
    force: bool = False
    """Start although the rate is above the line's, or the link is down."""


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    plan: Plan
    elapsed_s: float
    counters: Mapping[int, PortCounters]
    rates: Mapping[int, Sequence[PortRates]]
    warnings: Sequence[str] = ()
    overdue: bool = False
    """The traffic still ran when its duration was long over, and was stopped from here."""
    still_arriving: bool = False
    """Packets still came when the waiting for them ended: what is not received is not all lost."""
    exit_code: int | None = None
    """Set when a signal ended the run: what to exit with."""
    grouping: Grouping = field(default_factory=Grouping)
    """Which packets are the run's own."""
    streams: Sequence[StreamCounters] = ()
    """What was counted of streams that have a packet group."""
    hints: Sequence[str] = ()
    """What to look at when a port received none of the packets that were meant for it, or load was missed."""
    link_changes: Sequence[str] = ()
    """Links that went down or came back while the traffic ran, in words."""
    cut_short: str = ""
    """Who or what ended the run before its time, and when; the counters are those until then."""
    profile_warnings: Sequence[str] = ()
    """What the profile was warned of when it was loaded, which is printed already."""

    @property
    def all_warnings(self) -> list[str]:
        """The warnings of the profile and of the server."""
        return [*self.profile_warnings, *self.warnings]

    @property
    def other_packets(self) -> dict[int, int | None]:
        """What each port received beside the run's own packets; `None` where nobody can tell."""
        return other_packets(self.grouping, self.counters, self.streams)

    @property
    def total(self) -> PortCounters:
        """All watched ports together."""
        return total(self.counters.values())


@dataclass
class Moment:
    """What is known while the traffic runs: given to whoever shows the progress."""

    plan: Plan
    elapsed_s: float
    counters: Mapping[int, PortCounters]
    rates: Mapping[int, PortRates]
    history: list[float] = field(default_factory=list)
    """Packets sent per second by all ports, one value a sample."""
    lost: Mapping[int, int | None] = field(default_factory=dict)
    """By sending port: packets that are lost, and not only under way; see `LiveLoss`."""


def watched_ports(sending: Sequence[int], port_count: int) -> list[int]:
    """Return the ports to read: those that send and their peers, as far as they exist."""
    wanted = {*sending, *(pair_of(port) for port in sending)}
    return sorted(port for port in wanted if port < port_count)


def drive(
    client: STLClient,
    plan: Plan,
    interrupt: Interrupt,
    show: Callable[[Moment], None],
    begin: Callable[[], None] | None = None,
    grouping: Grouping | None = None,
) -> Outcome:
    """Start the streams that are on the ports, watch them until they end, and return what happened.

    `begin` starts something else in their place. `grouping` says which packets are the run's own; without it
    the ports are counted. The traffic is stopped in any case, also when this raises :class:`CommandError`.
    """
    ports = list(plan.ports)
    reader = _Reader(client, plan, grouping or Grouping.none(ports, "they have no packet groups"))
    with explained("cannot read the port counters"):
        sampler = Sampler(reader.read)
    cut = CutShort(client)
    steal = StealTime.of_server(client.get_connection_info()["server"])
    changes: Sequence[str] = ()
    watched = _Watched()
    try:
        asked_at_s = time.monotonic()
        with explained("the traffic did not start", EXIT_USAGE):
            if begin is not None:
                begin()
            else:
                client.start(ports=ports, mult=plan.multiplier, duration=plan.duration_s, force=plan.force)
        watched.start_took_s = time.monotonic() - asked_at_s
        sampler.started()
        links = _loss_hints.Links(client, plan.watched)
        with cut.noticed("the server stopped answering while the traffic ran"):
            _watch(client, plan, interrupt, sampler, reader, show, cut, watched)
            changes = links.changes()
    finally:
        if not cut.reason:
            with explained("cannot stop the traffic"):
                client.stop(ports=ports)
    still_arriving = False
    hints: list[str] = []
    if cut.reason:
        watched.elapsed_s = sampler.samples[-1].time_s
    else:
        with explained("cannot read the port counters"):
            still_arriving = _settle(sampler, reader, watched.elapsed_s)
        found = directions(reader.grouping, ports, sampler.counters, reader.streams)
        hints += _loss_hints.hints(client, found, sampler.counters, reader.streams)
    if total(sampler.counters.values()).missed_packets:
        hints += steal.told()
    warnings = [str(warning) for warning in client.get_warnings()]
    impossible = ((one.name, one.impossible_times or 0) for one in reader.streams)
    warnings += _impossible_times.told(impossible)
    return Outcome(
        plan,
        watched.elapsed_s,
        sampler.counters,
        {port: sampler.rates(port, watched.elapsed_s) for port in plan.watched},
        warnings,
        watched.overdue,
        still_arriving,
        interrupt.exit_code,
        reader.grouping,
        reader.streams,
        hints,
        changes,
        cut.reason,
    )


@dataclass
class _Watched:
    """How long the traffic ran, and whether it was longer than it should."""

    start_took_s: float = 0.0
    """From asking for the start until its confirmation."""
    elapsed_s: float = 0.0
    overdue: bool = False


class _Reader:
    """Reads the counters of ports and of the run's packet groups, with one request after the other."""

    def __init__(self, client: STLClient, plan: Plan, grouping: Grouping) -> None:
        self.grouping = grouping
        self.streams: list[StreamCounters] = []
        """As they were read last."""
        self.took_s = 0.0
        self._client = client
        self._ports = list(plan.watched)

    def read(self) -> dict[int, PortCounters]:
        """Read the counters; give those of the ports."""
        before = time.monotonic()
        stats: Mapping[Any, Any] = self._client.get_stats(ports=self._ports, only_given=True)
        self.streams = stream_counters(self.grouping, stats)
        self.took_s = time.monotonic() - before
        return {port: PortCounters.from_stats(stats[port]) for port in self._ports}

    def sent_and_received(self, ports: Mapping[int, PortCounters]) -> tuple[int, int]:
        """Return how much was sent and received of what is waited for: of groups, where there are any."""
        if self.streams and not self.grouping.ungrouped:
            sent = sum(one.tx_packets for one in self.streams)
            return sent, sent - sum(one.lost_packets for one in self.streams)
        counted = total(ports.values())
        return counted.tx_packets, counted.rx_packets


def _watch(
    client: STLClient,
    plan: Plan,
    interrupt: Interrupt,
    sampler: Sampler,
    reader: _Reader,
    show: Callable[[Moment], None],
    cut: CutShort,
    watched: _Watched,
) -> None:
    """Sample until the traffic ends, a signal comes, or the run is overdue; note its time, and if it is."""
    history: list[float] = []
    has_ended = False
    next_sample_s = SAMPLE_INTERVAL_S
    losses: dict[int, LiveLoss] = {}
    while not interrupt:
        cut.check()
        now_s = sampler.elapsed_s()
        if now_s >= next_sample_s:
            interval_s = max(SAMPLE_INTERVAL_S, _READING_SHARE * reader.took_s)
            next_sample_s += interval_s * (1 + max(now_s - next_sample_s, 0) // interval_s)
            counters = sampler.sample().counters
            history.append(sum(rates.tx_pps for rates in sampler.recent(SAMPLE_INTERVAL_S).values()))
            found = directions(reader.grouping, plan.ports, counters, reader.streams)
            lost = {one.port: losses.setdefault(one.port, LiveLoss()).take(now_s, one) for one in found}
            show(Moment(plan, now_s, counters, sampler.recent(), history, lost))
        if not client.is_traffic_active(ports=list(plan.ports)):
            has_ended = True
            break
        if plan.duration_s != FOREVER and now_s > plan.duration_s + _STOP_GRACE_S:
            watched.overdue = True
            break
        interrupt.sleep(_POLL_INTERVAL_S)
    watched.elapsed_s = sampler.elapsed_s()
    # Who takes a port over stops its traffic: what is counted from then on is not ours.
    cut.check()
    sampler.sample()
    if plan.duration_s != FOREVER and not watched.overdue:
        # Who is interrupted stops it from here: no request was under way then.
        start_took_s = watched.start_took_s if has_ended else 0.0
        watched.elapsed_s = ran_s(plan.duration_s, watched.elapsed_s, start_took_s)


def _settle(sampler: Sampler, reader: _Reader, elapsed_s: float) -> bool:
    """Wait for packets that are still on the wire: until all arrived, or none did for a while.

    Returns whether they still came when this gave up. Where ports are counted, packets of others must not
    make up for lost ones: what arrives much slower than the traffic was is not waited for.
    """
    begun = quiet_since = time.monotonic()
    sent, received = reader.sent_and_received(sampler.sample().counters)
    # One packet is something to wait for where only own ones are counted.
    few = _SETTLE_SHARE * sent * _SETTLE_S / max(elapsed_s, _SETTLE_S) if reader.grouping.ungrouped else 0.0
    counted_from = received
    while received < sent and time.monotonic() < begun + SETTLE_MAX_S:
        if time.monotonic() - quiet_since > _SETTLE_S:
            if received - counted_from <= few:
                return False
            quiet_since, counted_from = time.monotonic(), received
        time.sleep(_POLL_INTERVAL_S)
        sent, received = reader.sent_and_received(sampler.sample().counters)
    return received < sent
