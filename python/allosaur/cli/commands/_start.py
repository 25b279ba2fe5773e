"""`allosaur start`: traffic that goes on when this program has ended."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _answer, _gateways, _profile
from allosaur.cli._access import check_ports, refuse_running, remote_client, take
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_USAGE, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._profile_kind import is_stateful
from allosaur.cli.commands import _run
from allosaur.cli.flows import _commands


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur start` says; return the exit code."""
    path = Path(options.profile)
    if is_stateful(path):
        if options.ports is not None:
            raise bad_input(
                "--ports: a stateful profile uses all ports; --clients names those that open flows"
            )
        return _answer.give(options, _commands.start(options))
    _run.refuse_options_of_flows(options)
    return _answer.give(options, _start_streams(options, path))


def _start_streams(options: argparse.Namespace, path: Path) -> Answer:
    ports = [0] if options.ports is None else options.ports
    tunables = _profile.merged(options.tunable)
    profiles = {port: _profile.load(path, port % 2, port, tunables) for port in ports}
    with Interrupt() as interrupt, remote_client(options) as client:
        check_ports(client, ports)
        refuse_running(client, ports, options.force)
        take(client, ports, options.force)
        with explained("cannot clear the ports"):
            client.stop(ports=[f"{port}.*" for port in ports])
            client.remove_all_streams(ports=[f"{port}.*" for port in ports])
        for port, profile in profiles.items():
            with explained(f"profile {path}, port {port}", EXIT_USAGE):
                client.add_streams(profile.get_streams(), ports=[port])
        _gateways.wait(client, _gateways.of_streams(client, ports), interrupt, options.force)
        with explained("the traffic did not start", EXIT_USAGE):
            client.start(ports, options.multiplier, force=options.force, duration=options.duration)
    how_long = "until it is stopped" if options.duration == FOREVER else f"for {options.duration:g} s"
    again = _answer.where(options)
    text = (
        f"{_answer.listed(ports, 'Port')} send{'s' if len(ports) == 1 else ''}, {how_long}.\n"
        f"  allosaur stats{again}    shows what is counted\n"
        f"  allosaur stop{again}     stops it"
    )
    return Answer(
        text,
        {
            "profile": options.profile,
            "ports": ports,
            "multiplier": options.multiplier,
            "duration_asked_s": None if options.duration == FOREVER else options.duration,
        },
    )
