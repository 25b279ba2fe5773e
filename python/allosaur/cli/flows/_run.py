"""`allosaur run` with a stateful profile: its flows, and what came of them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from allosaur.cli import _again, _gateways, _profile, _report_file, _run, _thresholds
from allosaur.cli._access import remote_stateful_client
from allosaur.cli._cut_short import exit_code
from allosaur.cli._errors import bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._thresholds import Thresholds
from allosaur.cli.flows import _hints, _metrics, _summary
from allosaur.cli.flows._access import check_clients, load_file, plan_of, put, resetting, take_server
from allosaur.cli.flows._drive import FlowResult, drive
from allosaur.cli.flows._progress import progress
from allosaur.cli.flows._verdict import (
    FlowVerdict,
    ends,
    is_comparable,
    is_cut_off_asked,
    judge,
    judge_by,
    undecided_errors,
)
from allosaur.report import (
    SIDES,
    Check,
    FlowCounters,
    FlowTraffic,
    Part,
    Report,
    flow_headlines,
    flow_hints,
    flow_sections,
    write_report,
)
from allosaur.server import LocalServer


@dataclass(frozen=True)
class OwnServer:
    """A server that is started for one run: its configuration file, and further words for it."""

    config: str
    words: Sequence[str]


def run(options: argparse.Namespace, own: OwnServer | None = None) -> int:
    """Do what `allosaur run` says, with flows; return the exit code."""
    if options.ports is not None and (options.local or own is not None):
        raise bad_input("--ports: a server of its own has a run's ports only; leave --ports or --local out")
    path = Path(options.profile)
    tunables = _profile.merged(options.tunable)
    plan = plan_of(options)
    report = _report_file.checked(options.report)
    thresholds = _thresholds.read(options.fail_if, _metrics.METRICS)
    # Before anything is started: a profile that does not load needs no server.
    with _profile.noted_warnings() as noted:
        profile = load_file(path, tunables)
    plan = replace(plan, resetting=resetting(profile))
    server = partial(_local_server, options, own)
    with Interrupt() as interrupt, _run.client_of_run(options, remote_stateful_client, server) as client:
        check_clients(client, options)
        _metrics.refuse_unmeasured(thresholds, client, plan, profile)
        take_server(client, options.force, options.ports)
        put(client, plan, path, profile, options.force)
        _gateways.wait(client, _gateways.of_flows(client, plan.client_mask), interrupt)
        with progress(path.name) as shown:
            outcome = drive(client, plan, interrupt, shown.show)
        with contextlib.suppress(Exception):
            # Only tidying: the result stands, and the next run loads its profile anyway.
            client.clear_profile(pid_input=plan.profile_id)
    outcome = replace(outcome, profile_warnings=noted)
    verdict = judge_by(thresholds, outcome, _summary.json_object(outcome, judge(outcome)))
    if report is not None:
        content = _report(options, outcome, verdict, thresholds)
        with _report_file.writing(report):
            write_report(report, content)
    fields = {
        "tunables": tunables,
        "server": _run.server_name(options),
        **_summary.json_object(outcome, verdict),
    }
    _run.give(options, "stateful", _summary.text(outcome, verdict), fields)
    return exit_code(outcome, verdict.ok)


def _local_server(options: argparse.Namespace, own: OwnServer | None) -> LocalServer:
    if own is not None:
        words = [word for word in own.words if word != "--stateful"]
        return LocalServer(config=own.config, options=words, stateful=True)
    ports = _run.local_ports(options, 2 + max(options.clients or [0]))
    return LocalServer(ports=ports, cores=options.cores, stateful=True)


def _report(
    options: argparse.Namespace, outcome: FlowResult, verdict: FlowVerdict, thresholds: Thresholds
) -> Report:
    plan, counters = outcome.plan, outcome.counters
    told = _hints.names(counters)
    path = Path(options.profile)
    asked = f"{plan.multiplier:g} times the profile's flows"
    ran = f"{outcome.elapsed_s:.2f} s, and {outcome.closing_s:.2f} s more until flows were closed"
    traffic = FlowTraffic(
        counters,
        outcome.rates,
        outcome.groups,
        outcome.latency,
        hints={name: _hints.hint(name) for name in told},
        meanings={name: _hints.meaning(name) for name in told},
        expected=("cut_off",) if is_cut_off_asked(outcome) else (),
        duration_s=outcome.elapsed_s,
    )
    part = Part(
        name=path.stem,
        kind="flows",
        ok=verdict.ok,
        verdict=verdict.summary,
        headlines=flow_headlines(traffic),
        sections=flow_sections(traffic),
        checks=[
            *checks(outcome, thresholds),
            *(Check(*row) for row in _thresholds.check_rows(verdict.thresholds)),
        ],
        reasons=verdict.reasons,
        hints=flow_hints(traffic),
        notes=[f"Warning: {text}" for text in outcome.all_warnings],
        profile=_run.source(path),
    )
    facts = _run.facts(options, asked, plan.duration_s, ran)
    again = [_again.command(options)]
    return Report(path.name, f"{verdict.summary}.", verdict.ok, facts, [part], reproduce=again)


def checks(outcome: FlowResult, thresholds: Thresholds = _thresholds.NONE) -> list[Check]:
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
    if is_comparable(outcome):
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
