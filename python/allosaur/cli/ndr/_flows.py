"""Trials of stateful traffic: a profile at a multiplier, for so long.

What is offered are flows. Lost are those that were not opened in time, did not come to the end of their
program, got no data or a bad answer, or counted an error (a retransmission): a flow that had to try again did
not pass. UDP messages and bytes that are missing count too.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from allosaur.cli import _gateways, _run
from allosaur.cli._access import remote_stateful_client
from allosaur.cli._errors import bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.ndr._bench import Case, Counted, Scale, Subject
from allosaur.cli.ndr._rates import flow_factor
from allosaur.run.flows._access import (
    check_clients,
    load_file,
    plan_of,
    put,
    resetting,
    take_server,
)
from allosaur.run.flows._load import FlowLoad
from allosaur.run.flows._metrics import refuse_unmeasured
from allosaur.run.flows._result import FlowResult
from allosaur.run.flows._verdict import ends, failed_flows
from allosaur.server import LocalServer

if TYPE_CHECKING:
    from allosaur import ASTFClient

_FLOWS_MIN = 10
"""The least load opens so many flows in the shortest trial."""


class FlowSubject(Subject[FlowResult]):
    """Flows of a profile: a load is a factor of its own rates."""

    mode = "stateful"
    unit = "times"
    load_noun = "multipliers"
    metrics = FlowLoad.metrics

    def __init__(self, client: ASTFClient, options: argparse.Namespace) -> None:
        super().__init__(client, options)
        self._flows = client
        options.multiplier = "1"
        self._plan = plan_of(options)
        check_clients(client, options.clients)
        take_server(client, options.force, options.ports)
        mask = self._plan.client_mask
        self.ports: Sequence[int] = [
            port for port in client.get_all_ports() if port % 2 == 0 and mask >> port & 1
        ]

    @staticmethod
    def check(options: argparse.Namespace) -> None:
        """Refuse what is for streams, and a range without an end."""
        if options.both or options.sizes or options.tests:
            raise bad_input("--both, --sizes and --tests are for streams; this profile has flows")
        if options.max is None:
            raise bad_input(
                "--max is missing: a stateful profile has no line rate to begin with; give the highest "
                "factor of its own rates, such as --max 1000"
            )
        if options.servers_only:
            raise bad_input("--servers-only: a search opens flows; leave it out")
        flow_factor(options.max, "--max")
        flow_factor(options.min or "1", "--min")

    @staticmethod
    def connect(options: argparse.Namespace) -> AbstractContextManager[Any]:
        """Connect; a server of our own has the client ports that are named, and their servers'."""
        ports = _run.local_ports(options, 2 + max(options.clients or [0]))
        return _run.client_of_run(
            options,
            remote_stateful_client,
            lambda: LocalServer(ports=ports, cores=options.cores, stateful=True),
        )

    def put(self, case: Case, interrupt: Interrupt) -> Scale:
        """Put the profile onto the server, and tell the range of multipliers."""
        options, client = self.options, self._flows
        profile = load_file(case.path, case.tunables)
        templates = [one["client_template"] for one in profile.to_json()["templates"]]
        flow_rate = sum(float(one["cps"]) for one in templates if one.get("cps"))
        if not flow_rate:
            raise bad_input(f"profile {case.path}: no template opens flows; give one a rate (cps)")
        self._plan = replace(self._plan, resetting=resetting(profile))
        refuse_unmeasured(options.criteria, client, self._plan, profile)
        put(client, self._plan, case.path, profile, options.force)
        _gateways.wait(client, _gateways.of_flows(client, self._plan.client_mask), interrupt)
        load_min = _FLOWS_MIN / self.shortest_s / flow_rate
        if options.min is not None:
            load_min = flow_factor(options.min, "--min")
        return self.range(flow_factor(options.max, "--max"), load_min, flows_per_second=flow_rate)

    def load(self, load: float, duration_s: float) -> FlowLoad:
        """Open flows at a multiplier."""
        return FlowLoad(replace(self._plan, multiplier=load, duration_s=duration_s), self._flows)

    def counted(self, result: FlowResult) -> Counted:
        """Return what became of the flows."""
        return counted(result)


def counted(result: FlowResult) -> Counted:
    """Return what became of the flows of a run."""
    counters = result.counters
    offered, missed = counters.offered_flows, counters.missed_flows or 0
    messages = counters.lost_messages or 0
    details: dict[str, Any] = {
        "flows": counters.client.begun_flows,
        "connected": counters.client.connected_flows,
        "missed": missed,
        "errors": counters.to_json()["errors"],
        "outcomes": None if counters.outcomes is None else counters.outcomes.to_json(),
        "times": {} if counters.outcomes is None else counters.outcomes.times,
        "why": ends(result),
        "lost_messages": messages,
        "elapsed_s": round(result.elapsed_s, 6),
        "latency": worst_latency(result.latency),
        "duplicates": None,
        "out_of_order": None,
        "warnings": list(result.warnings),
    }
    failures = ["flows were still open long after the end"] if result.overdue else []
    failed = failed_flows(result)
    if not failed and not messages and _are_bytes_missing(result):
        failed = 1  # nobody knows of how many flows they are
    return Counted(offered, failed + counters.error_events + messages, missed, details, failures)


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
