"""`allosaur demo`: the whole path at once, with nothing to set up.

Starts a server on two in-memory ports, sends the traffic of `demo/_profile.py` both ways, and checks that
what was received is what was sent; then TCP flows (`demo/_flows.py`); and writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from allosaur.cli import _format, _output_file, _profile, _result
from allosaur.cli._binary import server_binary
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._steal import StealTime
from allosaur.cli.demo import _checks, _flows
from allosaur.cli.demo import _profile as _demo_profile
from allosaur.report._model import Check, Part, Report
from allosaur.report._page import write_report
from allosaur.run import _summary, drive_one, judge
from allosaur.run._progress import progress
from allosaur.run.flows import _tables as _flow_tables
from allosaur.run.flows._result import FlowResult
from allosaur.run.streams import _groups
from allosaur.run.streams import _tables as _stream_tables
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._load import StreamLoad
from allosaur.run.streams._result import StreamResult

PORTS = (0, 1)
DURATION_MIN_S = 2.0
"""The burst chain needs about a second, and the start and the end some room."""
_RATE_PPS = 200_000.0
_RATE_ONE_CPU_PPS = 50_000.0
_TRIES_MAX = 3
T = TypeVar("T")


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur demo` says; return the exit code."""
    report_path = Path(options.report)
    _check_options(options, report_path)
    rate_pps = options.rate or (_RATE_PPS if len(os.sched_getaffinity(0)) > 1 else _RATE_ONE_CPU_PPS)
    outcome = undisturbed(
        lambda: _send(options.seconds, rate_pps), lambda outcome: bool(outcome.total.missed_packets)
    )
    verdict = judge(outcome)
    if outcome.exit_code is not None:
        # Half a demo proves nothing: no report, and no verdict on what was never sent.
        print(_summary.text(outcome, verdict), file=sys.stderr)
        raise CommandError("the demo was stopped before its end", outcome.exit_code)
    flows = undisturbed(_flows.run, lambda flows: bool(flows.counters.missed_flows))
    if flows.exit_code is not None:
        raise CommandError("the demo was stopped before its end", flows.exit_code)
    of_streams = _checks.check(outcome, rate_pps)
    checks = [*of_streams, *_flows.check(flows)]
    ok = verdict.ok and judge(flows).ok and all(check.ok for check in checks)
    report = _report(outcome, flows, of_streams, rate_pps, _verdict(outcome, flows, checks, ok), ok)
    with _output_file.writing_report(report_path):
        write_report(report_path, report)
    if options.json:
        result = {
            **_result.heading("demo"),
            "rate_asked_pps": rate_pps,
            **_summary.document(outcome, verdict),
            "conversations": _summary.document(flows, judge(flows)),
            "checks": [{"what": check.what, "ok": check.ok, "found": check.found} for check in checks],
            "report": str(report_path),
            "ok": ok,
        }
        print(json.dumps(result, indent=2))
    else:
        print(_text(outcome, flows, checks, ok, report_path))
    return EXIT_OK if ok else EXIT_FAILED


def undisturbed(measure: Callable[[], T], missed_load: Callable[[T], bool]) -> T:
    """Measure, once more when load was missed while the host of a virtual machine took its CPUs away.

    A demo shows what Allosaur does, not what the neighbors of this machine do; but it says what happened.
    """
    for tried in range(1, _TRIES_MAX):
        steal = StealTime()
        outcome = measure()
        reasons = steal.told()
        if not (missed_load(outcome) and reasons):
            return outcome
        print(f"Load was missed: {reasons[0]}. Once more ({tried + 1} of {_TRIES_MAX}).", file=sys.stderr)
    return measure()


def _check_options(options: argparse.Namespace, report: Path) -> None:
    if options.seconds == FOREVER or options.seconds < DURATION_MIN_S:
        raise bad_input(f"--seconds: the demo needs {DURATION_MIN_S:g} s at least, and an end")
    _output_file.checked("--report", str(report))


