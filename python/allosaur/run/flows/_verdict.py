"""Whether a run of flows kept its promise: how its flows ended, what arrived, and what was counted beside.

A flow passes when its program came to its end, on each end that is ours. Everything that judges flows asks
here: `run`, `stats` and `stop`, `sim`, the demo, the trials of `ndr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allosaur.cli import _format
from allosaur.report._flow_counters import SIDES, FlowCounters
from allosaur.report._flow_outcomes import FAILED, HTTP_CLASSES, Outcomes
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._hints import told_shortly

_CUT_OFF_FRAMES = ("err_no_syn", "err_cwf")
"""Frames that were under way when flows were left as they were: no failure of a run that asked for it."""
_ENDED = {
    "reset": ("was reset by the peer", "were reset by the peer"),
    "closed_early": ("was closed by the peer before its end", "were closed by the peer before their end"),
    "timed_out": ("timed out", "timed out"),
    "refused": ("was refused", "were refused"),
    "cut_off": ("was cut off by the end of the test", "were cut off by the end of the test"),
    "aborted": ("was given up here", "were given up here"),
    "unanswered": ("got no data", "got no data"),
}
_BAD_CLASSES = {
    "4xx": "responses of class 4xx",
    "5xx": "responses of class 5xx",
}
"""What begins with no status line is no HTTP, and has no class: it is told, and its bytes are judged."""
_UNTOLD = "this server does not tell how flows ended"


def reasons(result: FlowCounts, thresholds: Thresholds) -> list[str]:
    """Return why not all flows that were offered began, came to the end of their programs, and went well."""
    why = [
        *_missing(result, thresholds),
        *ends(result, thresholds),
        *_losses(result, thresholds),
        *_errors(result, thresholds),
    ]
    if result.overdue:
        why.append("flows were still open long after the end, and were not waited for")
    return why


def ends(result: FlowCounts, thresholds: Thresholds = NONE) -> list[str]:
    """Say which flows did not come to the end of their programs, or came to it with no or a bad answer."""
    counters, outcomes = result.counters, result.counters.outcomes
    if outcomes is None:
        return [*_unconnected(result, thresholds), *_dropped(result)]
    failing = {
        name: [
            (side, outcomes.side(side).count(name))
            for side in SIDES
            if not _is_allowed(name, side, result, thresholds)
        ]
        for name in FAILED
    }
    reasons = [_told(name, found, counters) for name, found in failing.items() if any(n for _, n in found)]
    if unanswered := _unanswered(result, outcomes, thresholds):
        reasons.append(_told("unanswered", [("client", unanswered)], counters))
    return [*reasons, *_bad_responses(counters, outcomes, thresholds)]


def failed_flows(result: FlowCounts) -> int:
    """Count the flows that did not do what they should, at the end that knows of more."""
    outcomes = result.counters.outcomes
    if outcomes is None:
        alone = max(result.counters.client.begun_flows - result.counters.client.connected_flows, 0)
        # Those that were cut off at the end are not known from those that found no other end.
        return (0 if result.plan.no_close else alone) + result.counters.client.dropped_flows
    sides = (
        sum(outcomes.side(side).count(name) for name in FAILED if not _is_allowed(name, side, result, NONE))
        for side in SIDES
    )
    unanswered = _unanswered(result, outcomes, NONE)
    bad = 0 if result.counters.are_servers_ours else sum(_bad_counts(outcomes).values())
    return max(*sides, unanswered) + bad


def undecided_errors(counters: FlowCounters, thresholds: Thresholds) -> list[tuple[str, str, int]]:
    """Return what went wrong, as (side, name, how often), but what thresholds decide on."""
    return [
        one
        for one in counters.error_list()
        if not thresholds.decide("errors", {"side": [one[0]], "counter": [one[1]]})
    ]


def _missing(result: FlowCounts, thresholds: Thresholds) -> list[str]:
    counters, plan = result.counters, result.plan
    reasons = []
    if plan.servers_only:
        if not counters.server.begun_flows:
            reasons.append("no flow came: nobody asked these servers")
    elif not counters.client.begun_flows:
        reasons.append("no flow began")
    missed = counters.missed_flows
    if missed and not thresholds.decide("missed"):
        share = _format.percent(missed, counters.offered_flows)
        reasons.append(f"load not reached: {missed:,} flows were not opened in time ({share})")
    return reasons


def _is_allowed(name: str, side: str, result: FlowCounts, thresholds: Thresholds) -> bool:
    """Whether flows of a side may end so: thresholds decide, or the user asked for it."""
    if name == "cut_off" and result.is_cut_off_asked:
        return True
    where = {"side": [side]}
    return thresholds.decide(name, where) or thresholds.decide("completed", where)


def _unanswered(result: FlowCounts, outcomes: Outcomes, thresholds: Thresholds) -> int:
    """Count flows of clients without any data, but as many as were allowed to end before."""
    if thresholds.decide("unanswered", {"side": ["client"]}):
        return 0
    client = outcomes.client
    begun = result.counters.client.begun_flows
    # To be cut off at the end, as asked, excuses flows that were on their way; not all, if none was answered.
    excused = FAILED if client.unanswered < begun else [name for name in FAILED if name != "cut_off"]
    allowed = (name for name in excused if _is_allowed(name, "client", result, thresholds))
    return max(client.unanswered - sum(client.count(name) for name in allowed), 0)


def _told(name: str, found: Sequence[tuple[str, int]], counters: FlowCounters) -> str:
    """Return how many flows ended so, with their sides where both are ours."""
    has_both = counters.client.begun_flows and counters.server.begun_flows
    parts: list[str] = []
    for side, count in found:
        if not count:
            continue
        words = "" if parts else f" {'flow' if count == 1 else 'flows'} {_ENDED[name][count != 1]}"
        share = _format.percent(count, max(counters.side(side).begun_flows, count))
        parts.append(f"{count:,}{words}{f' at {side}s' if has_both else ''} ({share})")
    return ", ".join(parts)


def _bad_counts(outcomes: Outcomes) -> dict[str, int]:
    return {name: outcomes.client.count(f"http_{name}") for name in _BAD_CLASSES}


def _bad_responses(counters: FlowCounters, outcomes: Outcomes, thresholds: Thresholds) -> Iterator[str]:
    """Say which responses of foreign servers were no good ones; what our own servers send is as written."""
    if counters.are_servers_ours:
        return
    for name, count in _bad_counts(outcomes).items():
        if count and not thresholds.decide(f"http.{name}"):
            yield f"{count:,} {_BAD_CLASSES[name]} ({_format.percent(count, outcomes.client.responses)})"


def _unconnected(result: FlowCounts, thresholds: Thresholds) -> Iterator[str]:
    """Judge by connections alone, where a server does not tell how flows ended."""
    client = result.counters.client
    alone = client.begun_flows - client.connected_flows
    # With no_close the last ones were left on their way; but not all of them.
    is_expected = (result.plan.no_close and client.connected_flows) or thresholds.decide("unanswered")
    if alone > 0 and not is_expected:
        yield f"{alone:,} flows found no other end ({_format.percent(alone, client.begun_flows)})"


def _dropped(result: FlowCounts) -> Iterator[str]:
    if result.plan.resetting:
        return
    for side in SIDES:
        if dropped := result.counters.side(side).dropped_flows:
            yield f"{dropped:,} established connections were dropped, at {side}s (tcps_drops); {_UNTOLD}"


def _losses(result: FlowCounts, thresholds: Thresholds) -> Iterator[str]:
    """Say what was sent and did not arrive, where both ends are ours and no flow was cut off."""
    if not result.is_comparable:
        return
    counters = result.counters
    if counters.lost_messages and not thresholds.decide("messages"):
        yield f"{counters.lost_messages:,} UDP messages were sent and not received"
    if counters.lost_bytes and not result.plan.resetting and not thresholds.decide("bytes"):
        yield f"{counters.lost_bytes:,} bytes of TCP were sent and not received"


def _errors(result: FlowCounts, thresholds: Thresholds) -> list[str]:
    expected = _CUT_OFF_FRAMES if result.plan.no_close else ()
    errors = [one for one in undecided_errors(result.counters, thresholds) if one[1] not in expected]
    return [f"errors were counted: {told_shortly(errors)}"] if errors else []


def praise(result: FlowCounts) -> str:
    """Say what was looked at and found right, and nothing else."""
    counters, plan = result.counters, result.plan
    outcomes = counters.outcomes
    if not result.is_over:
        began = "no flow failed so far"
        return f"{began}{_aside(outcomes, counters)}, and no errors were counted"
    offered = "all flows that came" if plan.servers_only else "all flows that were offered began and"
    if outcomes is None:
        connected = "were served" if plan.servers_only else "were connected"
        return f"{offered} {connected}, and no errors were counted; {_UNTOLD}"
    cut_off = max(outcomes.client.cut_off, outcomes.server.cut_off)
    has_both = counters.client.begun_flows and counters.server.begun_flows
    at_both = " on both ends" if has_both else ""
    if cut_off:
        completed = f"completed{at_both}, but for {cut_off:,} that were cut off by the end, as asked"
    else:
        arrived = has_both and result.is_comparable and not plan.resetting
        completed = f"completed{at_both}" + (", all that was sent was received" if arrived else "")
    return f"{offered} {completed}{_aside(outcomes, counters)}, and no errors were counted"


def _aside(outcomes: Outcomes | None, counters: FlowCounters) -> str:
    """Say of which classes the responses were, where somebody else sent them."""
    if outcomes is None or counters.are_servers_ours or not outcomes.client.responses:
        return ""
    other = outcomes.client.count("http_other")
    if other:
        return f", {other:,} responses were no HTTP"
    classes = [name for name in HTTP_CLASSES if outcomes.client.count(f"http_{name}")]
    return f", all responses were of class {' or '.join(classes)}"
