"""`stats`, `clear`, `template_group`, `latency`: what is counted of flows."""

from __future__ import annotations

import argparse

from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli._options import address
from allosaur.cli._parser import nearest
from allosaur.cli.console import _arguments, _flow_tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands import _stats

_ALL_PORTS = 0x7FFFFFFF
_VIEWS = (
    ("-a", "astf", "counters of flows that are not zero"),
    ("--lc", "latency_counters", "counters of latency"),
)


class Stats(ConsoleCommand):
    """`stats`, of flows."""

    name = "stats"
    summary = "show what is counted; without an option of the server and its ports"
    group = "Stateful"
    example = "stats -a --pid _"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser, short=False, all_flag=False)
        views = parser.add_mutually_exclusive_group()
        for flag, view, text in (*_stats.COMMON_VIEWS, *_VIEWS):
            views.add_argument(flag, dest="view", action="store_const", const=view, help=text)
        for flags, view, text in (
            (("--xz", "--zx"), *_stats.ZERO),
            (("--za", "--az"), "astf_inc_zero", "all counters of flows"),
        ):
            views.add_argument(*flags, dest="view", action="store_const", const=view, help=text)
        parser.add_argument("--pid", metavar="NAME", help="with -a: of this profile (the sum of all)")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client, view = session.flows, options.view
        if options.pid is not None:
            if view not in ("astf", "astf_inc_zero"):
                raise bad_input("--pid: goes with -a or --za")
            check_pid(session, options.pid)
        if view in ("astf", "astf_inc_zero"):
            return _flow_tables.traffic(client, view == "astf_inc_zero", options.pid)
        own = {
            "latency": _flow_tables.latency,
            "latency_histogram": _flow_tables.latency_histogram,
            "latency_counters": _flow_tables.latency_counters,
        }
        return own[view](client) if view in own else _stats.view(session, options)


class Clear(ConsoleCommand):
    """`clear`, of flows."""

    name = "clear"
    summary = "count from here, as this console sees it"
    group = "Stateful"
    example = "clear"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.ports_or_all(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        ports = _arguments.chosen(session, options) or session.client.get_all_ports()
        session.flows.clear_stats(ports, pid_input="*", only_given=True)
        session.flows.clear_dynamic_traffic_stats(clear_all=True)
        return done(f"Clearing stats of port(s) {ports}", ports=ports)


class TemplateGroup(ConsoleCommand):
    """`template_group`."""

    name = "template_group"
    summary = "list the template groups of a profile, or show what one counts"
    group = "Stateful"
    example = "template_group stats --name down"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        names = actions.add_parser("names", help="list them")
        names.add_argument("--start", type=int, default=0, metavar="N", help="from this on (0)")
        names.add_argument("--amount", type=int, default=50, metavar="N", help="so many (50)")
        stats = actions.add_parser("stats", help="what one counts")
        stats.add_argument("--name", required=True, metavar="GROUP", help="which")
        for action in (names, stats):
            action.add_argument("--pid", default="_", metavar="NAME", help="the profile (_)")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        check_pid(session, options.pid)
        names = session.flows.get_tg_names(options.pid)
        if options.action == "names":
            shown = names[options.start : options.start + options.amount]
            lines = [f"Profile ID: {options.pid}", f"Template groups: {len(names)}", *shown]
            return Answer("\n".join(lines), {"names": shown, "total": len(names)})
        if options.name not in names:
            near = nearest(options.name, names) or f"; there are {', '.join(names) or 'none'}"
            raise bad_input(f"--name {options.name}: is no template group of profile {options.pid}{near}")
        stats = session.flows.get_traffic_tg_stats(options.name, pid_input=options.pid)[options.name]
        return _flow_tables.counters(stats, f"Template Group Name: {options.name}", "group")


class Latency(ConsoleCommand):
    """`latency`."""

    name = "latency"
    summary = "measure latency beside the flows: start, stop, update, show, hist, counters"
    group = "Stateful"
    example = "latency start --src 16.0.0.1 --dst 48.0.0.1 -m 100"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        start = actions.add_parser("start", help="send echo requests")
        start.add_argument("--src", required=True, type=address, metavar="IPv4", help="from")
        start.add_argument("--dst", required=True, type=address, metavar="IPv4", help="to")
        _arguments.ports_or_all(start, all_flag=False)
        start.add_argument("--dual-ip", type=address, default="1.0.0.0", metavar="IPv4", help="added a pair")
        update = actions.add_parser("update", help="change the rate")
        for action in (start, update):
            action.add_argument("-m", dest="mult", type=float, default=1, metavar="PPS", help="requests (1)")
        for name, text in (("stop", "send no more"), ("show", "as stats -l"), ("hist", "as stats --lh")):
            actions.add_parser(name, help=text)
        actions.add_parser("counters", help="as stats --lc")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client, action = session.flows, options.action or "show"
        views = {
            "show": _flow_tables.latency,
            "hist": _flow_tables.latency_histogram,
            "counters": _flow_tables.latency_counters,
        }
        if action in views:
            return views[action](client)
        refuse_readonly(session, f"latency {action}")
        if action == "stop":
            client.stop_latency()
        elif action == "update":
            client.update_latency(options.mult)
        else:
            mask = sum(1 << port for port in set(options.ports)) if options.ports else _ALL_PORTS
            client.start_latency(options.mult, options.src, options.dst, mask, options.dual_ip)
        return done(f"Latency {action}:", action=action)


def check_pid(session: Session, pid: str) -> None:
    """Refuse a profile that is not there."""
    known = session.flows.get_profiles_state()
    if pid not in known and pid != "_":
        raise bad_input(f"--pid {pid}: is no profile; there are {', '.join(sorted(known)) or 'none'}")


def refuse_readonly(session: Session, what: str) -> None:
    """Refuse what changes something while the console only looks."""
    if session.settings.readonly:
        raise bad_input(f"{what}: this console is read-only; `acquire` takes the server")
