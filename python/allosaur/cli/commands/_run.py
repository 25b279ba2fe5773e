"""`allosaur run`: a profile's traffic out of some ports, and what came of it."""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _again, _gateways, _profile, _report_file, _result
from allosaur.cli._access import check_ports, connected, refuse_running, remote_client, take
from allosaur.cli._cut_short import exit_code
from allosaur.cli._errors import EXIT_USAGE, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._own_server import started
from allosaur.cli._profile_kind import is_stateful
from allosaur.cli.flows import _run
from allosaur.cli.streams import _groups, _summary
from allosaur.cli.streams._directions import pair_of
from allosaur.cli.streams._drive import Outcome, Plan, drive, watched_ports
from allosaur.cli.streams._progress import progress
from allosaur.cli.streams._verdict import Verdict, judge
from allosaur.report import Report, write_report

if TYPE_CHECKING:
    from allosaur import STLClient

_OPTIONS_OF_FLOWS = (
    *("pid", "latency", "ipv6", "nc", "clients", "servers-only", "establish-within", "close-within"),
)


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur run` says; return the exit code."""
    if (options.local_ports or options.cores != 1) and not options.local:
        raise bad_input("--local-ports and --cores are for --local; a running server has its own")
    path = Path(options.profile)
    if is_stateful(path):
        return _run.execute(options)
    refuse_options_of_flows(options)
    options.ports = [0] if options.ports is None else options.ports
    report = _report_file.checked(options.report)
    tunables = _profile.merged(options.tunable)
    # Before anything is started: a profile that does not load needs no server.
    with _profile.noted_warnings() as noted:
        profiles = {port: _profile.load(path, port % 2, port, tunables) for port in options.ports}
    with Interrupt() as interrupt, _client(options) as client:
        plan = _plan(client, options)
        _prepare(client, options)
        streams = {port: profile.get_streams() for port, profile in profiles.items()}
        with explained("cannot read the packet groups"):
            grouping = _groups.assign(client, streams, wanted=not options.port_counters)
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
    verdict = judge(outcome)
    if report is not None:
        content = _report(options, outcome, verdict)
        with _report_file.writing(report):
            write_report(report, content)
    _print(options, tunables, outcome, verdict)
    return exit_code(outcome, verdict.ok)


def refuse_options_of_flows(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing for streams."""
    given = [name for name in _OPTIONS_OF_FLOWS if getattr(options, name.replace("-", "_")) is not None]
    if given:
        raise bad_input(f"--{given[0]} is for stateful profiles, and {options.profile} has streams")


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


@contextlib.contextmanager
def _client(options: argparse.Namespace) -> Iterator[STLClient]:
    """Connect to the server that the options name, or start one; disconnect, and stop it, at the end."""
    if not options.local:
        with remote_client(options) as client:
            yield client
        return
    with (
        started(_local_server(options)) as server,
        connected(server.client(), "the server of this run") as client,
    ):
        yield client


def _local_server(options: argparse.Namespace) -> Any:
    from allosaur.server import LocalServer

    if options.local_ports:
        specs = [spec.strip() for spec in options.local_ports.split(",")]
    else:
        specs = ["memory"] * (1 + max(max(port, pair_of(port)) for port in options.ports))
    return LocalServer(ports=specs, cores=options.cores)


def _print(options: argparse.Namespace, tunables: dict[str, Any], outcome: Outcome, verdict: Verdict) -> None:
    if not options.json:
        print(_summary.text(outcome, verdict))
        if options.report is not None:
            print(f"Report: {options.report}")
        return
    result = {
        **_result.heading("run"),
        "mode": "stateless",
        "profile": options.profile,
        "tunables": tunables,
        "server": "local" if options.local else str(options.server),
        "sending_ports": options.ports,
        **_summary.json_object(outcome, verdict),
        "report": options.report,
    }
    print(json.dumps(result, indent=2))


def _report(options: argparse.Namespace, outcome: Outcome, verdict: Verdict) -> Report:
    path, plan = Path(options.profile), outcome.plan
    seconds = "forever" if plan.duration_s == FOREVER else f"{plan.duration_s:g}"
    ports = ",".join(map(str, plan.ports))
    return Report(
        title=path.name,
        verdict=f"{verdict.summary}.",
        ok=verdict.ok,
        facts={
            "When": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "Server": "in-memory ports of its own" if options.local else str(options.server),
            "Asked": f"{plan.multiplier} from port {ports}, for {seconds} s",
            "Ran": f"{outcome.elapsed_s:.2f} s",
            "Python": platform.python_version(),
        },
        counters=outcome.counters,
        rates=outcome.rates,
        directions=verdict.directions,
        streams=outcome.streams,
        other_packets=outcome.other_packets,
        hints=outcome.hints,
        reasons=verdict.reasons,
        duration_s=outcome.elapsed_s,
        reproduce=[_again.command(options)],
        notes=[f"Warning: {text}" for text in outcome.all_warnings],
        profile=path.read_text(encoding="utf-8") if path.suffix == ".py" else "",
    )
