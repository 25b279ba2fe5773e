"""`allosaur plan`: how many cores, ports and bytes a load takes, from costs measured on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command


class Plan(Command):
    """`allosaur plan`."""

    name = "plan"
    summary = "say what a load takes: cores, memory, queues, ports, and what limits first"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser)
        parser.add_argument(
            "--target",
            type=_options.target,
            required=True,
            metavar="LOAD",
            help="what to reach: 100gbps, 40gbpsl1, 3mpps (of the direction that has more), or 200kcps (new "
            "flows)",
        )
        _arguments.tunables(parser)
        _machine_arguments(parser)
        parser.add_argument(
            "--headroom",
            type=_options.share,
            default=0.2,
            metavar="SHARE",
            help="how much of a core stays free (default: 20%%)",
        )
        parser.add_argument(
            "--rtt",
            type=_options.seconds,
            default=0.001,
            metavar="TIME",
            help="how long a packet and its answer are under way (default: 1ms)",
        )
        parser.add_argument(
            "--measured",
            type=Path,
            metavar="FILE",
            help="take the costs from a plan's --json file, of this machine or another (default: measure)",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="run the profile at a part of the target on ports in memory, and say how far off the plan "
            "is",
        )
        parser.add_argument(
            "-d",
            "--duration",
            type=_options.seconds,
            default=1.0,
            metavar="TIME",
            help="how long each cost is measured; the check takes three times as long (default: 1s)",
        )
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Plan, and print the plan."""
        from allosaur.cli.plan._command import run

        return run(options)


def _machine_arguments(parser: argparse.ArgumentParser) -> None:
    """What there is, to say what limits first."""
    parser.add_argument(
        "--nic",
        type=_options.rate_bps,
        default=100e9,
        metavar="RATE",
        help="the rate of a port (default: 100gbps)",
    )
    parser.add_argument(
        "--ports",
        type=_options.whole_number,
        default=2,
        metavar="N",
        help="ports that there are, to say what limits first (default: 2)",
    )
    parser.add_argument(
        "--cores",
        type=_options.whole_number,
        metavar="N",
        help="cores for data threads that there are (default: this machine's CPUs but one)",
    )
