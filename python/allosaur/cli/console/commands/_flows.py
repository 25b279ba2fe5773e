"""`start`, `stop`, `update`, `profiles`: stateful profiles, each under a name."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from allosaur.cli import _shipped
from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _arguments, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands import _stats, _streams, _traffic

DEFAULT = "_"
_ALL_CLIENTS = 0xFFFFFFFF


class Start(ConsoleCommand):
    """`start`, of flows."""

    name = "start"
    summary = "load a stateful profile and start it"
    group = "Stateful"
    example = "start -f http -m 10 -d 10"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.file(parser, "the profile: a file, or a name of `allosaur profiles`")
        add = parser.add_argument
        add("-m", dest="mult", type=float, default=1, metavar="FACTOR", help="so many times its flows (1)")
        _arguments.duration(parser, "-d", -1.0, "open flows for so long; without it until `stop`")
        _arguments.duration(parser, "--e_duration", 0.0, "give up without a flow after", "e_duration")
        _arguments.duration(parser, "--t_duration", 0.0, "let flows close for so long", "t_duration")
        _arguments.duration(parser, "--dump_interval", 0.0, "record flows so often", "dump_interval")
        _arguments.tunables(parser)
        add("--nc", action="store_true", help="end at once, and leave open flows as they are")
        add("-l", dest="latency_pps", type=int, default=0, metavar="PPS", help="measure latency beside")
        add("--ipv6", action="store_true", help="use IPv6")
        clients = parser.add_mutually_exclusive_group()
        clients.add_argument(
            "--clients", nargs="+", type=int, action="extend", metavar="PORT", help="these open flows"
        )
        clients.add_argument("--servers-only", action="store_true", help="open no flows")
        add("--pid", default=DEFAULT, metavar="NAME", help="the name of the profile (_)")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        from allosaur import ASTFProfile, STLError

        path = _shipped.located(options.file)
        _shipped.check(Path(path))
        words = _arguments.old_tunables(options.tunables)
        if _arguments.asks_help(options):
            with contextlib.suppress(STLError):  # a profile that explains itself ends there
                ASTFProfile.load(path, tunables=words)
            return Answer("")
        session.flows.load_profile(path, {"tunables": words} if words else {}, pid_input=options.pid)
        session.flows.start(
            options.mult,
            options.duration,
            options.nc,
            block=True,
            latency_pps=options.latency_pps,
            ipv6=options.ipv6,
            pid_input=options.pid,
            client_mask=_client_mask(session, options),
            e_duration=options.e_duration,
            t_duration=options.t_duration,
            dump_interval=options.dump_interval,
        )
        return done(f"Starting traffic of profile {options.pid}:", pid=options.pid, multiplier=options.mult)


class Stop(ConsoleCommand):
    """`stop`, of flows."""

    name = "stop"
    summary = "stop stateful profiles"
    group = "Stateful"
    example = "stop --pid _ --remove"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        pids(parser)
        parser.add_argument("--remove", action="store_true", help="take them off the server, too")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.flows.stop(pid_input=options.pids or DEFAULT, is_remove=options.remove)
        names = options.pids or [DEFAULT]
        return done(f"Stopping traffic of profile {', '.join(names)}:", pids=names)


class Update(ConsoleCommand):
    """`update`, of flows."""

    name = "update"
    summary = "change how many flows are opened"
    group = "Stateful"
    example = "update -m 20"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-m", dest="mult", type=float, default=1, metavar="FACTOR", help="so many times")
        pids(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.flows.update(options.mult, pid_input=options.pids or DEFAULT)
        names = options.pids or [DEFAULT]
        return done(f"Updating traffic of profile {', '.join(names)}:", pids=names, multiplier=options.mult)


class Profiles(ConsoleCommand):
    """`profiles`, of flows."""

    name = "profiles"
    summary = "show the stateful profiles and their states, and the streams beside them"
    group = "Stateful"
    example = "profiles"

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        states = dict(sorted(session.flows.get_profiles_state().items()))
        rows = [[name, state] for name, state in states.items()]
        beside = _streams.loaded_profiles(session, session.client.get_acquired_ports())
        flows = Answer(_tables.titled("Profile states", ["ID", "State"], rows), {"states": states})
        return _tables.joined(flows, beside)


class StartStl(_traffic.Start):
    """`start_stl`."""

    name = "start_stl"
    summary = "start streams beside the flows"
    group = "Stateful"
    example = "start_stl -f imix -p 0 -m 1kpps"


class StopStl(_traffic.Stop):
    """`stop_stl`."""

    name = "stop_stl"
    summary = "stop streams beside the flows"
    group = "Stateful"
    example = "stop_stl -a --remove"


class UpdateStl(_traffic.Update):
    """`update_stl`."""

    name = "update_stl"
    summary = "change the rate of streams beside the flows"
    group = "Stateful"
    example = "update_stl -p 0 -m 2kpps"


class StatsStl(_stats.Stats):
    """`stats_stl`."""

    name = "stats_stl"
    summary = "show what is counted of streams beside the flows"
    group = "Stateful"
    example = "stats_stl -p"


def pids(parser: argparse.ArgumentParser) -> None:
    """Add `--pid` with any number of profiles."""
    parser.add_argument(
        "--pid", dest="pids", nargs="+", action="extend", metavar="NAME", help="profiles, * for all (_)"
    )


def _client_mask(session: Session, options: argparse.Namespace) -> int:
    if options.servers_only:
        return 0
    known = session.client.get_all_ports()
    for port in options.clients or ():
        if port not in known or port % 2:
            raise bad_input(f"--clients {port}: is not a client port; those are 0, 2, ... of {known}")
    return sum(1 << port for port in set(options.clients)) if options.clients else _ALL_CLIENTS
