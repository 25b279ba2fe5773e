"""`emu_*`: TRex's commands of the plugins of emulated clients."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _options
from allosaur.cli._answer import Answer
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import done
from allosaur.cli.console.commands._emulation import (
    PREFIX,
    EmulationCommand,
    ShowCounters,
    client_mac,
    client_of,
    in_notation,
    namespace,
    namespace_of,
    namespaces_of,
    notations,
)
from allosaur.cli.emulation import _ping, _views

if TYPE_CHECKING:
    from allosaur import EMUClient

_MAC = "00:00:00:70:00:01"
Ask = Callable[["EMUClient", Any, argparse.Namespace], Any]
"""What asks the client for a namespace or a client, by its key and the options."""


class NamespaceCounters(ShowCounters):
    """`emu_..._show_counters` of a plugin that counts by namespace."""

    def __init__(self, name: str, plugin: str, all_ns: bool = True) -> None:
        super().__init__(name, f"{plugin}, of a namespace", "-p 0")
        self._plugin, self._all_ns = plugin, all_ns

    def add_where(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True, all_ns=self._all_ns)

    def counters(self, client: EMUClient, options: argparse.Namespace) -> list[tuple[str, Any]]:
        keys = namespaces_of(client, options) if self._all_ns else [namespace_of(options)]
        found = []
        for key in keys:
            # One object for all: each is asked before the next.
            counters = client.registered_plugs[self._plugin].ns_data_cnt
            found.append((str(key) if len(keys) > 1 else "", _Of(counters, ns_key=key)))
        return found


class ClientCounters(ShowCounters):
    """`emu_..._show_counters` of a plugin that counts by client."""

    def __init__(self, name: str, plugin: str) -> None:
        super().__init__(name, f"{plugin}, of a client", f"-p 0 --mac {_MAC}")
        self._plugin = plugin

    def add_where(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True)
        client_mac(parser)
        for name in ("-4", "--dg", "-6"):
            parser.add_argument(name, dest="ignored", metavar="IP", help="nothing: --mac says which client")

    def counters(self, client: EMUClient, options: argparse.Namespace) -> list[tuple[str, Any]]:
        counters = client.registered_plugs[self._plugin].client_data_cnt
        return [("", _Of(counters, c_key=client_of(options)))]


class _Of:
    """Counters of one namespace or client, set when they are asked for."""

    def __init__(self, counters: Any, **whose: Any) -> None:
        self._counters, self._whose = counters, whose

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self._counters.set_add_data(**self._whose)
        asked: Callable[..., Any] = getattr(self._counters, name)
        return asked


class OfNamespace(EmulationCommand):
    """A command about a namespace, or all: what is asked is a function of the client and a key."""

    def __init__(
        self,
        name: str,
        summary: str,
        ask: Ask,
        example: str = "-p 0",
        arguments: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
        show: Callable[[Any], str] | None = None,
    ) -> None:
        self.name = f"{PREFIX}{name}"  # type: ignore[misc] # one class, many commands
        self.summary = summary  # type: ignore[misc]
        self.example = f"{self.name} {example}"  # type: ignore[misc]
        self._ask, self._arguments, self._show = ask, arguments, show

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True, all_ns=True)
        self._arguments(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        keys = namespaces_of(client, options)
        found = {str(key): self._ask(client, key, options) for key in keys}
        if self._show is None:
            return done(f"{self.summary[0].upper()}{self.summary[1:]}", namespaces=list(found))
        several = len(keys) > 1
        texts = [
            f"{name}\n\n{self._show(one)}" if several else self._show(one) for name, one in found.items()
        ]
        return Answer("\n\n".join(texts) or "There are no namespaces", {"namespaces": found})


class OfClient(EmulationCommand):
    """A command about one client: what is asked is a function of the client and its key."""

    def __init__(
        self,
        name: str,
        summary: str,
        ask: Ask,
        example: str = "",
        arguments: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
        show: Callable[[Any], str] | None = None,
        has_notations: bool = False,
    ) -> None:
        self.name = f"{PREFIX}{name}"  # type: ignore[misc] # one class, many commands
        self.summary = summary  # type: ignore[misc]
        self.example = f"{self.name} -p 0 --mac {_MAC} {example}".strip()  # type: ignore[misc]
        self._ask, self._arguments, self._show = ask, arguments, show
        self._has_notations = has_notations

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True)
        client_mac(parser)
        self._arguments(parser)
        if self._has_notations:
            notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        found = self._ask(client, client_of(options), options)
        if self._show is None:
            return done(f"{self.summary[0].upper()}{self.summary[1:]}")
        data = found if isinstance(found, dict) else {"found": found}
        if self._has_notations:
            return in_notation(options, self._show(found), data)
        return Answer(self._show(found), data)


class ClientPing(EmulationCommand):
    """`emu_icmp_ping` and `emu_ipv6_ping`."""

    def __init__(self, plugin: str, is_ipv6: bool) -> None:
        self.name = f"{PREFIX}{plugin}_ping"  # type: ignore[misc] # one class, two commands
        self.summary = f"let a client ping by IPv{6 if is_ipv6 else 4}"  # type: ignore[misc]
        address = "2001:db8::1" if is_ipv6 else "16.0.0.1"
        self.example = f"{self.name} -p 0 --mac {_MAC} --dst {address} --amount 2"  # type: ignore[misc]
        self._is_ipv6 = is_ipv6

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True)
        client_mac(parser)
        add = parser.add_argument
        add("--amount", type=_arguments.above_zero, default=_ping.AMOUNT, metavar="N", help="how often (5)")
        add("--pace", type=float, default=_ping.PACE, metavar="PPS", help="how many a second (1)")
        add("--dst", type=_options.address, metavar="IP", help="whom (the gateway)")
        if self._is_ipv6:
            add("--src", type=_options.address, metavar="IP", help="from which address of the client")
        add("--size", type=_arguments.above_zero, default=_ping.SIZE, metavar="BYTES", help="of payload (16)")

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        settings = {
            "amount": options.amount,
            "pace": options.pace,
            "dst": options.dst,
            "timeout": _ping.TIMEOUT_S,
            "payload_size": options.size,
        }
        settings |= {"src": options.src} if self._is_ipv6 else {}
        stats = _ping.ping(client, client_of(options), settings, self._is_ipv6)
        said = _views.ping(options.dst or "the gateway", stats)
        table = _format.table(["Name", "Value"], [[name, str(value)] for name, value in stats.items()])
        return Answer(f"{table}\n\n{said.text}", said.fields)


class Dot1xAll(EmulationCommand):
    """`emu_dot1x_show_all`."""

    name = f"{PREFIX}dot1x_show_all"
    summary = "show how far the 802.1X clients of a namespace are"
    example = f"{PREFIX}dot1x_show_all -p 0 --max-clients 20"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser, required=True)
        text = "so many clients at a time (15)"
        parser.add_argument("--max-clients", type=_arguments.above_zero, default=15, metavar="N", help=text)
        notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        found = []
        for keys in client.yield_clients(namespace_of(options), min(options.max_clients, 255)):
            infos = client.dot1x.get_clients_info(keys)
            found += [{"mac": key.mac.S(), **info} for key, info in zip(keys, infos, strict=True)]
        return in_notation(options, records(found), {"clients": found})


def records(found: Any) -> str:
    """Return dictionaries with the same keys as a table."""
    listed = found if isinstance(found, list) else [found] if found else []
    if not listed:
        return "There is nothing"
    columns = list(dict.fromkeys(name for one in listed for name in one))
    rows = [[_shown(one.get(name)) for name in columns] for one in listed]
    return _format.table(columns, rows, texts=columns)


def lines(found: Any) -> str:
    """Return texts, one a line; the client gives a text that is alone as it is."""
    return "\n".join([found] if isinstance(found, str) else map(str, found)) or "There is nothing"


def _shown(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        from allosaur import Ipv4, Ipv6, Mac

        kind = {4: Ipv4, 6: Mac, 16: Ipv6}.get(len(value))
        return kind(value).S() if kind is not None else str(value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
