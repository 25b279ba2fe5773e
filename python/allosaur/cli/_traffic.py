"""One run of traffic from start to end: shared by `run` and `demo`.

What lives here: connecting, putting streams on ports, starting, sampling until the end, stopping, and the
result with its verdict. What does not: profiles, options and printing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli._errors import EXIT_USAGE, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.report import PortCounters, PortRates, Sampler, total

if TYPE_CHECKING:
    from allosaur import STLClient

SAMPLE_INTERVAL_S = 0.25
_POLL_INTERVAL_S = 0.05
_SETTLE_S = 0.3
"""The end of a run: when nothing arrived for this long, nothing will."""
_SETTLE_MAX_S = 10.0
"""Waiting for packets that still arrive ends here: a slow link may hold seconds of traffic."""
_STOP_GRACE_S = 5.0
"""A run that goes on this long after its duration is stopped from here."""


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
class Verdict:
    """Whether the run kept its promise, and if not, why.

    `lost_packets` is `None` when there is no port that could have received.
    """

    ok: bool
    summary: str
    lost_packets: int | None
    missed_packets: int | None
    reasons: Sequence[str] = ()


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


def pair_of(port: int) -> int:
    """Return the port at the other end of the wire: 0 and 1, 2 and 3, and so on."""
    return port ^ 1


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
) -> Outcome:
    """Start the streams that are on the ports, watch them until they end, and return what happened.

    `begin` starts something else in their place. The traffic is stopped in any case, also when this
    raises :class:`CommandError`.
    """
    ports = list(plan.ports)
    with explained("cannot read the port counters"):
        sampler = Sampler(lambda: _read(client, plan.watched))
    try:
        with explained("the traffic did not start", EXIT_USAGE):
            if begin is not None:
                begin()
            else:
                client.start(ports=ports, mult=plan.multiplier, duration=plan.duration_s, force=plan.force)
        sampler.started()
        with explained("the server stopped answering while the traffic ran"):
            elapsed_s, overdue = _watch(client, plan, interrupt, sampler, show)
    finally:
        with explained("cannot stop the traffic"):
            client.stop(ports=ports)
    with explained("cannot read the port counters"):
        still_arriving = _settle(sampler)
        warnings = [str(warning) for warning in client.get_warnings()]
    return Outcome(
        plan,
        elapsed_s,
        sampler.counted(),
        {port: sampler.rates(port) for port in plan.watched},
        warnings,
        overdue,
        still_arriving,
        interrupt.exit_code,
    )


def judge(outcome: Outcome) -> Verdict:
    """Say whether all that was sent was received, and all that was offered was sent."""
    lost = _lost(outcome)
    counted = outcome.total
    missed = counted.missed_packets
    reasons = []
    if counted.tx_packets == 0:
        reasons.append("nothing was sent")
    if lost:
        share = 100 * lost / max(counted.tx_packets, 1)
        late = f"; packets still arrived {_SETTLE_MAX_S:g} s after the end" if outcome.still_arriving else ""
        reasons.append(f"{lost:,} packets were sent and not received ({share:.3g} %){late}")
    if missed:
        share = 100 * missed / max(counted.offered_packets, 1)
        reasons.append(f"load not reached: {missed:,} packets were not sent in time ({share:.3g} %)")
    if outcome.overdue:
        reasons.append(f"the traffic did not end after {outcome.plan.duration_s:g} s, and was stopped")
    if reasons:
        return Verdict(False, "; ".join(reasons), lost, missed, reasons)
    if lost is None:
        return Verdict(True, "all that was offered was sent (no port receives it)", None, missed)
    return Verdict(True, "all that was offered was sent, and all of it was received", lost, missed)


def _lost(outcome: Outcome) -> int | None:
    """Count what was sent and not received, pair by pair: extra packets of one hide no loss of another."""
    lost: int | None = None
    seen = set()
    for port in outcome.plan.ports:
        pair = frozenset((port, pair_of(port)))
        if pair in seen or not pair <= set(outcome.counters):
            continue
        seen.add(pair)
        both = [outcome.counters[end] for end in pair]
        missing = sum(end.tx_packets for end in both) - sum(end.rx_packets for end in both)
        lost = (lost or 0) + max(missing, 0)
    return lost


def _read(client: STLClient, ports: Sequence[int]) -> dict[int, PortCounters]:
    stats: Mapping[Any, Any] = client.get_stats(ports=list(ports))
    return {port: PortCounters.from_stats(stats[port]) for port in ports}


def _watch(
    client: STLClient, plan: Plan, interrupt: Interrupt, sampler: Sampler, show: Callable[[Moment], None]
) -> tuple[float, bool]:
    """Sample until the traffic ends, a signal comes, or the run is overdue; return its time, and if it is."""
    history: list[float] = []
    overdue = False
    next_sample_s = SAMPLE_INTERVAL_S
    while not interrupt:
        now_s = sampler.elapsed_s()
        if now_s >= next_sample_s:
            next_sample_s += SAMPLE_INTERVAL_S * (1 + (now_s - next_sample_s) // SAMPLE_INTERVAL_S)
            counters = sampler.sample().ports
            history.append(sum(rates.tx_pps for rates in sampler.recent(SAMPLE_INTERVAL_S).values()))
            show(Moment(plan, now_s, counters, sampler.recent(), history))
        if not client.is_traffic_active(ports=list(plan.ports)):
            break
        if plan.duration_s != FOREVER and now_s > plan.duration_s + _STOP_GRACE_S:
            overdue = True
            break
        interrupt.sleep(_POLL_INTERVAL_S)
    elapsed_s = sampler.elapsed_s()
    sampler.sample()
    if plan.duration_s != FOREVER and not overdue:
        # The end is noticed a poll later than it was.
        elapsed_s = min(elapsed_s, plan.duration_s)
    return elapsed_s, overdue


def _settle(sampler: Sampler) -> bool:
    """Wait for packets that are still on the wire: until all arrived, or none did for a while.

    Returns whether they still came when this gave up.
    """
    deadline = time.monotonic() + _SETTLE_MAX_S
    quiet_since = time.monotonic()
    last = total(sampler.sample().ports.values())
    while last.rx_packets < last.tx_packets and time.monotonic() < deadline:
        if time.monotonic() - quiet_since > _SETTLE_S:
            return False
        time.sleep(_POLL_INTERVAL_S)
        now = total(sampler.sample().ports.values())
        if now.rx_packets != last.rx_packets:
            quiet_since = time.monotonic()
        last = now
    return last.rx_packets < last.tx_packets
