"""`topo`, `tunnels_topo`, `tunnel`, `update_tunnel`, `black_list`: the network that clients seem to be in."""

from __future__ import annotations

import argparse
import contextlib
import io
import ipaddress
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from allosaur._files import no_file
from allosaur.cli import _options
from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _arguments, _tables
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session
from allosaur.cli.console.commands._flow_stats import refuse_readonly

_TUNNELS = {"gtpu": 1}
_CLIENTS_MAX = 1_000_000
_LOOK = ("show", "save", "get")


class Topo(ConsoleCommand):
    """`topo`."""

    name = "topo"
    summary = "virtual interfaces and gateways: load, resolve, show, clear, save"
    group = "Stateful"
    example = "topo load -f topology.py"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        _load(actions)
        for name, text in (("resolve", "find the gateways, give all to the server"), ("show", "show it")):
            _arguments.ports_or_all(actions.add_parser(name, help=text), all_flag=False)
        actions.add_parser("clear", help="forget it")
        _arguments.file(actions.add_parser("save", help="write it"), "a .json, .yaml or .py file")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client, action = session.flows, options.action or "show"
        _refuse(session, f"topo {action}", action)
        ports = getattr(options, "ports", None)
        if action == "show":
            return _printed(lambda: client.topo_show(ports), client.topo_get().to_json())
        if action == "load":
            client.topo_load(_file(options), options.values or {})
        elif action == "resolve":
            client.topo_resolve(ports)
        elif action == "clear":
            client.topo_clear()
        else:
            client.topo_save(options.file)
        return done(f"Topology {action}:", action=action)


class TunnelsTopo(ConsoleCommand):
    """`tunnels_topo`."""

    name = "tunnels_topo"
    summary = "tunnels of clients: load, show, clear"
    group = "Stateful"
    example = "tunnels_topo load -f tunnels.py"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        _load(actions)
        _arguments.ports_or_all(actions.add_parser("show", help="show them"), all_flag=False)
        actions.add_parser("clear", help="forget them")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        client, action = session.flows, options.action or "show"
        _refuse(session, f"tunnels_topo {action}", action)
        if action == "show":
            return _printed(client.tunnels_topo_show, client.tunnels_topo_get())
        if action == "load":
            client.tunnels_topo_load(_file(options), options.values or {})
        else:
            client.tunnels_topo_clear()
        return done(f"Tunnels topology {action}:", action=action)


class Tunnel(ConsoleCommand):
    """`tunnel`."""

    name = "tunnel"
    summary = "put clients into tunnels, or end that"
    group = "Stateful"
    example = "tunnel --type gtpu"
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _type(parser)
        parser.add_argument("--off", action="store_true", help="no tunnels")
        parser.add_argument("--loopback", action="store_true", help="both ends are here")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        session.flows.activate_tunnel(_TUNNELS[options.type], not options.off, options.loopback)
        return done(f"Tunnel mode {'off' if options.off else 'on'}:", type=options.type, on=not options.off)


