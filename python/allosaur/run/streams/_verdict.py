"""Whether a run of streams kept its promise: all that was offered was sent, all that was sent was received.

A verdict counts the run's own packets only. Where it could not tell them from those of others it says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.report._streams import Direction
from allosaur.run._thresholds import Thresholds
from allosaur.run.streams._counts import StreamOutcome

SETTLE_MAX_S = 10.0
"""Waiting for packets that still arrive ends here: a slow link may hold seconds of traffic."""


def reasons(outcome: StreamOutcome, thresholds: Thresholds) -> list[str]:
    """Return why not all that was sent was received, once, or not all that was offered was sent."""
    why = [
        *_losses(outcome, thresholds),
        *_duplicates(outcome, thresholds),
        *_shortfalls(outcome, thresholds),
    ]
    if outcome.total.tx_packets == 0:
        why.insert(0, "nothing was sent")
    return [*why, *outcome.link_changes, *_counted_by_ports(outcome)] if why else []


def praise(outcome: StreamOutcome) -> str:
    """Return what was found right, and which packets could not be told from others."""
    if outcome.lost_packets is None:
        summary = "all that was offered was sent (no port receives it)"
    else:
        summary = "all that was offered was sent, and all of it was received"
    return "; ".join([summary, *_counted_by_ports(outcome)])


def _undecided(
    thresholds: Thresholds, check: str, outcome: StreamOutcome, port: int, count: int | None, counter: str
) -> int:
    """Return how many of the packets that count against a port no threshold decides on."""
    labels = {"port": [str(port)]}
    if not count or thresholds.decide(check, labels):
        return 0
    decided = sum(
        getattr(one, counter) or 0
        for one in outcome.streams
        if one.port == port and thresholds.decide(check, {**labels, "stream": one.names})
    )
    return max(count - decided, 0)


def _undecided_directions(
    thresholds: Thresholds, check: str, outcome: StreamOutcome, counter: str
) -> list[Direction]:
    """Return the directions of which packets count against it that no threshold decides on."""
    return [
        one
        for one in outcome.directions
        if _undecided(thresholds, check, outcome, one.port, getattr(one, counter), counter)
    ]


def _losses(outcome: StreamOutcome, thresholds: Thresholds) -> list[str]:
    found, lossy = outcome.directions, _undecided_directions(thresholds, "loss", outcome, "lost_packets")
    if not lossy:
        return []
    lost = sum(one.lost_packets or 0 for one in lossy)
    sent = sum(one.sent_packets for one in found if one.lost_packets is not None)
    share = 100 * lost / max(sent, 1)
    where = ""
    if len(found) > 1:
        parts = [f"{one.lost_packets:,} of {one.sent_packets:,} from port {one.port}" for one in lossy]
        where = f": {', '.join(parts)}"
    unsent = _lost_at_ports(outcome, [one.port for one in lossy])
    late = f"; packets still arrived {SETTLE_MAX_S:g} s after the end" if outcome.still_arriving else ""
    overflown = [
        f"; {one.rx_overflow_packets:,} that arrived at port {port} were not taken in time by this machine: "
        f"these are no loss of the device (lower -m, or give the server more --receive-threads)"
        for port, one in sorted(outcome.counters.items())
        if one.rx_overflow_packets
    ]
    return [
        f"{lost:,} packets were sent and not received ({share:.3g} %){where}"
        f"{unsent}{late}{''.join(overflown)}"
    ]


def _lost_at_ports(outcome: StreamOutcome, ports: Sequence[int]) -> str:
    """Return which packets never left their port, as a part of a sentence."""
    lost = {port: outcome.counters[port].tx_lost_packets for port in ports if port in outcome.counters}
    return "".join(
        f"; {count:,} of port {port}'s packets never left it: its interface or the other end of its link "
        f"refused them, or had no room for them until the end (are they longer than an MTU there?)"
        for port, count in sorted(lost.items())
        if count
    )


def _duplicates(outcome: StreamOutcome, thresholds: Thresholds) -> list[str]:
    twice = _undecided_directions(thresholds, "duplicates", outcome, "duplicate_packets")
    if not twice:
        return []
    parts = [
        f"{one.duplicate_packets:,} of port {one.port}'s, which arrived at port "
        f"{', '.join(map(str, one.received_by_port))}"
        for one in twice
    ]
    total = sum(one.duplicate_packets for one in twice)
    return [f"{total:,} packets more were received than were sent ({'; '.join(parts)})"]


def _shortfalls(outcome: StreamOutcome, thresholds: Thresholds) -> list[str]:
    counted, reasons = outcome.total, []
    missed = sum(
        _undecided(thresholds, "missed", outcome, port, one.missed_packets, "missed_packets")
        for port, one in outcome.counters.items()
    )
    if missed and counted.missed_packets:
        share = 100 * counted.missed_packets / max(counted.offered_packets, 1)
        reasons.append(
            f"load not reached: {counted.missed_packets:,} packets were not sent in time ({share:.3g} %)"
        )
    # What nobody receives has no losses on the way that it could be among.
    received = {one.port for one in outcome.directions if one.lost_packets is not None}
    if told := _lost_at_ports(outcome, [port for port in outcome.counters if port not in received]):
        reasons.append(told.removeprefix("; "))
    if outcome.overdue:
        reasons.append(f"the traffic did not end after {outcome.plan.duration_s:g} s, and was stopped")
    return reasons


def _counted_by_ports(outcome: StreamOutcome) -> list[str]:
    """Say which packets were not told from those of others, and what that may hide."""
    unclear = [one for one in outcome.directions if one.ungrouped]
    if not unclear or all(one.lost_packets is None for one in unclear):
        return []
    ports = ", ".join(str(one.port) for one in unclear)
    why = "; ".join(outcome.grouping.reasons)
    said = f"packets of port {ports} were counted by ports, where packets of others count too ({why})"
    surplus = sum(one.surplus_packets for one in unclear)
    if surplus:
        said += f"; {surplus:,} more were received than sent, which may hide as many that were lost"
    return [said]
