"""All `emu_*` commands: those of the server, and those of each plugin in the order of their names."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from allosaur.cli.console import _arguments
from allosaur.cli.console.commands import _emulation, _emulation_ipfix
from allosaur.cli.console.commands._emulation import EmulationCommand
from allosaur.cli.console.commands._emulation_plugins import (
    Ask,
    ClientCounters,
    ClientPing,
    Dot1xAll,
    NamespaceCounters,
    OfClient,
    OfNamespace,
    lines,
    records,
)
from allosaur.cli.emulation import _access

_CLIENT_COUNTERS = (
    "appsim",
    "cdp",
    "dhcp",
    "dhcpsrv",
    "dhcpv6",
    "dot1x",
    "lldp",
    "tdl",
    "transport",
    "ipfix",
)
_BOTH_COUNTERS = ("dns", "mdns")


def all_commands() -> dict[str, EmulationCommand]:
    """Return the commands by name."""
    plugins = [*_counters(), *_arp(), *_names(), *_dot1x(), *_pings(), *_neighbors()]
    plugins += [*_groups("igmp", 4), *_groups("ipv6", 6), *_ipfix()]
    plugins += [_emulation_ipfix.IpfixPush(), _emulation_ipfix.IpfixLoadConfig()]
    found = [*_emulation.COMMANDS, *sorted(plugins, key=lambda one: one.name)]
    return {one.name: one for one in found}


def _counters() -> list[EmulationCommand]:
    found: list[EmulationCommand] = [
        NamespaceCounters("arp_show_counters", "arp"),
        NamespaceCounters("icmp_show_counters", "icmp", all_ns=False),
        NamespaceCounters("igmp_show_counters", "igmp"),
        NamespaceCounters("ipv6_show_counters", "ipv6"),
        NamespaceCounters("ipfix_show_ns_counters", "ipfix"),
        NamespaceCounters("transe_show_counters", "transporte"),
    ]
    found += [ClientCounters(f"{name}_show_counters", name) for name in _CLIENT_COUNTERS]
    for name in _BOTH_COUNTERS:
        found += [ClientCounters(f"{name}_show_c_counters", name)]
        found += [NamespaceCounters(f"{name}_show_ns_counters", name)]
    return found


def _arp() -> list[EmulationCommand]:
    return [
        OfNamespace(
            "arp_get_cfg", "show whether ARP answers", lambda c, key, o: c.arp.get_cfg(key), show=records
        ),
        OfNamespace(
            "arp_set_cfg",
            "let ARP answer, or be silent",
            lambda c, key, options: c.arp.set_cfg(key, options.enable),
            "-p 0 --enable on",
            _switch("--enable", "whether it answers"),
        ),
        OfClient(
            "arp_cmd_query",
            "let a client ask for its gateway, or announce itself",
            lambda c, key, options: c.arp.cmd_query(key, options.garp),
            "--garp on",
            _switch("--garp", "whether it announces itself, instead of asking"),
        ),
        OfNamespace(
            "arp_show_cache",
            "show the neighbors that ARP knows",
            lambda c, key, options: c.arp.show_cache(key),
            show=records,
        ),
    ]


def _names() -> list[EmulationCommand]:
    """Those of DNS and of multicast DNS."""
    return [
        OfClient(
            "dns_query", "ask for a name", lambda c, k, o: c.dns.query(k, [_query(o)]), "-n a.example", _asks
        ),
        OfClient(
            "dns_show_domains",
            "show what a name server knows",
            lambda c, k, o: c.dns.get_domains(k),
            show=lines,
        ),
        OfClient(
            "dns_show_domain_entries",
            "show what a name server answers for a domain",
            lambda c, key, options: c.dns.get_domain_entries(key, options.domain),
            "-d a.example",
            lambda parser: parser.add_argument(
                "-d", "--domain", required=True, metavar="NAME", help="the domain"
            ),
            show=records,
        ),
        OfClient(
            "dns_show_cache", "show what a resolver knows", lambda c, k, o: c.dns.get_cache(k), show=records
        ),
        OfClient("dns_flush_cache", "let a resolver forget", lambda c, k, o: c.dns.flush_cache(k)),
        OfClient(
            "mdns_query",
            "ask for a name of the local network",
            lambda c, key, options: c.mdns.query(key, [{**_query(options), "ipv6": options.ipv6}]),
            "-n desk1",
            _asks_locally,
        ),
        OfClient(
            "mdns_add_hosts",
            "give a client names",
            lambda c, key, options: c.mdns.add_remove_hosts(key, False, options.hosts),
            "--hosts desk1 desk2",
            _hosts,
        ),
        OfClient(
            "mdns_remove_hosts",
            "take names of a client",
            lambda c, key, options: c.mdns.add_remove_hosts(key, True, options.hosts),
            "--hosts desk1",
            _hosts,
        ),
        OfClient(
            "mdns_show_hosts",
            "show the names of a client",
            lambda c, key, options: c.mdns.get_client_hosts(key),
            show=lambda found: lines(found["hosts"] if isinstance(found, dict) else found),
        ),
        OfNamespace(
            "mdns_show_cache", "show what was heard", lambda c, k, o: c.mdns.get_cache(k), show=records
        ),
        OfNamespace("mdns_flush_cache", "forget what was heard", lambda c, k, o: c.mdns.flush_cache(k)),
    ]


def _dot1x() -> list[EmulationCommand]:
    return [
        OfClient(
            "dot1x_show_client_info",
            "show how far a client's 802.1X is",
            lambda c, key, options: c.dot1x.get_clients_info(key)[0],
            show=records,
            has_notations=True,
        ),
        Dot1xAll(),
    ]


def _neighbors() -> list[EmulationCommand]:
    return [
        OfNamespace(
            "ipv6_show_cache",
            "show the neighbors that IPv6 knows",
            lambda c, key, options: c.ipv6.show_cache(key),
            show=records,
        )
    ]


def _pings() -> list[EmulationCommand]:
    return [ClientPing("icmp", is_ipv6=False), ClientPing("ipv6", is_ipv6=True)]


def _groups(plugin: str, family: int) -> list[EmulationCommand]:
    """Those of IGMP and of MLD: the same, under other names."""
    word = "mc" if family == 4 else "mld"
    return [*_group_settings(plugin, word), *_group_changes(plugin, word, family)]


def _group_settings(plugin: str, word: str) -> list[EmulationCommand]:
    def of(client: Any, method: str) -> Any:
        return getattr(client.registered_plugs[plugin], method)

    return [
        OfNamespace(
            f"{plugin}_get_cfg",
            f"show the settings of {plugin}",
            lambda c, key, options: of(c, "get_cfg")(key),
            show=records,
        ),
        OfNamespace(
            f"{plugin}_set_cfg",
            f"set the longest report of {plugin}, and who sends it",
            lambda c, key, options: of(c, "set_cfg")(key, options.mtu, options.mac),
            "-p 0 --mtu 1500 --mac 00:00:00:70:00:01",
            _speaker,
        ),
        OfNamespace(
            f"{plugin}_show_{word}",
            "show the groups of a namespace",
            lambda c, key, options: of(c, f"iter_{word}")(key),
            show=records,
        ),
        OfNamespace(
            f"{plugin}_remove_all_{word}",
            "leave all groups",
            lambda c, key, options: of(c, f"remove_all_{word}")(key),
        ),
    ]


def _group_changes(plugin: str, word: str, family: int) -> list[EmulationCommand]:
    def groups(options: argparse.Namespace) -> list[Any]:
        return _range(_address(family, True), options.group, options.group_count)

    def change(method: str) -> Ask:
        return lambda c, key, options: getattr(c.registered_plugs[plugin], method)(key, groups(options))

    def change_sources(method: str) -> Ask:
        def ask(client: Any, key: Any, options: argparse.Namespace) -> Any:
            sources = _range(_address(family, False), options.source, options.source_count)
            pairs = [(group, source) for group in groups(options) for source in sources]
            asked = getattr(client.registered_plugs[plugin], method)
            return asked(key, [group for group, _ in pairs], [source for _, source in pairs])

        return ask

    group, source = ("239.1.0.1", "16.0.0.1") if family == 4 else ("ff05::1", "2001:db8::1")
    found: list[EmulationCommand] = []
    for verb, what in (("add", "join"), ("remove", "leave")):
        found += [
            OfNamespace(
                f"{plugin}_{verb}_{word}",
                f"{what} groups, whatever their source",
                change(f"{verb}_{word}"),
                f"-p 0 --{family} {group} --{family}-count 2",
                _range_options(family, False),
            ),
            OfNamespace(
                f"{plugin}_{verb}_{word}_sg",
                f"{what} groups of some sources",
                change_sources(f"{verb}_{word}_sg"),
                f"-p 0 --{family}g {group} --{family}g-count 2 --{family}s {source}",
                _range_options(family, True),
            ),
        ]
    return found


def _ipfix() -> list[EmulationCommand]:
    found: list[EmulationCommand] = [
        OfClient(
            "ipfix_get_gen_info",
            "show the generators of a client",
            lambda c, key, options: c.ipfix.get_gen_info(key),
            show=lambda infos: records([{"name": name, **info} for name, info in infos.items()]),
            has_notations=True,
        ),
        OfClient(
            "ipfix_get_exp_info",
            "show the exporter of a client",
            lambda c, key, options: c.ipfix.get_exporter_info(key),
            show=records,
            has_notations=True,
        ),
    ]
    for word in ("data", "template"):
        what = f"set how many {word} packets a generator sends a second"
        found.append(OfClient(f"ipfix_set_{word}_rate", what, _set_rate(word), "-g gen1 -r 5", _rate))
    for verb, what in (("enable", "send"), ("disable", "rest")):
        found += [
            OfClient(f"ipfix_{verb}", f"let all generators of a client {what}", _enable(verb == "enable")),
            OfClient(
                f"ipfix_{verb}_gen",
                f"let a generator {what}",
                _enable_generator(verb == "enable"),
                "-g gen1",
                _generator,
            ),
        ]
    return found


def _set_rate(word: str) -> Ask:
    def ask(client: Any, key: Any, options: argparse.Namespace) -> Any:
        template, data = (0.0, options.rate) if word == "data" else (options.rate, 0.0)
        return client.ipfix.set_gen_rate(key, options.gen, template, data)

    return ask


def _enable(enable: bool) -> Ask:
    return lambda client, key, options: client.ipfix.enable_ipfix(key, enable)


def _enable_generator(enable: bool) -> Ask:
    return lambda client, key, options: client.ipfix.enable_generator(key, options.gen, enable)


def _address(family: int, is_group: bool) -> Callable[[str], Any]:
    """Return what makes an address of a group, or of a source."""
    from allosaur import Ipv4, Ipv6

    kind = Ipv4 if family == 4 else Ipv6
    return lambda text: kind(text, mc=is_group)


def _range(kind: Any, first: str, count: int) -> list[Any]:
    address = kind(first)
    return [address[number] for number in range(count)]


def _switch(name: str, text: str) -> Callable[[argparse.ArgumentParser], object]:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(name, type=_arguments.yes_or_no, required=True, metavar="on|off", help=text)

    return add


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


def _query(options: argparse.Namespace) -> dict[str, Any]:
    return {"name": options.name, "dns_type": options.type, "dns_class": options.dns_class}


def _hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hosts", nargs="+", required=True, metavar="NAME", help="the names")


def _speaker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mtu", type=int, required=True, metavar="BYTES", help="256 to 9000")
    text = "the client that sends the reports"
    parser.add_argument("--mac", type=_access.mac, required=True, metavar="MAC", help=text)


def _range_options(family: int, has_sources: bool) -> Callable[[argparse.ArgumentParser], object]:
    def add(parser: argparse.ArgumentParser) -> None:
        for letter, dest in (("g", "group"), ("s", "source")) if has_sources else (("", "group"),):
            name = f"--{family}{letter}"
            parser.add_argument(name, dest=dest, required=True, metavar="IP", help=f"the first {dest}")
            parser.add_argument(
                f"{name}-count",
                dest=f"{dest}_count",
                type=_arguments.above_zero,
                default=1,
                metavar="N",
                help=f"how many {dest}s (1)",
            )

    return add


def _generator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--gen", required=True, metavar="NAME", help="the generator")


def _rate(parser: argparse.ArgumentParser) -> None:
    _generator(parser)
    parser.add_argument("-r", "--rate", type=float, required=True, metavar="PPS", help="packets a second")
