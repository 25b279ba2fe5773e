"""Trials of stateful traffic: a profile at a multiplier, for so long.

What is offered are flows. Lost are those that were not opened in time, did not come to the end of their
program, got no data or a bad answer, or counted an error (a retransmission): a flow that had to try again did
not pass. UDP messages and bytes that are missing count too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from allosaur.cli import _gateways
from allosaur.cli._errors import EXIT_SETUP, bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.ndr import _criteria
from allosaur.cli.ndr._bench import Case, Scale, Show
from allosaur.cli.ndr._rates import flow_factor
from allosaur.run import drive_one
from allosaur.run.flows._access import (
    check_clients,
    load_file,
    plan_of,
    put,
    resetting,
    take_server,
)
from allosaur.run.flows._load import FlowLoad
from allosaur.run.flows._result import FlowResult
from allosaur.run.flows._verdict import ends, failed_flows
from allosaur.search import Stopped, Trial

if TYPE_CHECKING:
    from allosaur import ASTFClient

_FLOWS_MIN = 10
"""The least load opens so many flows in the shortest trial."""


class FlowBench:
    """Makes trials of flows. The ports are owned from the beginning to the end of the client."""

    mode = "stateful"

    def __init__(self, client: ASTFClient, options: argparse.Namespace, interrupt: Interrupt) -> None:
        self.exit_code: int | None = None
        self.server_counters: Mapping[str, Any] = {}
        self._client = client
        self._options = options
        self._interrupt = interrupt
        options.multiplier = "1"
        self._plan = plan_of(options)
        check_clients(client, options.clients)
        take_server(client, options.force, options.ports)
        mask = self._plan.client_mask
        self.ports: Sequence[int] = [
            port for port in client.get_all_ports() if port % 2 == 0 and mask >> port & 1
        ]

    def put(self, case: Case) -> Scale:
        """Put the profile onto the server, and tell the range of multipliers."""
        options = self._options
        profile = load_file(case.path, case.tunables)
        templates = [one["client_template"] for one in profile.to_json()["templates"]]
        flow_rate = sum(float(one["cps"]) for one in templates if one.get("cps"))
        if not flow_rate:
            raise bad_input(f"profile {case.path}: no template opens flows; give one a rate (cps)")
        self._plan = replace(self._plan, resetting=resetting(profile))
        put(self._client, self._plan, case.path, profile, options.force)
        _gateways.wait(
            self._client, _gateways.of_flows(self._client, self._plan.client_mask), self._interrupt
        )
        load_max = flow_factor(options.max, "--max")
        shortest_s = min(options.first_trial, options.duration)
        load_min = _FLOWS_MIN / shortest_s / flow_rate
        if options.min is not None:
            load_min = flow_factor(options.min, "--min")
        if load_min >= load_max:
            raise bad_input(
                f"multipliers from {load_min:g} to {load_max:g} are no range; give --min below --max, or "
                "longer trials with -d and --first-trial"
            )
        return Scale("times", load_max, load_min, flows_per_second=flow_rate)

    def trial(self, load: float, duration_s: float, show: Show) -> Trial:
        """Open flows at a multiplier, and count what became of them."""
        if self._interrupt:
            raise self._stopped("stopped")
        self._interrupt.sleep(self._options.pause)
        plan = replace(self._plan, multiplier=load, duration_s=duration_s)
        begun_s = time.monotonic()
        outcome = drive_one(
            FlowLoad(plan, self._client), self._interrupt, lambda moments: show(moments[0].elapsed_s)
        )
        if outcome.exit_code is not None:
            raise self._stopped("stopped")
        if outcome.cut_short:
            self.exit_code = EXIT_SETUP
            raise Stopped(outcome.cut_short)
        if self._options.plugin is not None:
            self.server_counters = self._client.get_stats()["global"]
        return counted(outcome, load, time.monotonic() - begun_s, self._options)

    def _stopped(self, why: str) -> Stopped:
        self.exit_code = self._interrupt.exit_code
        return Stopped(why)


def counted(outcome: FlowResult, load: float, took_s: float, options: argparse.Namespace) -> Trial:
    """Return the trial that a run was."""
    counters = outcome.counters
    offered, missed = counters.offered_flows, counters.missed_flows or 0
    messages = counters.lost_messages or 0
    not_reached = max(missed - round(options.missed * offered), 0)
    details: dict[str, Any] = {
        "flows": counters.client.begun_flows,
        "connected": counters.client.connected_flows,
        "missed": missed,
        "errors": counters.to_json()["errors"],
        "outcomes": None if counters.outcomes is None else counters.outcomes.to_json(),
        "times": {} if counters.outcomes is None else counters.outcomes.times,
        "why": ends(outcome),
        "lost_messages": messages,
        "elapsed_s": round(outcome.elapsed_s, 6),
        "latency": worst_latency(outcome.latency),
        "duplicates": None,
        "out_of_order": None,
        "warnings": list(outcome.warnings),
    }
    failures = _criteria.failures(options.criteria, details)
    if outcome.overdue:
        failures.append("flows were still open long after the end")
    failed = failed_flows(outcome)
    if not failed and not messages and _are_bytes_missing(outcome):
        failed = 1  # nobody knows of how many flows they are
    lost = min(failed + counters.error_events + messages + not_reached, offered)
    return Trial(load, outcome.plan.duration_s, offered, lost, failures, took_s, details)


def _are_bytes_missing(outcome: FlowResult) -> bool:
    return bool(outcome.counters.lost_bytes and outcome.is_comparable and not outcome.plan.resetting)


def worst_latency(ports: Mapping[int, Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the worst times of all ports, by the names of streams' times."""
    found: dict[str, float] = {}
    for times in ports.values():
        for name, value in times.items():
            if name.endswith("_us"):
                found[name] = max(found.get(name, 0.0), float(value))
    return found or None