class UpdateTunnel(ConsoleCommand):
    """`update_tunnel`."""

    name = "update_tunnel"
    summary = "give clients their tunnels"
    group = "Stateful"
    example = (
        "update_tunnel --c_start 16.0.0.1 --c_end 16.0.0.9 --teid 1 --sport 5000 "
        "--src_ip 1.1.1.1 --dst_ip 2.2.2.2 --type gtpu"
    )
    changes = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--c_start", required=True, type=_options.address, metavar="IPv4", help="first client")
        add("--c_end", required=True, type=_options.address, metavar="IPv4", help="last client")
        add("--teid", required=True, type=int, metavar="N", help="tunnel of the first; others count on")
        add("--ipv6", action="store_true", help="the tunnel is IPv6")
        add("--sport", required=True, type=int, metavar="UDP", help="source port; 0 is the client's own")
        add("--src_ip", required=True, type=_options.address, metavar="IP", help="outer source")
        add("--dst_ip", required=True, type=_options.address, metavar="IP", help="outer destination")
        _type(parser)

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        version = 6 if options.ipv6 else 4
        for name in ("src_ip", "dst_ip"):
            if ipaddress.ip_address(getattr(options, name)).version != version:
                raise bad_input(f"--{name} {getattr(options, name)}: is not IPv{version}")
        first, last = (int(ipaddress.ip_address(one)) for one in (options.c_start, options.c_end))
        if not 0 <= last - first < _CLIENTS_MAX:
            raise bad_input(f"--c_end {options.c_end}: give an address from --c_start {options.c_start} on")
        tunnels = {
            client: SimpleNamespace(
                sip=options.src_ip,
                dip=options.dst_ip,
                sport=options.sport,
                teid=options.teid + client - first,
                version=version,
            )
            for client in range(first, last + 1)
        }
        session.flows.update_tunnel_client_record(tunnels, _TUNNELS[options.type])
        return done(f"Updating the tunnels of {len(tunnels)} clients:", clients=len(tunnels))


class BlackList(ConsoleCommand):
    """`black_list`."""

    name = "black_list"
    summary = "MAC and IPv4 addresses whose packets are ignored: set, get, remove, upload, clear, show"
    group = "Stateful"
    example = "black_list set --macs 02:00:00:00:00:99 --upload"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")
        for name, text in (("set", "add some"), ("remove", "remove some")):
            action = actions.add_parser(name, help=text)
            for flag in ("--macs", "--ipv4"):
                action.add_argument(flag, nargs="+", default=[], metavar=flag[2:].upper(), help="addresses")
            _upload(action)
        _upload(actions.add_parser("clear", help="remove all"))
        for name, text in (("get", "take that of the server"), ("upload", "give it to the server")):
            actions.add_parser(name, help=text)
        actions.add_parser("show", help="show it")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        action = options.action or "show"
        _refuse(session, f"black_list {action}", action)
        if session.ignored is None or action == "get":
            session.ignored = session.flows.get_ignored_macs_ips()
        known = session.ignored
        if action in ("set", "remove"):
            if not options.macs and not options.ipv4:
                raise bad_input(f"black_list {action}: give --macs or --ipv4 with addresses")
            for key, given in (("macs", options.macs), ("ips", options.ipv4)):
                kept = [one for one in known[key] if one not in given]
                known[key] = [*kept, *given] if action == "set" else kept
        elif action == "clear":
            known = session.ignored = {"macs": [], "ips": []}
        if action == "upload" or getattr(options, "upload", False):
            session.flows.set_ignored_macs_ips(mac_list=known["macs"], ip_list=known["ips"])
        if action == "show":
            rows = [["MAC", one] for one in known["macs"]] + [["IPv4", one] for one in known["ips"]]
            text = _tables.titled("Black list", ["kind", "address"], rows) if rows else "It is empty."
            return Answer(text, known)
        return done(f"Black list {action}:", **known)


def _load(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser("load", help="read it from a file")
    _arguments.file(parser)
    parser.add_argument("-t", dest="values", type=_options.tunables, metavar="KEY=VALUE,...", help="for it")


def _file(options: argparse.Namespace) -> str:
    if why := no_file(options.file, may_be_pipe=True):
        raise bad_input(f"-f {options.file}: {why}")
    return str(options.file)


def _type(parser: argparse.ArgumentParser) -> None:
    read = _arguments.one_of(tuple(_TUNNELS))
    parser.add_argument("--type", required=True, type=read, metavar="gtpu", help="the kind of tunnel")


def _upload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upload", action="store_true", help="give it to the server at once")


def _refuse(session: Session, what: str, action: str) -> None:
    if action not in _LOOK:
        refuse_readonly(session, what)


def _printed(show: Callable[[], None], fields: dict[str, Any]) -> Answer:
    """Return what the client prints of something."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        show()
    return Answer(text.getvalue().rstrip(), fields)
