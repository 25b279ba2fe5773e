"""The second part of `allosaur demo`: TCP flows, between two in-memory ports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from allosaur.cli._errors import explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.demo import _http
from allosaur.cli.flows import _hints, _run
from allosaur.cli.flows._access import load_file
from allosaur.cli.flows._drive import FlowPlan, FlowResult, drive
from allosaur.cli.flows._progress import progress
from allosaur.cli.flows._verdict import judge
from allosaur.report import Check, FlowTraffic, Part, flow_headlines, flow_hints, flow_sections
from allosaur.server import LocalServer

RATE_CPS = 500
"""Connections a second."""
DURATION_S = 3.0
PROFILE = Path(_http.__file__)


def run() -> FlowResult:
    """Start a stateful server, run the flows, and stop it."""
    plan = FlowPlan(multiplier=RATE_CPS, duration_s=DURATION_S)
    print(
        f"Opening {RATE_CPS} connections of HTTP a second, for {DURATION_S:g} s.",
        file=sys.stderr,
    )
    profile = load_file(PROFILE, {})
    with Interrupt() as interrupt, explained("the demo failed"), LocalServer(stateful=True) as server:
        client = server.client()
        client.connect()
        try:
            client.reset()
            client.load_profile(profile)
            with progress("demo") as shown:
                return drive(client, plan, interrupt, shown.show)
        finally:
            client.disconnect()


def check(outcome: FlowResult) -> list[Check]:
    """Return what must hold of the flows, and whether it did."""
    return [
        Check(f"flows, {one.what}", one.ok, one.found) for one in [*_checks(outcome), *_run.checks(outcome)]
    ]


def part(outcome: FlowResult) -> Part:
    """Return the part of the report that shows them."""
    counters, verdict, checks = outcome.counters, judge(outcome), check(outcome)
    names = _hints.names(counters)
    traffic = FlowTraffic(
        counters,
        outcome.rates,
        hints={name: _hints.hint(name) for name in names},
        meanings={name: _hints.meaning(name) for name in names},
        duration_s=outcome.elapsed_s,
    )
    return Part(
        name="connections",
        kind="flows",
        ok=verdict.ok and all(one.ok for one in checks),
        verdict=verdict.summary,
        headlines=flow_headlines(traffic),
        sections=flow_sections(traffic),
        checks=checks,
        reasons=verdict.reasons,
        hints=flow_hints(traffic),
        profile=PROFILE.read_text(encoding="utf-8"),
    )


def _checks(outcome: FlowResult) -> Iterator[Check]:
    asked = RATE_CPS * outcome.plan.duration_s
    offered = outcome.counters.offered_flows
    # One more or less is the end of the run, not the rate.
    yield Check("connections as asked", abs(offered - asked) <= 1, f"{offered:,} offered, {asked:,.0f} asked")
    client, server = outcome.counters.client, outcome.counters.server
    flows = client.connected_flows
    for way, sender, receiver, size in (
        ("requests", client, server, _http.REQUEST_BYTES),
        ("answers", server, client, _http.RESPONSE_BYTES),
    ):
        is_whole = sender.tx_data_bytes == receiver.rx_data_bytes == flows * size > 0
        found = f"{receiver.rx_data_bytes:,} of {flows * size:,}"
        yield Check(f"bytes of {way} received", is_whole, f"all {flows * size:,}" if is_whole else found)
