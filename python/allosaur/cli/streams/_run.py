"""`allosaur run` with streams: out of some ports, and what came of it."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from allosaur.cli import _again, _gateways, _profile, _report_file, _run, _thresholds
from allosaur.cli._access import check_ports, refuse_running, remote_client, take
from allosaur.cli._cut_short import exit_code
from allosaur.cli._errors import EXIT_USAGE, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.streams import _groups, _metrics, _summary
from allosaur.cli.streams._directions import pair_of
from allosaur.cli.streams._drive import Outcome, Plan, drive, watched_ports
from allosaur.cli.streams._ports import refuse_options_of_flows
from allosaur.cli.streams._progress import progress
from allosaur.cli.streams._verdict import Verdict, judge, judge_by
from allosaur.report import (
    Check,
    Part,
    Report,
    StreamTraffic,
    stream_headlines,
    stream_sections,
    write_report,
)
from allosaur.server import LocalServer

if TYPE_CHECKING:
    from allosaur import STLClient


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur run` says, with streams; return the exit code."""
    path = Path(options.profile)
    refuse_options_of_flows(options)
    options.ports = [0] if options.ports is None else options.ports
    report = _report_file.checked(options.report)
    thresholds = _thresholds.read(options.fail_if, _metrics.METRICS)
    tunables = _profile.merged(options.tunable)
    # Before anything is started: a profile that does not load needs no server.
    with _profile.noted_warnings() as noted:
        profiles = {port: _profile.load(path, port % 2, port, tunables) for port in options.ports}
    server = partial(_local_server, options)
    with Interrupt() as interrupt, _run.client_of_run(options, remote_client, server) as client:
        plan = _plan(client, options)
        _prepare(client, options)
        streams = {port: profile.get_streams() for port, profile in profiles.items()}
        with explained("cannot read the packet groups"):
            grouping = _groups.assign(client, streams, wanted=not options.port_counters)
        _metrics.refuse_unmeasured(thresholds, client, plan, streams, grouping)
        for port, of_port in streams.items():
            with explained(f"profile {path}, port {port}", EXIT_USAGE):
                client.add_streams(of_port, ports=[port])
        _gateways.wait(client, _gateways.of_streams(client, options.ports), interrupt, options.force)
        with progress(path.name) as shown:
            outcome = drive(client, plan, interrupt, shown.show, grouping=grouping)
        with contextlib.suppress(Exception):
            # Only tidying: the result stands, and the next run clears the port anyway.
            client.remove_all_streams(ports=options.ports)
    outcome = replace(outcome, profile_warnings=noted)
    verdict = judge_by(thresholds, outcome, _summary.json_object(outcome, judge(outcome)))
    if report is not None:
        content = _report(options, outcome, verdict)
        with _report_file.writing(report):
            write_report(report, content)
    fields = {
        "tunables": tunables,
        "server": _run.server_name(options),
        "sending_ports": options.ports,
        **_summary.json_object(outcome, verdict),
    }
    _run.give(options, "stateless", _summary.text(outcome, verdict), fields)
    return exit_code(outcome, verdict.ok)


def _plan(client: STLClient, options: argparse.Namespace) -> Plan:
    check_ports(client, options.ports)
    watched = watched_ports(options.ports, client.get_port_count())
    return Plan(options.ports, options.multiplier, options.duration, watched, options.force)


def _prepare(client: STLClient, options: argparse.Namespace) -> None:
    """Take the ports, and take away what an earlier run left on them."""
    refuse_running(client, options.ports, options.force)
    take(client, options.ports, options.force)
    with explained("cannot clear the ports"):
        client.stop(ports=options.ports)
        client.remove_all_streams(ports=options.ports)


def _local_server(options: argparse.Namespace) -> LocalServer:
    count = 1 + max(max(port, pair_of(port)) for port in options.ports)
    return LocalServer(ports=_run.local_ports(options, count), cores=options.cores)


def _report(options: argparse.Namespace, outcome: Outcome, verdict: Verdict) -> Report:
    path, plan = Path(options.profile), outcome.plan
    asked = f"{plan.multiplier} from port {','.join(map(str, plan.ports))}"
    traffic = StreamTraffic(
        outcome.counters,
        outcome.rates,
        verdict.directions,
        outcome.streams,
        outcome.other_packets,
        outcome.elapsed_s,
    )
    part = Part(
        name=path.stem,
        kind="streams",
        ok=verdict.ok,
        verdict=verdict.summary,
        headlines=stream_headlines(traffic),
        sections=stream_sections(traffic),
        checks=[Check(*row) for row in _thresholds.check_rows(verdict.thresholds)],
        reasons=verdict.reasons,
        hints=outcome.hints,
        notes=[f"Warning: {text}" for text in outcome.all_warnings],
        profile=_run.source(path),
    )
    facts = _run.facts(options, asked, plan.duration_s, f"{outcome.elapsed_s:.2f} s")
    again = [_again.command(options)]
    return Report(path.name, f"{verdict.summary}.", verdict.ok, facts, [part], reproduce=again)