def _send(duration_s: float, rate_pps: float) -> StreamResult:
    """Start the server, send both ways, and stop it."""
    from allosaur.server import LocalServer

    server_binary()  # says how to build it when it is not there
    source = Path(_demo_profile.__file__)
    print("Starting a server on two in-memory ports, joined to each other ...", file=sys.stderr)
    with (
        Interrupt() as interrupt,
        explained("the demo failed"),
        LocalServer(ports=["memory", "memory"]) as server,
        server.client() as client,
    ):
        client.reset(ports=list(PORTS))
        profiles = [_profile.load(source, port, port, {"rate_pps": rate_pps}) for port in PORTS]
        streams = {port: profile.get_streams() for port, profile in zip(PORTS, profiles, strict=True)}
        grouping = _groups.assign(client, streams)
        for port in PORTS:
            client.add_streams(streams[port], ports=[port])
        rate = _format.rate(rate_pps, "pps")
        print(
            f"Sending {rate} of IMIX and a chain of bursts each way, for {duration_s:g} s.", file=sys.stderr
        )
        with progress(["demo"]) as show:
            return drive_one(
                StreamLoad(Plan(PORTS, "1", duration_s, PORTS), client, grouping), interrupt, show
            )


def _report(
    outcome: StreamResult, flows: FlowResult, of_streams: list[Check], rate_pps: float, verdict: str, ok: bool
) -> Report:
    source = Path(_demo_profile.__file__)
    rate, bursts = _format.rate(rate_pps, "pps"), _demo_profile.CHAIN_PACKETS
    seconds = f"{outcome.plan.duration_s:g}"
    return Report(
        title="Allosaur demo",
        verdict=verdict,
        ok=ok,
        facts={
            "When": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "Ports": "two in-memory ports, joined to each other, one sending thread",
            "Asked": f"{rate} of IMIX each way, and {bursts:,} packets in bursts",
            "Duration": f"{seconds} s",
            "Flows": f"{_flows.RATE_CPS} HTTP connections a second, for {_flows.DURATION_S:g} s",
            "Machine": f"{_processor()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
            "Python": platform.python_version(),
        },
        parts=[_part(outcome, of_streams), _flows.part(flows)],
        reproduce=[
            f"allosaur demo --seconds {seconds} --rate {rate_pps:g}pps",
            f"allosaur run {source} -t rate_pps={rate_pps:g} --local --ports 0,1 -d {seconds}",
            f"allosaur sim {source} -t rate_pps={rate_pps:g} -o demo.pcap --limit 1000",
            f"allosaur run {_flows.PROFILE} --local -m {_flows.RATE_CPS} -d {_flows.DURATION_S:g}",
        ],
    )


def _part(outcome: StreamResult, checks: list[Check]) -> Part:
    part = outcome.part(judge(outcome))
    source = Path(_demo_profile.__file__).read_text(encoding="utf-8")
    ok = part.ok and all(check.ok for check in checks)
    return replace(part, name="packets", ok=ok, checks=checks, profile=source)


def _text(outcome: StreamResult, flows: FlowResult, checks: list[Check], ok: bool, report: Path) -> str:
    lines = [_stream_tables.totals(outcome), ""]
    lines += [_flow_tables.totals(flows.counters, flows.elapsed_s), ""]
    lines += [f"  {'ok    ' if check.ok else 'FAILED'}  {check.what}: {check.found}" for check in checks]
    lines += [f"  warning: {warning}" for warning in outcome.warnings]
    verdict = _format.verdict(ok, _verdict(outcome, flows, checks, ok), ("PASSED", "FAILED"))
    lines += ["", verdict, ""]
    lines += [
        f"Report: {report}",
        "Next:",
        "  allosaur server                       start a server that stays",
        "  allosaur run imix -m 100kpps -d 10    send a profile there; `allosaur profiles` lists them",
        "  allosaur run http --local -m 1000 -d 10   connections over TCP, on a server of its own",
        "  allosaur sim imix -o out.pcap         see its packets without sending them",
        "  allosaur new mine.py                  write a profile of your own",
    ]
    return "\n".join(lines)


def _verdict(outcome: StreamResult, flows: FlowResult, checks: list[Check], ok: bool) -> str:
    if ok:
        packets, connections = outcome.total.tx_packets, flows.counters.client.connected_flows
        return (
            f"all {packets:,} packets were sent in time, and every one of them was received; "
            f"all {connections:,} connections completed, and every byte of them was received."
        )
    failed = [f"{check.what}: {check.found}" for check in checks if not check.ok]
    reasons = [*judge(outcome).reasons, *judge(flows).reasons]
    if failed:
        reasons.append(f"{len(failed)} of {len(checks)} checks failed, the first is {failed[0]}")
    return "; ".join(reasons) + "."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
