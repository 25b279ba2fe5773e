"""`allosaur sim`: a profile without a network: its packets or its flows in virtual time, or its hosts."""

from __future__ import annotations

import argparse
from pathlib import Path

from allosaur.cli import _arguments, _options
from allosaur.cli._command import Command
from allosaur.cli._errors import bad_input
from allosaur.cli._profile_kind import is_emulation, is_stateful

FAULTS = (
    *("syn-lost", "syn-ack-lost", "syn-refused", "syn-blind-reset", "wrong-port", "reset-middle"),
    *("reset-client", "reset-server", "blind-reset", "fin-lost", "silence", "truncate", "corrupt", "pad"),
)
"""What a device on the way can do; docs/guide/stateful.md says what each is."""
MTU_MIN = 68
MTU_MAX = 9224


class Sim(Command):
    """`allosaur sim`."""

    name = "sim"
    summary = "try a profile without a network: its packets, its flows, its emulated clients"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser, nargs="?")
        parser.add_argument(
            "--commands", metavar="FILE", help="instead of a profile: a JSON file of RPC requests"
        )
        parser.add_argument(
            "-o",
            "--output",
            metavar="OUT.pcap",
            help="the capture file to write; with flows two, OUT_c.pcap of the clients' port and "
            "OUT_s.pcap of the servers' (default: none)",
        )
        parser.add_argument(
            "--list",
            action="store_true",
            help="print a line for each packet; of flows those at the clients' port (default: of streams "
            "without -o)",
        )
        parser.add_argument(
            "--limit",
            type=_options.whole_number,
            metavar="N",
            help="packets to write at most (default: 5000, or what the commands file says), or to list "
            "(default: 100)",
        )
        parser.add_argument(
            "--cores",
            type=_options.whole_number,
            metavar="N",
            help="threads to simulate (default: 1, or what the commands file says)",
        )
        parser.add_argument(
            "--direction",
            type=int,
            choices=(0, 1),
            default=0,
            help="which side of the profile to simulate (default: 0)",
        )
        _arguments.multiplier(parser, "5mpps, 1gbps, 1gbpsl1, 40%%")
        _arguments.duration_and_tunables(parser, default_duration="forever")
        _flows_arguments(parser.add_argument_group("flows (stateful profiles)"))
        _link_arguments(parser.add_argument_group("the link between clients and servers"))
        _arguments.json_output(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Simulate a profile of streams, of flows or of emulated clients."""
        if (options.profile is None) == (options.commands is None):
            raise bad_input("give one of both: a PROFILE, or --commands FILE")
        if options.commands is None and is_emulation(Path(options.profile)):
            from allosaur.cli.emulation._sim import run as sim_emulation

            return sim_emulation(options)
        if options.commands is None and (options.stateful or is_stateful(Path(options.profile))):
            from allosaur.cli.flows._sim import run as sim_flows

            return sim_flows(options)
        from allosaur.cli.streams._sim import run as sim_streams

        return sim_streams(options)


def _flows_arguments(parser: argparse._ActionsContainer) -> None:
    """What flows have."""
    parser.add_argument(
        "--stateful", action="store_true", help="the profile has flows (else found out by itself)"
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="all flows at their rates, for -d (default: 5 s); without --full and -d one flow of each "
        "template",
    )
    parser.add_argument(
        "--flows", type=_options.whole_number, metavar="N", help="flows of each template at most"
    )
    parser.add_argument(
        "--patience",
        type=_options.seconds,
        metavar="TIME",
        help="how long flows may take after the last began, in virtual time (default: 10m)",
    )
    parser.add_argument("--ipv6", action="store_true", help="use IPv6, by the profile's tunables for it")
    parser.add_argument(
        "--seed",
        type=_options.number,
        default=1,
        metavar="N",
        help="where all that is random begins: the same seed, the same packets (default: 1)",
    )


def _link_arguments(parser: argparse._ActionsContainer) -> None:
    """What happens to packets on the way."""
    parser.add_argument(
        "--rtt",
        type=_options.seconds,
        default=0.001,
        metavar="TIME",
        help="how long a packet and its answer are under way, such as 50ms (default: 1ms)",
    )
    parser.add_argument(
        "--mtu",
        type=mtu,
        default=MTU_MAX,
        metavar="BYTES",
        help=f"the longest IP packet that the ports take, {MTU_MIN} to {MTU_MAX} (default: {MTU_MAX}, as the "
        "server's ports in memory)",
    )
    parser.add_argument(
        "--rate", type=_options.rate_bps, metavar="RATE", help="bits a second, such as 10mbps (default: any)"
    )
    parser.add_argument(
        "--queue",
        type=_options.whole_number,
        metavar="BYTES",
        help="with --rate: what may wait for the link; more is lost (default: any)",
    )
    for name, what in (("loss", "are lost"), ("reorder", "come late"), ("duplicate", "arrive twice")):
        parser.add_argument(
            f"--{name}",
            type=_options.share,
            default=0.0,
            metavar="SHARE",
            help=f"how many packets {what}: 1%% or 0.01",
        )
    parser.add_argument(
        "--fault",
        type=fault,
        action="append",
        default=[],
        metavar="NAME[:SHARE]",
        help="what a device on the way does, to all flows or a share of them (of packets: truncate, corrupt, "
        f"pad); may be given more than once: {', '.join(FAULTS)}",
    )


def mtu(text: str) -> int:
    """Read an MTU."""
    if not text.strip().isdecimal() or not MTU_MIN <= int(text) <= MTU_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no MTU; give {MTU_MIN} to {MTU_MAX} bytes")
    return int(text)


def fault(text: str) -> str:
    """Read `NAME` or `NAME:SHARE`; return it as the server's binary reads it."""
    name, colon, share = text.partition(":")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"{name!r} is no fault; there are {', '.join(FAULTS)}")
    return f"{name}:{_options.share(share):g}" if colon else name
