"""The arguments of the commands that run a profile: run, sim, demo."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments_flows, _arguments_sim, _options, _shipped


def run(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur run`."""
    _shipped.add_profile(parser, _shipped.PROFILE_HELP)
    _load_arguments(parser, default_duration="10")
    parser.add_argument(
        "--ports",
        type=_options.port_list,
        metavar="N,...",
        help="the ports that send streams (default: 0)",
    )
    parser.add_argument(
        "--port-counters",
        action="store_true",
        help="send packets as the profile has them, and count ports, where packets of others count too "
        "(default: each stream has a packet group, known by the identification of IPv4 or the flow label of "
        "IPv6)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--server",
        type=_options.server_address,
        default=_options.ServerAddress(),
        metavar="HOST[:PORT]",
        help="the server to use (default: localhost:4501)",
    )
    where.add_argument(
        "--local", action="store_true", help="start a server with in-memory ports for this run only"
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="the server's event port (default: one below its RPC port)",
    )
    parser.add_argument(
        "--local-ports",
        metavar="SPEC,...",
        help="with --local: its ports (default: as many `memory` as are needed)",
    )
    parser.add_argument(
        "--cores",
        type=_options.whole_number,
        default=1,
        metavar="N",
        help="with --local: threads that send (default: 1)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="take the ports over even if someone else has them, and start even above the line rate",
    )
    parser.add_argument("--report", metavar="FILE", help="write an HTML report with plots")
    _arguments_flows.of_runs(parser.add_argument_group("flows (stateful profiles)"))
    _options.add_json(parser)


def sim(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur sim`."""
    _arguments_sim.of_streams(parser)
    _load_arguments(parser, default_duration="forever")
    _arguments_sim.of_flows(parser.add_argument_group("flows (stateful profiles)"))
    _arguments_sim.of_link(parser.add_argument_group("the link between clients and servers"))
    _options.add_json(parser)


def demo(parser: argparse.ArgumentParser) -> None:
    """Describe `allosaur demo`."""
    parser.add_argument(
        "--seconds",
        type=_options.duration_s,
        default=10.0,
        metavar="S",
        help="how long to send (default: 10)",
    )
    parser.add_argument(
        "--rate",
        type=_options.rate_pps,
        metavar="RATE",
        help="how fast each port sends (default: 200kpps of IMIX, or less on a slow machine)",
    )
    parser.add_argument(
        "--report",
        default="report.html",
        metavar="FILE",
        help="where to write the report (default: %(default)s)",
    )
    _options.add_json(parser)


def _load_arguments(parser: argparse.ArgumentParser, default_duration: str) -> None:
    parser.add_argument(
        "-m",
        "--multiplier",
        type=_options.multiplier,
        default="1",
        metavar="RATE",
        help="how fast: a factor of the profile's rate (2); of streams also a rate of each port (5mpps, "
        "1gbps, 1gbpsl1, 40%%) (default: 1)",
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=_options.duration_s,
        default=default_duration,
        metavar="TIME",
        help="how long: seconds (10), or 500ms, 2m, 1h, or forever (default: %(default)s)",
    )
    parser.add_argument(
        "-t",
        "--tunable",
        type=_options.tunables,
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="a value for the profile; may be given more than once",
    )
