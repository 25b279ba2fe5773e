"""What the report of a run shows of its streams."""

from __future__ import annotations

from allosaur.report import Part, StreamTraffic, stream_headlines, stream_sections
from allosaur.run._verdict import Verdict, checks_of
from allosaur.run.streams._counts import StreamCounts


def part(outcome: StreamCounts, verdict: Verdict) -> Part:
    """Return the part of the report."""
    traffic = StreamTraffic(
        outcome.counters,
        outcome.rates,
        outcome.directions,
        outcome.streams,
        outcome.other_packets,
        outcome.elapsed_s,
    )
    return Part(
        name="streams",
        kind="streams",
        ok=verdict.ok,
        verdict=verdict.summary,
        headlines=stream_headlines(traffic),
        sections=stream_sections(traffic),
        checks=checks_of(verdict),
        reasons=verdict.reasons,
        hints=outcome.hints,
        notes=[f"Warning: {text}" for text in outcome.all_warnings],
    )


def asked(outcome: StreamCounts) -> str:
    """Return what was asked for, in words."""
    plan = outcome.plan
    return f"{plan.multiplier} from port {','.join(map(str, plan.ports))}"
