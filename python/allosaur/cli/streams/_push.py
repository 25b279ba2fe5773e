"""`allosaur push`: a capture file out of some ports, and what came of it."""

from __future__ import annotations

import argparse
import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur._files import no_file
from allosaur.cli import _gateways, _profile, _result
from allosaur.cli._access import check_ports, remote_client, take
from allosaur.cli._errors import bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.run import Verdict, _summary, drive_one, judge
from allosaur.run._progress import progress
from allosaur.run._verdict import exit_code
from allosaur.run.streams._counts import Plan, pair_of
from allosaur.run.streams._groups import Grouping
from allosaur.run.streams._load import StreamLoad
from allosaur.run.streams._result import StreamResult

if TYPE_CHECKING:
    from allosaur import STLClient


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur push` says; return the exit code."""
    if not options.remote and (why := no_file(options.file)):
        hint = "" if Path(options.file).exists() else "; with --remote it is one of the server's machine"
        raise bad_input(f"{options.file}: {why}{hint}")
    with Interrupt() as interrupt, remote_client(options) as client:
        plan = _plan(client, options)
        take(client, plan.ports, options.force)
        if options.force:
            with explained("cannot stop what runs on the ports"):
                client.stop(ports=[f"{port}.*" for port in plan.ports])
        _gateways.wait(client, [] if options.dst_mac_pcap else plan.ports, interrupt, options.force)
        begin = functools.partial(_begin, client, options)
        with progress([Path(options.file).name]) as show:
            grouping = Grouping.none(plan.ports, "a capture is sent as it was recorded")
            with _profile.noted_warnings() as noted:
                outcome = drive_one(StreamLoad(plan, client, grouping, begin), interrupt, show)
            outcome = replace(outcome, profile_warnings=noted)
        if not options.remote and not outcome.cut_short:
            with explained("cannot clear the ports"):
                client.remove_all_streams(ports=list(plan.ports))
    verdict = judge(outcome)
    _print(options, outcome, verdict)
    return exit_code([outcome], verdict.ok)


def _plan(client: STLClient, options: argparse.Namespace) -> Plan:
    ports = list(options.ports)
    if options.dual:
        partners = [pair_of(port) for port in ports]
        if set(partners) & set(ports):
            raise bad_input("--ports: with --dual name one port of each pair; the other one sends, too")
        ports += partners
    check_ports(client, ports)
    return Plan(ports, "1", options.duration, force=options.force)


def _begin(client: STLClient, options: argparse.Namespace) -> None:
    fields: dict[str, Any] = {
        "ports": options.ports,
        "ipg_usec": options.ipg,
        "min_ipg_usec": options.min_ipg,
        "speedup": options.speedup,
        "count": options.count,
        "duration": options.duration,
        "is_dual": options.dual,
        "src_mac_pcap": options.src_mac_pcap,
        "dst_mac_pcap": options.dst_mac_pcap,
    }
    if options.remote:
        client.push_remote(options.file, **fields)
    else:
        client.push_pcap(options.file, **fields, force=options.force)


def _print(options: argparse.Namespace, outcome: StreamResult, verdict: Verdict) -> None:
    if not options.json:
        print(_summary.text(outcome, verdict))
        return
    result = {
        **_result.heading("push"),
        "file": options.file,
        "remote": options.remote,
        "server": str(options.server),
        "sending_ports": list(outcome.plan.ports),
        **_summary.document(outcome, verdict),
    }
    del result["multiplier"]
    print(json.dumps(result, indent=2))
