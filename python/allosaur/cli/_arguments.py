"""Arguments that several commands have: the server, ports, a profile and its rate, an address of a port."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Literal

from allosaur.cli import _options, _shipped
from allosaur.cli._errors import bad_input

PROFILE_HELP = "a profile: a .py, .json, .yaml or .pcap file, or a name of `allosaur profiles`"
_RATES = "a factor of the profile's rate (2); of streams also a rate of each port"


def json_output(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, alone or with a file."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print the result as one JSON object, or write it to FILE.json",
    )


def server_address(parser: argparse._ActionsContainer) -> None:
    """Add `--server`."""
    parser.add_argument(
        "--server",
        type=_options.server_address,
        default=_options.ServerAddress(),
        metavar="HOST[:PORT]",
        help="the server to use (default: localhost:4501)",
    )


def pub_port(parser: argparse.ArgumentParser) -> None:
    """Add `--pub-port` of a client."""
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="the server's event port (default: one below its RPC port)",
    )


def emu_port(parser: argparse._ActionsContainer) -> None:
    """Add `--emu-port` of a client."""
    parser.add_argument(
        "--emu-port",
        type=_options.tcp_port,
        default=_options.EMULATION_PORT,
        metavar="PORT",
        help=f"the server's port for emulated clients (default: {_options.EMULATION_PORT})",
    )


def server(parser: argparse.ArgumentParser, force: str | None) -> None:
    """Add what every command has that uses a server; `force` is the help of `--force`, if it has that."""
    server_address(parser)
    pub_port(parser)
    if force is not None:
        parser.add_argument("--force", action="store_true", help=force)
    json_output(parser)


def server_or_local(parser: argparse.ArgumentParser, purpose: str, verb: str) -> None:
    """Add what says where traffic runs: a server, or one of its own; `verb` is what `--force` does, too."""
    where = parser.add_mutually_exclusive_group()
    server_address(where)
    where.add_argument(
        "--local", action="store_true", help=f"start a server with in-memory ports for this {purpose} only"
    )
    pub_port(parser)
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
        help=f"take the ports over even if someone else has them, and {verb} even above the line rate",
    )


def check_local(options: argparse.Namespace) -> None:
    """Refuse options of a server of one's own without it. Raises ``CommandError``."""
    if (options.local_ports or options.cores != 1) and not options.local:
        raise bad_input("--local-ports and --cores are for --local; a running server has its own")


FORCE_SERVER = "take the server over even if someone else has it"
FORCE_PORTS = "take the ports over from whoever has them"


def profile(parser: argparse.ArgumentParser, nargs: Literal["?"] | None = None) -> None:
    """Add the argument PROFILE."""
    parser.add_argument("profile", metavar="PROFILE", type=_shipped.located, nargs=nargs, help=PROFILE_HELP)


