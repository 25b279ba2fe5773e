"""The parser of the `allosaur` command line, and the one place where errors are printed.

Imports only the standard library: what a command needs is imported when it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from allosaur.cli import _arguments_flows, _arguments_ports, _arguments_sim, _options
from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_SETUP, bad_input, refusal

_COMMANDS = {
    "server": ("_server", "start a server on this machine"),
    "config": ("_config", "write a configuration file for this machine, or check one"),
    "ports": ("_ports", "list what this machine has for ports, or print how to prepare one"),
    "run": ("_run", "send a profile's traffic and report what happened"),
    "start": ("_start", "start a profile on a server, and come back"),
    "stop": ("_stop", "stop traffic"),
    "update": ("_update", "change the rate of traffic that runs"),
    "stats": ("_stats", "show what traffic counts"),
    "clear": ("_clear", "take profiles or streams off the server"),
    "status": ("_status", "say what a server is, who owns its ports, and what runs since when"),
    "push": ("_push", "send a capture file, read here or by the server"),
    "capture": ("_capture", "record what ports send and receive, or show it"),
    "ping": ("_ping", "ping an IP address from a port"),
    "arp": ("_arp", "find the MAC address of a port's gateway"),
    "sim": ("_sim", "try a profile without a network, in virtual time: its packets, its conversations"),
    "demo": ("_demo", "start a server, send traffic both ways, check it, and write a report"),
    "version": ("_version", "say which version this is"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others of this program."""

    def error(self, message: str) -> NoReturn:
        raise bad_input(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. `arguments` are those of the process unless given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or os.environ.get("ALLOSAUR_DEBUG", "") not in ("", "0")
    try:
        return _execute(words)
    except BrokenPipeError:
        # Whoever read our output went away (as `head` does): nothing is left to say to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except (Exception, KeyboardInterrupt) as error:
        exit_code, message = _explain(error, debug)
        if debug:
            traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"command": words[0], "ok": False, "error": message, "exit_code": exit_code}))
    return exit_code


def _explain(error: BaseException, debug: bool) -> tuple[int, str]:
    """Return the exit code and the message of whatever ended a command."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED, "stopped"
    known = refusal(error)
    if known is not None:
        return known.exit_code, str(known)
    hint = "" if debug else "; this is a defect: run again with --debug and report what it prints"
    return EXIT_SETUP, f"{type(error).__name__}: {error}{hint}"


def _execute(words: Sequence[str]) -> int:
    try:
        options = _parser().parse_args(words)
    except SystemExit as stop:  # --help ends this way
        return stop.code if isinstance(stop.code, int) else EXIT_SETUP
    command: Callable[[argparse.Namespace], int] = import_module(f"allosaur.cli.{options.module}").execute
    exit_code = command(options)
    sys.stdout.flush()
    return exit_code


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="allosaur",
        description="Allosaur, an open traffic generator.",
        epilog="Begin with `allosaur demo`. Each command explains itself: allosaur run --help.",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", help="on an error, print where in the program it happened"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", parents=[common]
        )
        command.set_defaults(module=module)
        _ARGUMENTS[name](command)
    return parser


def _server_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--config",
        metavar="FILE",
        help="a file with all of this, in our form or TRex's; the options here go before what it says",
    )
    what.add_argument(
        "--ports",
        metavar="SPEC,...",
        help="the ports, in order; `memory` needs no network card, and two of them in a row are joined; "
        "a link can be slowed or disturbed: memory:rate=10gbps:delay=1ms:loss=0.1%%:seed=7 "
        "(default: memory,memory)",
    )
    parser.add_argument(
        "--stateful",
        action="store_true",
        help="for conversations over TCP and UDP (stateful profiles), not for streams alone",
    )
    parser.add_argument(
        "--cores", type=_options.whole_number, metavar="N", help="threads that send (default: 1)"
    )
    parser.add_argument(
        "--pin", action="store_true", help="bind each thread that sends to a CPU of its own, near its ports"
    )
    parser.add_argument(
        "--receive-threads",
        type=_options.whole_number,
        metavar="N",
        help="threads that receive (default: 1)",
    )
    parser.add_argument(
        "--poll",
        choices=["busy", "adaptive"],
        help="how threads wait: busy (best timing, a CPU each) or adaptive (they sleep when idle; they may "
        "share CPUs)",
    )
    parser.add_argument(
        "--rpc-port",
        type=int,
        metavar="PORT",
        help=f"where clients ask (default: {_options.DEFAULT_RPC_PORT}; 0 picks a free one)",
    )
    parser.add_argument(
        "--pub-port",
        type=int,
        metavar="PORT",
        help="where clients hear events (default: one below --rpc-port; 0 picks a free one)",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="which address to listen on (default: 127.0.0.1: there is no password, so only this "
        "machine may connect)",
    )


def _config_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser(
        "init", help="write a first file for this machine", description="Write a first file for this machine."
    )
    init.add_argument(
        "file",
        nargs="?",
        default="allosaur.yaml",
        metavar="FILE",
        help="the file to write; - is the standard output (default: %(default)s)",
    )
    init.add_argument("--force", action="store_true", help="write over a file that is there")
    check = actions.add_parser(
        "check",
        help="say whether a file is right",
        description="Say whether a file is right, in our form or TRex's.",
    )
    check.add_argument("file", metavar="FILE", help="the file to read")
    _json_argument(check)


def _ports_arguments(parser: argparse.ArgumentParser) -> None:
    _json_argument(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    prepare = actions.add_parser(
        "prepare",
        help="print the commands that prepare one; none of them is run",
        description="Print the commands that prepare an interface or a network card. None of them is run.",
    )
    prepare.add_argument("target", metavar="NAME", help="a PCI address, for DPDK, or an interface")
    prepare.add_argument(
        "--driver",
        metavar="DRIVER",
        help="the driver that hands the card to DPDK; with it an interface means its card "
        "(default: vfio-pci)",
    )
    prepare.add_argument(
        "--anyway", action="store_true", help="also for an interface with the machine's default route"
    )


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="a profile: a .py, .json, .yaml or .pcap file")
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
    _arguments_flows.of_runs(parser.add_argument_group("conversations (stateful profiles)"))
    _json_argument(parser)


def _sim_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments_sim.of_streams(parser)
    _load_arguments(parser, default_duration="forever")
    _arguments_sim.of_flows(parser.add_argument_group("conversations (stateful profiles)"))
    _arguments_sim.of_link(parser.add_argument_group("the link between clients and servers"))
    _json_argument(parser)


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
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
    _json_argument(parser)


def _version_arguments(parser: argparse.ArgumentParser) -> None:
    _json_argument(parser)


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


def _json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "server": _server_arguments,
    "config": _config_arguments,
    "ports": _ports_arguments,
    "run": _run_arguments,
    "start": _arguments_flows.start,
    "stop": _arguments_flows.stop,
    "update": _arguments_flows.update,
    "stats": _arguments_flows.stats,
    "clear": _arguments_flows.clear,
    "status": _arguments_flows.status,
    "push": _arguments_ports.push,
    "capture": _arguments_ports.capture,
    "ping": _arguments_ports.ping,
    "arp": _arguments_ports.arp,
    "sim": _sim_arguments,
    "demo": _demo_arguments,
    "version": _version_arguments,
}
