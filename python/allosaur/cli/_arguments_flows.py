"""The arguments of stateful traffic for `run`, and those of short commands, for both kinds of traffic."""

from __future__ import annotations

import argparse

from allosaur.cli import _options, _shipped


def of_runs(parser: argparse._ActionsContainer) -> None:
    """Arguments of a start of flows. Their defaults are `None`: who gives none may mean streams."""
    parser.add_argument(
        "--pid", metavar="NAME", help="the name under which the profile is on the server (default: _)"
    )
    parser.add_argument(
        "-l",
        "--latency",
        type=_options.whole_number,
        metavar="PPS",
        help="measure latency beside, with so many echo requests a second",
    )
    parser.add_argument(
        "--ipv6", action="store_const", const=True, help="use IPv6, by the profile's tunables for it"
    )
    parser.add_argument(
        "--nc", action="store_const", const=True, help="end at once, and leave open flows as they are"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--clients",
        type=_options.port_list,
        metavar="N,...",
        help="the client ports that open flows, such as 0,2 (default: all)",
    )
    who.add_argument(
        "--servers-only",
        action="store_const",
        const=True,
        help="open no flows, only serve those that come",
    )
    parser.add_argument(
        "--establish-within",
        type=_options.seconds,
        metavar="TIME",
        help="give up when no flow is established so long after the start",
    )
    parser.add_argument(
        "--close-within",
        type=_options.seconds,
        metavar="TIME",
        help="at the end, give flows so long to close (default: a minute)",
    )


def start(parser: argparse.ArgumentParser) -> None:
    """`allosaur start`."""
    _shipped.add_profile(parser, _shipped.PROFILE_HELP)
    parser.add_argument(
        "-m",
        "--multiplier",
        type=_options.multiplier,
        default="1",
        metavar="RATE",
        help="how fast: a factor of the profile's rate (2); of streams also a rate of each port (5mpps, "
        "1gbps, 40%%) (default: 1)",
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=_options.duration_s,
        default="forever",
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
    _ports(parser, "that send streams (default: 0)")
    of_runs(parser)
    parser.add_argument(
        "--record-flows",
        type=_options.seconds,
        metavar="TIME",
        help="record what TCP knows of each flow, so often; `allosaur stats --flows` shows it",
    )
    _server(parser, force=True)


def stop(parser: argparse.ArgumentParser) -> None:
    """`allosaur stop`."""
    _which(parser, "stop")
    parser.add_argument("--clear", action="store_true", help="take it off the server, too")
    _server(parser, force=True)


def update(parser: argparse.ArgumentParser) -> None:
    """`allosaur update`."""
    parser.add_argument(
        "-m",
        "--multiplier",
        type=_options.multiplier,
        required=True,
        metavar="RATE",
        help="a factor of the profile's rate (2); of streams also a rate of each port (5mpps, 1gbps, 40%%)",
    )
    _which(parser, "change")
    _server(parser, force=True)


def clear(parser: argparse.ArgumentParser) -> None:
    """`allosaur clear`."""
    _which(parser, "take off the server")
    _server(parser, force=True)


def stats(parser: argparse.ArgumentParser) -> None:
    """`allosaur stats`."""
    parser.add_argument(
        "--pid", metavar="NAME", help="the stateful profile whose counters to show (default: the sum of all)"
    )
    _ports(parser, "whose counters to show (default: all)")
    parser.add_argument("--counters", action="store_true", help="show every counter that is not zero")
    parser.add_argument(
        "--groups", action="store_true", help="show the packet groups, or the template groups of the profile"
    )
    parser.add_argument("--flows", action="store_true", help="show what TCP knows of each flow")
    parser.add_argument("--latency", action="store_true", help="show what streams or echo requests measure")
    _server(parser, force=False)


def status(parser: argparse.ArgumentParser) -> None:
    """`allosaur status`."""
    _server(parser, force=False)


def _which(parser: argparse.ArgumentParser, verb: str) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", metavar="NAME", help=f"the stateful profile to {verb} (default: _)")
    which.add_argument("--all", action="store_true", help="all stateful profiles")
    _ports(which, "whose streams are meant (default: all that have some)")


def _ports(parser: argparse._ActionsContainer, which: str) -> None:
    parser.add_argument("--ports", type=_options.port_list, metavar="N,...", help=f"the ports {which}")


def _server(parser: argparse.ArgumentParser, force: bool) -> None:
    parser.add_argument(
        "--server",
        type=_options.server_address,
        default=_options.ServerAddress(),
        metavar="HOST[:PORT]",
        help="the server to use (default: localhost:4501)",
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="the server's event port (default: one below its RPC port)",
    )
    if force:
        parser.add_argument(
            "--force", action="store_true", help="take the server over even if someone else has it"
        )
    _options.add_json(parser)