class _PerLoad(argparse.Action):
    """Keeps a value for all, or, of `NAME=VALUE`, for one of several loads, in `of_load`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        own = isinstance(values, _options.OfLoad)
        found = dict(getattr(namespace, "of_load", {}))
        key = (self.dest, values.name) if own else None
        value = values.value if own else values
        if isinstance(self.default, list):
            value = [*(found.get(key, ()) if key else getattr(namespace, self.dest)), value]
        if key is None:
            setattr(namespace, self.dest, value)
        else:
            namespace.of_load = {**found, key: value}


def _read_by(read: Callable[[str], Any], sign: str, per_load: bool) -> dict[str, Any]:
    """Return how an option is read; `per_load` lets it be of one of several loads."""
    return {"type": _options.of_load(read, sign), "action": _PerLoad} if per_load else {"type": read}


def multiplier(parser: argparse.ArgumentParser, units: str, per_load: bool = False) -> None:
    """Add `-m`, with examples of rates of a port."""
    more = "; of one of several loads NAME=RATE" if per_load else ""
    parser.add_argument(
        "-m",
        "--multiplier",
        **_read_by(_options.multiplier, "=", per_load),
        default="1",
        metavar="RATE",
        help=f"how fast: {_RATES} ({units}){more} (default: 1)",
    )


def new_multiplier(parser: argparse.ArgumentParser) -> None:
    """Add `-m` of a command that needs it."""
    parser.add_argument(
        "-m",
        "--multiplier",
        type=_options.multiplier,
        required=True,
        metavar="RATE",
        help=f"{_RATES} (5mpps, 1gbps, 40%%)",
    )


def duration_and_tunables(
    parser: argparse.ArgumentParser, default_duration: str, per_load: bool = False
) -> None:
    """Add `-d` and `-t` of a profile."""
    duration(parser, default_duration)
    tunables(parser, per_load)


def duration(parser: argparse._ActionsContainer, default: str) -> None:
    """Add `-d`."""
    parser.add_argument(
        "-d",
        "--duration",
        type=_options.duration_s,
        default=default,
        metavar="TIME",
        help="how long: seconds (10), or 500ms, 2m, 1h, or forever (default: %(default)s)",
    )


def results(parser: argparse._ActionsContainer, metric_names: Callable[..., list[str]]) -> None:
    """Add where the result of a run goes, and what fails it."""
    parser.add_argument("--report", metavar="FILE", help="write an HTML report with plots")
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE, as --json prints it")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML: the verdict and each threshold")
    limits = parser.add_argument(
        "--fail-if",
        nargs="+",
        action="extend",
        type=_options.threshold,
        default=[],
        metavar="METRIC>VALUE",
        help="thresholds: fail the run when it comes to that, such as 'loss>0.01%%' 'latency.p99>100us'; "
        "@FILE has one in each line",
    )
    limits.completer = metric_names  # type: ignore[attr-defined]


def tunables(parser: argparse._ActionsContainer, per_load: bool = False) -> None:
    """Add `-t` of a profile."""
    more = "; of one of several loads NAME:KEY=VALUE" if per_load else ""
    parser.add_argument(
        "-t",
        "--tunable",
        **{"action": "append", **_read_by(_options.tunables, ":", per_load)},
        default=[],
        metavar="KEY=VALUE,...",
        help=f"a value for the profile; may be given more than once{more}",
    )


def ports(parser: argparse._ActionsContainer, which: str, per_load: bool = False) -> None:
    """Add `--ports`."""
    more = "; of one of several loads NAME=N,..." if per_load else ""
    parser.add_argument(
        "--ports",
        **_read_by(_options.port_list, "=", per_load),
        metavar="N,...",
        help=f"the ports {which}{more}",
    )


def which_traffic(parser: argparse.ArgumentParser, verb: str) -> argparse._MutuallyExclusiveGroup:
    """Add what names traffic on a server: a profile of flows, all of them, or ports with streams.

    Return the group, for what else may be named.
    """
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", metavar="NAME", help=f"the stateful profile to {verb} (default: _)")
    which.add_argument("--all", action="store_true", help="all stateful profiles")
    ports(which, "whose streams are meant (default: all that have some)")
    return which


def asking_port(parser: argparse.ArgumentParser) -> None:
    """Add the port that asks its neighbors, and the address that it gets for that."""
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port that asks (default: 0)")
    parser.add_argument(
        "--source",
        type=_options.address,
        metavar="ADDRESS",
        help="first give the port this address (default: it keeps the one that it has)",
    )
    parser.add_argument(
        "--gateway",
        type=_options.address,
        metavar="ADDRESS",
        help="with --source: the address of the port's IPv4 gateway",
    )
    parser.add_argument(
        "--vlan",
        type=_options.vlan,
        metavar="TAG[,TAG]",
        help="VLAN of the packets, or two, the outer first (default: the port's)",
    )


OPTIONS_OF_FLOWS = (
    *("pid", "latency", "ipv6", "nc", "clients", "servers-only", "establish-within", "close-within"),
)


def refuse_options_of_flows(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing for streams."""
    given = [name for name in OPTIONS_OF_FLOWS if getattr(options, name.replace("-", "_")) is not None]
    if given:
        raise bad_input(f"--{given[0]} is for stateful profiles, and {options.profile} has streams")


def flows(parser: argparse._ActionsContainer, has_latency: bool = True) -> None:
    """Add what a start of flows has. The defaults are `None`: who gives none may mean streams.

    Without `has_latency` the command has an option of that name for both kinds of traffic.
    """
    parser.add_argument(
        "--pid", metavar="NAME", help="the name under which the profile is on the server (default: _)"
    )
    if has_latency:
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
