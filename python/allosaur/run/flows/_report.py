"""What the report of a run shows of its flows."""

from __future__ import annotations

from allosaur.report import (
    SIDES,
    Check,
    FlowCounters,
    FlowTraffic,
    Part,
    flow_headlines,
    flow_hints,
    flow_sections,
)
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run._verdict import Verdict, checks_of
from allosaur.run.flows import _hints
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._verdict import ends, undecided_errors


def part(outcome: FlowCounts, verdict: Verdict) -> Part:
    """Return the part of the report."""
    counters = outcome.counters
    told = _hints.names(counters)
    traffic = FlowTraffic(
        counters,
        outcome.rates,
        outcome.groups,
        outcome.latency,
        hints={name: _hints.hint(name) for name in told},
        meanings={name: _hints.meaning(name) for name in told},
        expected=("cut_off",) if outcome.is_cut_off_asked else (),
        duration_s=outcome.elapsed_s,
    )
    thresholds = Thresholds(one.threshold for one in verdict.thresholds)
    return Part(
        name="flows",
        kind="flows",
        ok=verdict.ok,
        verdict=verdict.summary,
        headlines=flow_headlines(traffic),
        sections=flow_sections(traffic),
        checks=[*checks(outcome, thresholds), *checks_of(verdict)],
        reasons=verdict.reasons,
        hints=flow_hints(traffic),
        notes=[f"Warning: {text}" for text in outcome.all_warnings],
    )


def asked(outcome: FlowCounts) -> str:
    """Return what was asked for, in words."""
    return f"{outcome.plan.multiplier:g} times the profile's flows"


def checks(outcome: FlowCounts, thresholds: Thresholds = NONE) -> list[Check]:
    """Return what a report says must hold, and whether it did, but for what thresholds decide on."""
    counters, plan = outcome.counters, outcome.plan
    opened = counters.client.begun_flows
    found: list[Check] = []
    if not plan.servers_only:
        missed = counters.missed_flows
        text = (
            "the server did not count it" if missed is None else f"{missed:,} of {counters.offered_flows:,}"
        )
        if not thresholds.decide("missed"):
            found.append(Check("flows that were missed", not missed and opened > 0, text))
    failed = ends(outcome, thresholds)
    found.append(Check("flows that completed", not failed, "; ".join(failed) or _completed(counters)))
    wrong = _hints.told_shortly(undecided_errors(counters, thresholds))
    found.append(Check("error counters", not wrong, wrong or "all are zero"))
    if outcome.is_comparable:
        for what, lost, check in (
            ("UDP messages that were lost", counters.lost_messages, "messages"),
            ("bytes of TCP that were lost", None if plan.resetting else counters.lost_bytes, "bytes"),
        ):
            if lost is not None and not thresholds.decide(check):
                found.append(Check(what, lost == 0, f"{lost:,}"))
    return found


def _completed(counters: FlowCounters) -> str:
    if counters.outcomes is None:
        return f"{counters.client.connected_flows:,} connected; the server does not tell how they ended"
    ours = [(side, counters.outcomes.side(side)) for side in SIDES if counters.side(side).begun_flows]
    return ", ".join(f"{one.completed:,} at {side}s" for side, one in ours) or "none"
