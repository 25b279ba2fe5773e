"""The actions of `allosaur emu`, one object each, in the order in which they are listed."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _arguments, _options
from allosaur.cli._action import Action
from allosaur.cli._answer import Answer
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.emulation import _access, _counters, _ping, _profile, _views

if TYPE_CHECKING:
    from allosaur import EMUClient


_SHOWN = 20
"""So many clients of a namespace are shown, unless more are asked for."""


class Load(Action["EMUClient"]):
    """`allosaur emu load`."""

    name = "load"
    summary = "emulate what a profile says, and nothing else"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.profile(parser)
        _arguments.tunables(parser)
        parser.add_argument(
            "--max-rate",
            type=_options.whole_number,
            metavar="N",
            help="add so many clients a second at most (default: as fast as can be)",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print the profile as JSON, ask no server for anything"
        )

    def check(self, options: argparse.Namespace) -> None:
        options.loaded = _profile.load(Path(options.profile), options.tunable)

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        client.load_profile(options.loaded, options.max_rate)
        return _profile.said(options.loaded)


class Remove(Action["EMUClient"]):
    """`allosaur emu remove`."""

    name = "remove"
    summary = "remove all emulated clients"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--max-rate",
            type=_options.whole_number,
            metavar="N",
            help="remove so many clients a second at most",
        )

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        keys = client.get_all_ns()
        count = sum(one["active_clients"] for one in client.get_info_ns(keys)) if keys else 0
        client.remove_profile(options.max_rate)
        text = f"Removed {_profile.counted(count, 'client')} in {_profile.counted(len(keys), 'namespace')}."
        return Answer(text, {"clients": count, "namespaces": len(keys)})


class Show(Action["EMUClient"]):
    """`allosaur emu show`."""

    name = "show"
    summary = "show namespaces and their clients, or all about one client"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _access.namespace_arguments(parser, "whose namespaces to show")
        _access.client_argument(parser, "tell all about this client")
        parser.add_argument(
            "--clients",
            type=_options.number,
            metavar="N",
            help=f"show so many clients of each namespace (default: {_SHOWN}; with --json all)",
        )

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        if options.mac is not None:
            return _views.details(client, _access.one_client(client, options))
        limit = options.clients if options.clients is not None or options.json else _SHOWN
        return _views.overview(client, _access.namespaces(client, options), limit)


class Counters(Action["EMUClient"]):
    """`allosaur emu counters`."""

    name = "counters"
    summary = "show what the server counts, or a plugin: of namespaces, of a client, of all together"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        plugin = parser.add_argument(
            "plugin",
            metavar="PLUGIN",
            nargs="?",
            default=_counters.CORE,
            help=f"a plugin, such as arp; or {_counters.CORE} (the server), or {_counters.RESOURCES} "
            "(CPU and memory) (default: %(default)s)",
        )
        plugin.completer = _counters.completions  # type: ignore[attr-defined] # argcomplete looks for it
        _access.namespace_arguments(parser, "whose namespaces count")
        _access.client_argument(parser, "the counters of this client (default: the sums of all)")
        parser.add_argument("--zero", action="store_true", help="show also those that are zero")
        parser.add_argument("--clear", action="store_true", help="let them begin at zero, and show nothing")

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        name = options.plugin
        _counters.check(client, name)
        if name in (_counters.CORE, _counters.RESOURCES):
            if options.clear:
                _counters.clear(client, name, [], None)
                return Answer("Cleared.", {"cleared": name})
            return _of([("", {}, _counters.of_server(client, name, options.zero))])
        keys = _access.namespaces(client, options)
        one = _access.one_client(client, options) if options.mac is not None else None
        if options.clear:
            _counters.clear(client, name, keys, one)
            return Answer("Cleared.", {"cleared": name})
        if one is not None:
            where = {**one.ns_key.conv_to_dict(), "mac": one.mac.S()}
            found = _counters.of_client(client, name, one, options.zero)
            return _of([(f"Client {one.mac} of {one.ns_key}", where, found)])
        return _of(
            [
                (
                    f"Namespace of {key}",
                    key.conv_to_dict(),
                    _counters.of_namespace(client, name, key, options.zero),
                )
                for key in keys
            ]
        )


class Ping(Action["EMUClient"]):
    """`allosaur emu ping`."""

    name = "ping"
    summary = "let a client ping an address"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "address", type=_options.address, metavar="ADDRESS", help="the IPv4 or IPv6 address to ping"
        )
        _access.client_argument(parser, "the client that pings (default: the first)")
        _access.namespace_arguments(parser, "of the client")
        add = parser.add_argument
        default = f"(default: {_ping.AMOUNT})"
        add(
            "-n",
            "--count",
            type=_options.whole_number,
            default=_ping.AMOUNT,
            metavar="N",
            help=f"times {default}",
        )
        add(
            *("-i", "--interval"),
            type=_options.seconds,
            default=1.0,
            metavar="TIME",
            help="time between two pings (default: 1)",
        )
        add(
            *("-s", "--size"),
            type=_options.whole_number,
            default=_ping.SIZE,
            metavar="BYTES",
            help=f"bytes of payload, {_ping.SIZE} or more (default: {_ping.SIZE})",
        )
        add(
            "--timeout",
            type=_options.whole_number,
            default=_ping.TIMEOUT_S,
            metavar="S",
            help=f"seconds to wait for the last answers (default: {_ping.TIMEOUT_S})",
        )

    def check(self, options: argparse.Namespace) -> None:
        if options.size < _ping.SIZE:
            raise bad_input(f"--size: {options.size} bytes are too few; write {_ping.SIZE} or more")
        if not options.interval:
            raise bad_input("--interval: 0 is no time between two pings; write one such as 10ms")

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        key = _access.one_client(client, options)
        settings = {
            "amount": options.count,
            "pace": 1 / options.interval,
            "dst": options.address,
            "timeout": options.timeout,
            "payload_size": options.size,
        }
        is_ipv6 = ipaddress.ip_address(options.address).version == 6
        with Interrupt() as interrupt:
            stats = _ping.ping(client, key, settings, is_ipv6, interrupt.sleep, lambda: bool(interrupt))
        found = _views.ping(options.address, stats)
        return Answer(found.text, {"mac": key.mac.S(), **found.fields})

    def exit_code(self, answer: Answer) -> int:
        return EXIT_OK if answer.fields["received"] else EXIT_FAILED


class Neighbors(Action["EMUClient"]):
    """`allosaur emu neighbors`."""

    name = "neighbors"
    summary = "show whom namespaces know, by ARP and by neighbor discovery"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _access.namespace_arguments(parser, "whose namespaces to ask")
        parser.add_argument(
            "--limit",
            type=_options.whole_number,
            default=_SHOWN,
            metavar="N",
            help=f"show so many (default: {_SHOWN}; with --json all)",
        )

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        return _views.neighbors(client, _access.namespaces(client, options), options.limit)


class Groups(Action["EMUClient"]):
    """`allosaur emu groups`."""

    name = "groups"
    summary = "show the multicast groups that namespaces are in"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _access.namespace_arguments(parser, "whose namespaces to ask")

    def answer(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        return _views.groups(client, _access.namespaces(client, options))


ACTIONS: tuple[Action[EMUClient], ...] = (Load(), Remove(), Show(), Counters(), Ping(), Neighbors(), Groups())


def _of(found: list[tuple[str, dict[str, Any], _views.Tables]]) -> Answer:
    texts = [_views.tables(tables, title) for title, _, tables in found if tables]
    fields = [{**where, "counters": _values(tables)} for _, where, tables in found]
    return Answer("\n\n".join(texts) or "Nothing was counted.", {"tables": fields})


def _values(tables: _views.Tables) -> dict[str, dict[str, int]]:
    return {name: {one["name"]: one["value"] for one in counters} for name, counters in tables.items()}
