"""`allosaur run`: a profile's traffic out of some ports, and what came of it."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _profile, _summary
from allosaur.cli._access import check_ports, connected, remote_client, take
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._progress import progress
from allosaur.cli._traffic import Outcome, Plan, Verdict, drive, judge, pair_of, watched_ports

if TYPE_CHECKING:
    from allosaur import STLClient


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur run` says; return the exit code."""
    if (options.local_ports or options.cores != 1) and not options.local:
        raise bad_input("--local-ports and --cores are for --local; a running server has its own")
    path = Path(options.profile)
    tunables = _profile.merged(options.tunable)
    # Before anything is started: a profile that does not load needs no server.
    profiles = {port: _profile.load(path, port % 2, port, tunables) for port in options.ports}
    with Interrupt() as interrupt, _client(options) as client:
        plan = _plan(client, options)
        _prepare(client, options)
        for port, profile in profiles.items():
            with explained(f"profile {path}, port {port}", EXIT_USAGE):
                client.add_streams(profile.get_streams(), ports=[port])
        with progress(path.name) as shown:
            outcome = drive(client, plan, interrupt, shown.show)
        with contextlib.suppress(Exception):
            # Only tidying: the result stands, and the next run clears the port anyway.
            client.remove_all_streams(ports=options.ports)
    verdict = judge(outcome)
    _print(options, tunables, outcome, verdict)
    if outcome.exit_code is not None:
        return outcome.exit_code
    return EXIT_OK if verdict.ok else EXIT_FAILED


def _plan(client: STLClient, options: argparse.Namespace) -> Plan:
    check_ports(client, options.ports)
    watched = watched_ports(options.ports, client.get_port_count())
    return Plan(options.ports, options.multiplier, options.duration, watched, options.force)


def _prepare(client: STLClient, options: argparse.Namespace) -> None:
    """Take the ports, and take away what an earlier run left on them."""
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
        _local_server(options) as server,
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
        return
    result = {
        "command": "run",
        "profile": options.profile,
        "tunables": tunables,
        "server": "local" if options.local else str(options.server),
        "sending_ports": options.ports,
        **_summary.json_object(outcome, verdict),
    }
    print(json.dumps(result, indent=2))
