"""All `emu_*` commands: those of the server, and those of each plugin in the order of their names."""

from __future__ import annotations

import argparse
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from allosaur.cli import _options
from allosaur.cli.console import _arguments
from allosaur.cli.console.commands import _emulation, _emulation_ipfix
from allosaur.cli.console.commands._emulation import (
    CLIENT,
    NAMESPACE,
    NAMESPACES,
    EmulationCommand,
    ShowCounters,
    Whom,
    one_client,
)
from allosaur.cli.console.commands._emulation_plugins import (
    Asks,
    ClientPing,
    Dot1xAll,
    Given,
    lines,
    records,
)

_OF_CLIENTS = ("appsim", "cdp", "dhcp", "dhcpsrv", "dhcpv6", "dot1x", "ipfix", "lldp", "tdl", "transport")
"""The plugins that count by client, and under no other name."""


def all_commands() -> dict[str, EmulationCommand]:
    """Return the commands by name."""
    plugins: list[EmulationCommand] = [
        *_counters(),
        *_ASKS,
        *_groups("igmp", "mc", 4),
        *_groups("ipv6", "mld", 6),
    ]
    plugins += [*_pings(), Dot1xAll(), _emulation_ipfix.IpfixPush(), _emulation_ipfix.IpfixLoadConfig()]
    found = [*_emulation.COMMANDS, *sorted(plugins, key=lambda one: one.name)]
    return {one.name: one for one in found}


def _counters() -> Iterator[ShowCounters]:
    of_client = replace(CLIENT, add_arguments=_client_of_counters)
    for name, plugin, whom in (
        *((f"{plugin}_show_counters", plugin, of_client) for plugin in _OF_CLIENTS),
        *((f"{plugin}_show_c_counters", plugin, of_client) for plugin in ("dns", "mdns")),
        *((f"{plugin}_show_ns_counters", plugin, NAMESPACES) for plugin in ("dns", "mdns", "ipfix")),
        *((f"{plugin}_show_counters", plugin, NAMESPACES) for plugin in ("arp", "igmp", "ipv6")),
        ("transe_show_counters", "transporte", NAMESPACES),
        ("icmp_show_counters", "icmp", NAMESPACE),
    ):
        yield ShowCounters(
            name, f"show the counters of {plugin}, of {whom.noun}", whom, _counted(plugin, whom)
        )


def _client_of_counters(parser: argparse.ArgumentParser) -> None:
    one_client(parser)
    for name in ("-4", "--dg", "-6"):
        parser.add_argument(name, dest="ignored", metavar="IP", help="nothing: --mac says which client")


def _counted(plugin: str, whom: Whom) -> Callable[[Any], Any]:
    attribute = "client_data_cnt" if whom.key_name == CLIENT.key_name else "ns_data_cnt"
    return lambda client: getattr(client.registered_plugs[plugin], attribute)


def _pings() -> Iterator[ClientPing]:
    for plugin, family, address in (("icmp", 4, "16.0.0.1"), ("ipv6", 6, "2001:db8::1")):
        example = f"--dst {address} --amount 2"
        summary = f"let a client ping by IPv{family}"
        yield ClientPing(f"{plugin}_ping", summary, CLIENT, family == 6, example=example)


def _groups(plugin: str, word: str, family: int) -> Iterator[Asks]:
    """Those of IGMP and of MLD: the same, under other names."""
    yield Asks(f"{plugin}_get_cfg", f"show the settings of {plugin}", NAMESPACES, show=records)
    yield Asks(
        f"{plugin}_set_cfg",
        f"set the longest report of {plugin}, and who sends it",
        NAMESPACES,
        Given(_speaker, operator.attrgetter("mtu", "mac")),
        example="--mtu 1500 --mac 00:00:00:70:00:01",
    )
    method = f"{plugin}.iter_{word}"
    yield Asks(
        f"{plugin}_show_{word}", "show the groups of a namespace", NAMESPACES, method=method, show=records
    )
    yield Asks(f"{plugin}_remove_all_{word}", "leave all groups", NAMESPACES)
    group, source = ("239.1.0.1", "16.0.0.1") if family == 4 else ("ff05::1", "2001:db8::1")
    for verb, what in (("add", "join"), ("remove", "leave")):
        yield Asks(
            f"{plugin}_{verb}_{word}",
            f"{what} groups, whatever their source",
            NAMESPACES,
            Given(_range_options(family, False), lambda options: [_addresses(family, options, "group")]),
            example=f"--{family} {group} --{family}-count 2",
        )
        yield Asks(
            f"{plugin}_{verb}_{word}_sg",
            f"{what} groups of some sources",
            NAMESPACES,
            Given(_range_options(family, True), lambda options: _pairs(family, options)),
            example=f"--{family}g {group} --{family}g-count 2 --{family}s {source}",
        )


