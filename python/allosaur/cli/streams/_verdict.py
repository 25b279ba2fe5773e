"""Whether a run of streams kept its promise: all that was offered was sent, all that was sent was received.

A verdict counts the run's own packets only. Where it could not tell them from those of others it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from allosaur.cli import _thresholds
from allosaur.cli._cut_short import UNTIL_THEN
from allosaur.cli._thresholds import Checked, Thresholds
from allosaur.cli.streams._directions import directions
from allosaur.cli.streams._drive import SETTLE_MAX_S, Outcome
from allosaur.report import Direction, lost_total


@dataclass(frozen=True)
class Verdict:
    """Whether the run kept its promise, and if not, why."""

    ok: bool
    summary: str
    lost_packets: int | None
    """`None` when there is no port that could have received."""
    missed_packets: int | None
    reasons: Sequence[str] = ()
    duplicate_packets: int = 0
    """Own packets that arrived more often than they were sent."""
    directions: Sequence[Direction] = ()
    thresholds: Sequence[Checked] = ()
    """What became of each threshold."""
    built_in: Mapping[str, Any] = field(default_factory=dict)
    """With thresholds: the verdict without them, and what they allowed."""

    @property
    def counted_by(self) -> str:
        """`groups`, or `ports` when packets of others count too."""
        return "ports" if any(one.ungrouped for one in self.directions) else "groups"


def judge(outcome: Outcome, thresholds: Thresholds = _thresholds.NONE) -> Verdict:
    """Say whether all that was sent was received, once, and all that was offered was sent.

    What thresholds decide on is left to them.
    """
    found = directions(outcome.grouping, outcome.plan.ports, outcome.counters, outcome.streams)
    lost, duplicates = lost_total(found), sum(one.duplicate_packets for one in found)
    missed = outcome.total.missed_packets
    if outcome.cut_short:
        reasons = [outcome.cut_short, UNTIL_THEN]
        return Verdict(False, "; ".join(reasons), lost, missed, reasons, duplicates, found)
    reasons = [
        *_losses(outcome, found, thresholds),
        *_duplicates(outcome, found, thresholds),
        *_shortfalls(outcome, found, thresholds),
    ]
    if outcome.total.tx_packets == 0:
        reasons.insert(0, "nothing was sent")
    if reasons:
        reasons += outcome.link_changes
        reasons += _counted_by_ports(outcome, found)
        return Verdict(False, "; ".join(reasons), lost, missed, reasons, duplicates, found)
    if lost is None:
        summary = "all that was offered was sent (no port receives it)"
    else:
        summary = "all that was offered was sent, and all of it was received"
    summary = "; ".join([summary, *_counted_by_ports(outcome, found)])
    return Verdict(True, summary, lost, missed, (), duplicates, found)


def judge_by(thresholds: Thresholds, outcome: Outcome, document: Mapping[str, Any]) -> Verdict:
    """Say the same, and whether each threshold held for the document of the run."""
    built_in = judge(outcome, thresholds)
    checked = thresholds.check(None if outcome.cut_short else document)
    allowed = [] if built_in.reasons else judge(outcome).reasons
    return replace(built_in, **_thresholds.changes(built_in, checked, allowed))


def _undecided(
    thresholds: Thresholds, check: str, outcome: Outcome, port: int, count: int | None, counter: str
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


def _losses(outcome: Outcome, found: Sequence[Direction], thresholds: Thresholds) -> list[str]:
    lossy = [
        one
        for one in found
        if _undecided(thresholds, "loss", outcome, one.port, one.lost_packets, "lost_packets")
    ]
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


def _lost_at_ports(outcome: Outcome, ports: Sequence[int]) -> str:
    """Return which packets never left their port, as a part of a sentence."""
    lost = {port: outcome.counters[port].tx_lost_packets for port in ports if port in outcome.counters}
    return "".join(
        f"; {count:,} of port {port}'s packets never left it: its interface or the other end of its link "
        f"refused them, or had no room for them until the end (are they longer than an MTU there?)"
        for port, count in sorted(lost.items())
        if count
    )


def _duplicates(outcome: Outcome, found: Sequence[Direction], thresholds: Thresholds) -> list[str]:
    twice = [
        one
        for one in found
        if _undecided(thresholds, "duplicates", outcome, one.port, one.duplicate_packets, "duplicate_packets")
    ]
    if not twice:
        return []
    parts = [
        f"{one.duplicate_packets:,} of port {one.port}'s, which arrived at port "
        f"{', '.join(map(str, one.received_by_port))}"
        for one in twice
    ]
    total = sum(one.duplicate_packets for one in twice)
    return [f"{total:,} packets more were received than were sent ({'; '.join(parts)})"]


def _shortfalls(outcome: Outcome, found: Sequence[Direction], thresholds: Thresholds) -> list[str]:
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
    received = {one.port for one in found if one.lost_packets is not None}
    if told := _lost_at_ports(outcome, [port for port in outcome.counters if port not in received]):
        reasons.append(told.removeprefix("; "))
    if outcome.overdue:
        reasons.append(f"the traffic did not end after {outcome.plan.duration_s:g} s, and was stopped")
    return reasons


def _counted_by_ports(outcome: Outcome, found: Sequence[Direction]) -> list[str]:
    """Say which packets were not told from those of others, and what that may hide."""
    unclear = [one for one in found if one.ungrouped]
    if not unclear or all(one.lost_packets is None for one in unclear):
        return []
    ports = ", ".join(str(one.port) for one in unclear)
    why = "; ".join(outcome.grouping.reasons)
    said = f"packets of port {ports} were counted by ports, where packets of others count too ({why})"
    surplus = sum(one.surplus_packets for one in unclear)
    if surplus:
        said += f"; {surplus:,} more were received than sent, which may hide as many that were lost"
    return [said]
