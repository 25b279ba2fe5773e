"""`allosaur run`: a profile's traffic, and what came of it."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _shipped
from allosaur.cli._command import Command


class Run(Command):
    """`allosaur run`."""

    name = "run"
    summary = "send a profile's traffic and report what happened"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "profiles",
            metavar="PROFILE",
            type=_shipped.located,
            nargs="+",
            help=f"{_arguments.PROFILE_HELP}; several run at once, each on ports of its own",
        )
        _arguments.multiplier(parser, "5mpps, 1gbps, 1gbpsl1, 40%%", per_load=True)
        _arguments.duration_and_tunables(parser, default_duration="10", per_load=True)
        _arguments.ports(
            parser,
            "that send streams (default: 0), or pairs for flows (default: all free ones; of several loads "
            "a pair each)",
            per_load=True,
        )
        parser.add_argument(
            "--port-counters",
            action="store_true",
            help="send packets as the profile has them, and count ports, where packets of others count too "
            "(default: each stream has a packet group, known by the identification of IPv4 or the flow label "
            "of IPv6)",
        )
        _arguments.server_or_local(parser, "run", "start")
        _arguments.emu_port(parser)
        _arguments.results(parser, metric_names)
        _arguments.flows(parser.add_argument_group("flows (stateful profiles)"))
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Run profiles of streams, of flows or of emulated clients."""
        return run_profiles(options)


def run_profiles(options: argparse.Namespace) -> int:
    """Run the profiles that the options name, and tell what came of them. Returns the exit code."""
    _arguments.check_local(options)
    options.profile = " ".join(options.profiles)
    from allosaur.run import _files
    from allosaur.run._command import run

    with _files.of_run(options) as files:
        options.files = files
        return run(options)


def metric_names(**_asked: object) -> list[str]:
    """Return what thresholds may be about, for who presses Tab: of each kind of traffic."""
    from allosaur.run._kinds import KINDS

    return list(dict.fromkeys(metric.name for kind in reversed(KINDS) for metric in kind.load().metrics))
