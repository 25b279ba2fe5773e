"""Kinds of `emu_*` commands of the plugins of emulated clients; which there are is in `_emulation_list`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _options
from allosaur.cli._answer import Answer
from allosaur.cli.console._command import done
from allosaur.cli.console.commands._emulation import (
    CLIENT,
    PREFIX,
    EmulationCommand,
    RowCommand,
    client_of,
    in_notation,
    namespace,
    namespace_of,
    notations,
)
from allosaur.cli.emulation import _ping, _views
from allosaur.emulation import _text

if TYPE_CHECKING:
    from allosaur import EMUClient


@dataclass(frozen=True)
class Given:
    """Options of a command, and what a method is asked with for them, beside the key."""

    add: Callable[[argparse.ArgumentParser], object] = lambda parser: None
    values: Callable[[argparse.Namespace], Sequence[Any]] = lambda options: ()


@dataclass
class Asks(RowCommand):
    """A command that asks a method of a plugin about each namespace that is meant, or about a client."""

    given: Given = Given()
    method: str = ""
    """Of which plugin, and which: `arp.get_cfg`, unless the command has its name."""
    show: Callable[[Any], str] | None = None
    """What makes text of what it returns; without it the command only does something."""
    picked: Callable[[Any], Any] = lambda found: found
    """What of it is shown."""
    has_notations: bool = False

    def __post_init__(self) -> None:
        self.method = self.method or self.name.replace("_", ".", 1)
        super().__post_init__()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        self.given.add(parser)
        if self.has_notations:
            notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        plugin, _, method = self.method.partition(".")
        ask = getattr(client.registered_plugs[plugin], method)
        keys = self.whom.keys(client, options)
        found = {key: self.picked(ask(key, *self.given.values(options))) for key in keys}
        of_client = self.whom is CLIENT
        if self.show is None:
            fields = {} if of_client else {"namespaces": [str(key) for key in found]}
            return done(f"{self.summary[0].upper()}{self.summary[1:]}", **fields)
        texts = [
            f"{key}\n\n{self.show(one)}" if len(found) > 1 else self.show(one) for key, one in found.items()
        ]
        text = "\n\n".join(texts) or "There are no namespaces"
        if not of_client:
            return Answer(text, {"namespaces": {str(key): one for key, one in found.items()}})
        (one,) = found.values()
        data = one if isinstance(one, dict) else {"found": one}
        return in_notation(options, text, data) if self.has_notations else Answer(text, data)


@dataclass
class ClientPing(RowCommand):
    """`emu_icmp_ping` and `emu_ipv6_ping`."""

    is_ipv6: bool

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--amount", type=_options.whole_number, default=_ping.AMOUNT, metavar="N", help="how often (5)")
        add("--pace", type=float, default=_ping.PACE, metavar="PPS", help="how many a second (1)")
        add("--dst", type=_options.address, metavar="IP", help="whom (the gateway)")
        if self.is_ipv6:
            add("--src", type=_options.address, metavar="IP", help="from which address of the client")
        add("--size", type=_options.whole_number, default=_ping.SIZE, metavar="BYTES", help="of payload (16)")

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        settings = {
            "amount": options.amount,
            "pace": options.pace,
            "dst": options.dst,
            "timeout": _ping.TIMEOUT_S,
            "payload_size": options.size,
        }
        settings |= {"src": options.src} if self.is_ipv6 else {}
        stats = _ping.ping(client, client_of(options), settings, self.is_ipv6)
        said = _views.ping(options.dst or "the gateway", stats)
        table = _format.table(["Name", "Value"], [[name, str(value)] for name, value in stats.items()])
        return Answer(f"{table}\n\n{said.text}", said.fields)


class Dot1xAll(EmulationCommand):
    """`emu_dot1x_show_all`."""

    name = f"{PREFIX}dot1x_show_all"
    summary = "show how far the 802.1X clients of a namespace are"
    example = f"{PREFIX}dot1x_show_all -p 0 --max-clients 20"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser)
        text = "so many clients at a time (15)"
        parser.add_argument("--max-clients", type=_options.whole_number, default=15, metavar="N", help=text)
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
        return _text.address(value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
