"""The second part of `allosaur demo`: TCP flows, between two in-memory ports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from allosaur.cli._errors import explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.demo import _http
from allosaur.report._model import Check, Part
from allosaur.run import drive_one, judge
from allosaur.run._progress import progress
from allosaur.run.flows._access import load_file
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._load import FlowLoad
from allosaur.run.flows._result import FlowResult
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
    with (
        Interrupt() as interrupt,
        explained("the demo failed"),
        LocalServer(stateful=True) as server,
        server.client() as client,
    ):
        client.reset()
        client.load_profile(profile)
        with progress(["demo"]) as show:
            return drive_one(FlowLoad(plan, client), interrupt, show)


def check(outcome: FlowResult) -> list[Check]:
    """Return what must hold of the flows, and whether it did."""
    return [Check(f"flows, {one.what}", one.ok, one.found) for one in [*_checks(outcome), *outcome.checks()]]


def part(outcome: FlowResult) -> Part:
    """Return the part of the report that shows them."""
    checks, found = check(outcome), outcome.part(judge(outcome))
    ok = found.ok and all(one.ok for one in checks)
    source = PROFILE.read_text(encoding="utf-8")
    return replace(found, name="connections", ok=ok, checks=checks, profile=source)


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