def _addresses(family: int, options: argparse.Namespace, what: str) -> list[Any]:
    """Return the groups, or the sources, that options mean."""
    from allosaur import Ipv4, Ipv6

    kind: Any = Ipv4 if family == 4 else Ipv6
    first = kind(getattr(options, what), mc=what == "group")
    return [first[number] for number in range(getattr(options, f"{what}_count"))]


def _pairs(family: int, options: argparse.Namespace) -> list[list[Any]]:
    """Return each group with each source: the groups, and the sources beside them."""
    groups, sources = (_addresses(family, options, what) for what in ("group", "source"))
    return [[group for group in groups for _ in sources], [source for _ in groups for source in sources]]


def _speaker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mtu", type=int, required=True, metavar="BYTES", help="256 to 9000")
    text = "the client that sends the reports"
    parser.add_argument("--mac", type=_options.mac, required=True, metavar="MAC", help=text)


def _range_options(family: int, has_sources: bool) -> Callable[[argparse.ArgumentParser], object]:
    def add(parser: argparse.ArgumentParser) -> None:
        for letter, dest in (("g", "group"), ("s", "source")) if has_sources else (("", "group"),):
            name = f"--{family}{letter}"
            parser.add_argument(name, dest=dest, required=True, metavar="IP", help=f"the first {dest}")
            parser.add_argument(
                f"{name}-count",
                dest=f"{dest}_count",
                type=_options.whole_number,
                default=1,
                metavar="N",
                help=f"how many {dest}s (1)",
            )

    return add


def _one(*names: str, before: tuple[Any, ...] = (), **settings: Any) -> Given:
    """Return an option that must be given; its value comes behind those of `before`."""
    dest = names[-1].removeprefix("--")
    return Given(
        lambda parser: parser.add_argument(*names, required=True, **settings),
        lambda options: [*before, getattr(options, dest)],
    )


def _switch(name: str, text: str) -> Given:
    return _one(name, type=_arguments.yes_or_no, metavar="on|off", help=text)


def _hosts(remove: bool) -> Given:
    return _one("--hosts", before=(remove,), nargs="+", metavar="NAME", help="the names")


