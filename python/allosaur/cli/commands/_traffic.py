"""`allosaur start`, `stop`, `update`, `stats`, `clear`: traffic that goes on when this program has ended."""

from __future__ import annotations

import argparse

from allosaur.cli import _arguments, _options
from allosaur.cli._answer import give
from allosaur.cli._command import Command


class _OnTraffic(Command):
    """A command about traffic of whatever kind: the function of its name does it."""

    def run(self, options: argparse.Namespace) -> int:
        """Do it, and print the answer."""
        from allosaur.cli.traffic import _commands

        return give(options, _commands.COMMANDS[self.name](options))


class Start(_OnTraffic):
    """`allosaur start`."""

    name = "start"
    summary = "start a profile on a server, and come back"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser)
        _arguments.multiplier(parser, "5mpps, 1gbps, 40%%")
        _arguments.duration_and_tunables(parser, default_duration="forever")
        _arguments.ports(parser, "that send streams (default: 0)")
        _arguments.flows(parser)
        parser.add_argument(
            "--record-flows",
            type=_options.seconds,
            metavar="TIME",
            help="record what TCP knows of each flow, so often; `allosaur stats --flows` shows it",
        )
        _arguments.server(parser, force=_arguments.FORCE_SERVER)
        _arguments.emu_port(parser)


class Stop(_OnTraffic):
    """`allosaur stop`."""

    name = "stop"
    summary = "stop traffic"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        which = _arguments.which_traffic(parser, "stop")
        which.add_argument("--emu", action="store_true", help="all emulated clients: they are removed")
        parser.add_argument("--clear", action="store_true", help="take it off the server, too")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)
        _arguments.emu_port(parser)


class Update(_OnTraffic):
    """`allosaur update`."""

    name = "update"
    summary = "change the rate of traffic that runs"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.new_multiplier(parser)
        _arguments.which_traffic(parser, "change")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)


class Stats(_OnTraffic):
    """`allosaur stats`."""

    name = "stats"
    summary = "show what traffic counts"
    is_result = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--pid",
            metavar="NAME",
            help="the stateful profile whose counters to show (default: the sum of all)",
        )
        _arguments.ports(parser, "whose counters to show (default: all)")
        parser.add_argument("--counters", action="store_true", help="show every counter that is not zero")
        parser.add_argument(
            "--groups",
            action="store_true",
            help="show the packet groups, or the template groups of the profile",
        )
        parser.add_argument("--flows", action="store_true", help="show what TCP knows of each flow")
        parser.add_argument(
            "--latency", action="store_true", help="show what streams or echo requests measure"
        )
        parser.add_argument(
            "--metrics",
            nargs="*",
            metavar="PREFIX",
            help="show instead what the server's registry has, of the metrics whose names begin so, such as "
            "port_missed: all that /metrics tells, without HTTP (default: every metric)",
        )
        _arguments.server(parser, force=None)


class Clear(_OnTraffic):
    """`allosaur clear`."""

    name = "clear"
    summary = "take profiles or streams off the server"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.which_traffic(parser, "take off the server")
        _arguments.server(parser, force=_arguments.FORCE_SERVER)
