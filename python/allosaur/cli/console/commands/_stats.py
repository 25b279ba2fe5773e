"""`stats`, `clear`, `events`: what is counted, and what happened."""

from __future__ import annotations

import argparse

from allosaur.cli._answer import Answer
from allosaur.cli.console import _arguments, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

COMMON_VIEWS = (
    ("-g", "global", "of the server as a whole"),
    ("-p", "ports", "counters and rates of ports"),
    ("--ps", "status", "what ports are"),
    ("-s", "streams", "packet groups of streams"),
    ("-l", "latency", "latency"),
    ("--lh", "latency_histogram", "histogram of latency"),
    ("-c", "cpu", "how busy the cores are"),
    ("-m", "mbuf", "packet memory"),
    ("-x", "xstats", "counters of the drivers that are not zero"),
)
ZERO = ("xstats_inc_zero", "all counters of the drivers")


class Stats(ConsoleCommand):
    """`stats`, of streams."""

    name = "stats"
    summary = "show what is counted; without an option of the server and its ports"
    example = "stats -p --port 0"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser, short=False)
        views = parser.add_mutually_exclusive_group()
        for flag, view, text in COMMON_VIEWS:
            views.add_argument(flag, dest="view", action="store_const", const=view, help=text)
        views.add_argument("--xz", "--zx", dest="view", action="store_const", const=ZERO[0], help=ZERO[1])

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        return view(session, options)


class Clear(ConsoleCommand):
    """`clear`, of streams."""

    name = "clear"
    summary = "count from here, as this console sees it"
    example = "clear -p 0"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client = session.client
        ports = _arguments.chosen(session, options) or client.get_all_ports()
        client.clear_stats(ports, only_given=True)
        return done(f"Clearing stats of port(s) {ports}", ports=ports)


class Events(ConsoleCommand):
    """`events`."""

    name = "events"
    summary = "show what the server and the client told"
    group = "Console"
    example = "events -w"
    needs_server = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("-c", "--clear", action="store_true", help="forget them")
        add("-i", "--info", action="store_true", help="those that are not warnings")
        add("-w", "--warn", action="store_true", help="warnings")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        wanted = [name for name, given in (("info", options.info), ("warning", options.warn)) if given]
        events = session.events(wanted or None, options.clear)
        return Answer("\n".join(events), {"events": events})


def view(session: Session, options: argparse.Namespace) -> Answer:
    """Return one of the views that streams have; without one the server and its ports."""
    client = session.client
    ports = _arguments.chosen(session, options) or client.get_all_ports()
    if options.view is None:
        return _tables.joined(_tables.global_stats(client), _tables.port_stats(client, ports))
    of_ports = {
        "ports": lambda: _tables.port_stats(client, ports),
        "status": lambda: _tables.port_status(client, ports),
        "xstats": lambda: _tables.xstats(client, ports, with_zero=False),
        ZERO[0]: lambda: _tables.xstats(client, ports, with_zero=True),
        "global": lambda: _tables.global_stats(client),
        "cpu": lambda: _tables.cpu(client),
        "mbuf": lambda: _tables.mbuf(client),
        "streams": lambda: _tables.groups(client),
        "latency": lambda: _tables.latency(client),
        "latency_histogram": lambda: _tables.latency_histogram(client),
    }
    return of_ports[options.view]()