def _asks(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-n", "--name", required=True, metavar="NAME", help="the name that is asked for")
    kinds = ("A", "AAAA", "TXT", "PTR")
    text = f"{', '.join(kinds)} (A)"
    add("-t", "--type", type=str.upper, choices=kinds, default="A", metavar="TYPE", help=text)
    add("-c", "--class", dest="dns_class", default="IN", metavar="CLASS", help="IN, CH and others (IN)")


def _asks_locally(parser: argparse.ArgumentParser) -> None:
    _asks(parser)
    parser.add_argument("-6", "--ipv6", action="store_true", help="ask by IPv6")


def _query(options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    more = {"ipv6": options.ipv6} if hasattr(options, "ipv6") else {}
    return [[{"name": options.name, "dns_type": options.type, "dns_class": options.dns_class, **more}]]


def _generator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--gen", required=True, metavar="NAME", help="the generator")


def _rate(parser: argparse.ArgumentParser) -> None:
    _generator(parser)
    parser.add_argument("-r", "--rate", type=float, required=True, metavar="PPS", help="packets a second")


def _enable(verb: str, what: str, enable: bool) -> list[Asks]:
    return [
        Asks(
            f"ipfix_{verb}",
            f"let all generators of a client {what}",
            CLIENT,
            Given(values=lambda options: [enable]),
            "ipfix.enable_ipfix",
        ),
        Asks(
            f"ipfix_{verb}_gen",
            f"let a generator {what}",
            CLIENT,
            Given(_generator, lambda options: [options.gen, enable]),
            "ipfix.enable_generator",
            example="-g gen1",
        ),
    ]


def _names_of(found: Any) -> str:
    return lines(found["hosts"] if isinstance(found, dict) else found)


def _named(infos: dict[str, Any]) -> str:
    return records([{"name": name, **info} for name, info in infos.items()])


_ASKS = (
    Asks("arp_get_cfg", "show whether ARP answers", NAMESPACES, show=records),
    Asks(
        "arp_set_cfg",
        "let ARP answer, or be silent",
        NAMESPACES,
        _switch("--enable", "whether it answers"),
        example="--enable on",
    ),
    Asks(
        "arp_cmd_query",
        "let a client ask for its gateway, or announce itself",
        CLIENT,
        _switch("--garp", "whether it announces itself, instead of asking"),
        example="--garp on",
    ),
    Asks("arp_show_cache", "show the neighbors that ARP knows", NAMESPACES, show=records),
    Asks("ipv6_show_cache", "show the neighbors that IPv6 knows", NAMESPACES, show=records),
    Asks("dns_query", "ask for a name", CLIENT, Given(_asks, _query), example="-n a.example"),
    Asks("dns_show_domains", "show what a name server knows", CLIENT, method="dns.get_domains", show=lines),
    Asks(
        "dns_show_domain_entries",
        "show what a name server answers for a domain",
        CLIENT,
        _one("-d", "--domain", metavar="NAME", help="the domain"),
        "dns.get_domain_entries",
        records,
        example="-d a.example",
    ),
    Asks("dns_show_cache", "show what a resolver knows", CLIENT, method="dns.get_cache", show=records),
    Asks("dns_flush_cache", "let a resolver forget", CLIENT),
    Asks(
        "mdns_query",
        "ask for a name of the local network",
        CLIENT,
        Given(_asks_locally, _query),
        example="-n desk1",
    ),
    Asks(
        "mdns_add_hosts",
        "give a client names",
        CLIENT,
        _hosts(remove=False),
        "mdns.add_remove_hosts",
        example="--hosts desk1 desk2",
    ),
    Asks(
        "mdns_remove_hosts",
        "take names of a client",
        CLIENT,
        _hosts(remove=True),
        "mdns.add_remove_hosts",
        example="--hosts desk1",
    ),
    Asks(
        "mdns_show_hosts",
        "show the names of a client",
        CLIENT,
        method="mdns.get_client_hosts",
        show=_names_of,
    ),
    Asks("mdns_show_cache", "show what was heard", NAMESPACES, method="mdns.get_cache", show=records),
    Asks("mdns_flush_cache", "forget what was heard", NAMESPACES),
    Asks(
        "dot1x_show_client_info",
        "show how far a client's 802.1X is",
        CLIENT,
        method="dot1x.get_clients_info",
        show=records,
        picked=operator.itemgetter(0),
        has_notations=True,
    ),
    Asks("ipfix_get_gen_info", "show the generators of a client", CLIENT, show=_named, has_notations=True),
    Asks(
        "ipfix_get_exp_info",
        "show the exporter of a client",
        CLIENT,
        method="ipfix.get_exporter_info",
        show=records,
        has_notations=True,
    ),
    *(
        Asks(
            f"ipfix_set_{word}_rate",
            f"set how many {word} packets a generator sends a second",
            CLIENT,
            Given(_rate, rates),
            "ipfix.set_gen_rate",
            example="-g gen1 -r 5",
        )
        for word, rates in (
            ("data", lambda options: [options.gen, 0.0, options.rate]),
            ("template", lambda options: [options.gen, options.rate, 0.0]),
        )
    ),
    *_enable("enable", "send", True),
    *_enable("disable", "rest", False),
)
