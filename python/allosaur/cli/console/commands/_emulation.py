"""`emu_*`: TRex's commands of emulated clients, those of the server as a whole.

They need a console that was started with `--emu`. Plugins have theirs in the modules beside this one.
"""

from __future__ import annotations

import argparse
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _options, _shipped
from allosaur.cli._answer import Answer
from allosaur.cli._errors import bad_input
from allosaur.cli.console import _arguments
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session
from allosaur.emulation import _print

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey, EMUNamespaceKey

PREFIX = "emu_"
_MAX_CLIENTS, _MAX_NAMESPACES = 15, 1
_POSTFIXES = {"WARNING": "+", "ERROR": "*"}
"""What follows the name of a counter of this kind."""
_MAC = "00:00:00:70:00:01"
_RECORDS = ("Name", "Value", "Unit", "Type", "Help")


class EmulationCommand(ConsoleCommand):
    """A command about emulated clients: they have a server, or a port, of their own."""

    group = "Emulated clients"
    needs_server = False

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        return self.emulated(session.emulation, options)

    @abstractmethod
    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        """Do it; return what to print. Raises :class:`CommandError` or `STLError`."""


@dataclass(frozen=True)
class Whom:
    """Whom commands are about: how examples name it, and the keys that options mean."""

    noun: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], object]
    keys: Callable[[EMUClient, argparse.Namespace], list[Any]]
    key_name: str = ""
    """What counters take such a key by."""


@dataclass
class RowCommand(EmulationCommand):
    """A command that is a row of a table: its name without the prefix, and an example of its own options."""

    name: str
    summary: str
    whom: Whom
    example: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        self.name = f"{PREFIX}{self.name}"
        self.example = " ".join(filter(None, (self.name, self.whom.example, self.example)))

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.whom.add_arguments(parser)


class LoadProfile(EmulationCommand):
    """`emu_load_profile`."""

    name = f"{PREFIX}load_profile"
    summary = "emulate what a profile says, and nothing else"
    example = f"{PREFIX}load_profile -f arp_hosts -t --clients 10"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _arguments.file(parser, "a profile: a .py file, or a name of `allosaur profiles`")
        max_rate(parser, "add")
        parser.add_argument("-d", "--dry-run", dest="dry", action="store_true", help="show it as JSON only")
        _arguments.tunables(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        from allosaur import EMUProfile
        from allosaur.cli.emulation import _profile

        path = Path(_shipped.located(options.file))
        _shipped.check(path)
        words = _arguments.old_tunables(options.tunables)
        if _arguments.asks_help(options):
            client.load_profile(path, tunables=words)
            return Answer("")
        profile = EMUProfile.load(path, words)
        if options.dry:
            return Answer(json.dumps(profile.to_json(), indent=4), profile.to_json())
        client.load_profile(profile, options.max_rate)
        said = _profile.said(profile)
        return done(f"Loading {options.file}: {said.text.rstrip('.').lower()}", **said.fields)


class RemoveProfile(EmulationCommand):
    """`emu_remove_profile`."""

    name = f"{PREFIX}remove_profile"
    summary = "remove all emulated clients and namespaces"
    example = f"{PREFIX}remove_profile"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        max_rate(parser, "remove")

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        client.remove_profile(options.max_rate)
        return done("Removing all emulated clients")


class Shutdown(EmulationCommand):
    """`emu_shutdown`."""

    name = f"{PREFIX}shutdown"
    summary = "end the emulated clients' server"
    example = f"{PREFIX}shutdown -t 10"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-t", "--time", type=int, default=0, metavar="S", help="in so many seconds (0)")

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        client.shutdown(options.time)
        return done(f"Shutting emulated clients down in {options.time} s")


class ShowAll(EmulationCommand):
    """`emu_show_all`."""

    name = f"{PREFIX}show_all"
    summary = "show all namespaces and their clients"
    example = f"{PREFIX}show_all --max-clients 5"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        for name, default, what in (
            ("clients", _MAX_CLIENTS, "clients"),
            ("ns", _MAX_NAMESPACES, "namespaces"),
        ):
            text = f"so many {what} in a table ({default})"
            add(f"--max-{name}", type=_options.whole_number, default=default, metavar="N", help=text)
        client_columns(parser)
        notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        data, texts = [], []
        for keys in client.yield_ns(min(options.max_ns, _PAGE_MAX)):
            for key, info in zip(keys, client.get_info_ns(keys), strict=True):
                texts.append(_print.namespace(info))
                clients: list[dict[str, Any]] = []
                for page in client.yield_clients(key, min(options.max_clients, _PAGE_MAX)):
                    infos = client.get_info_clients(page)
                    texts.append(_clients(infos, options))
                    clients += infos
                data.append({**key.conv_to_dict(), "clients": clients})
        return in_notation(options, "\n\n".join(texts) or "There are no namespaces", {"namespaces": data})


_PAGE_MAX = 255


class ShowNamespace(EmulationCommand):
    """`emu_show_ns_info`."""

    name = f"{PREFIX}show_ns_info"
    summary = "show a namespace"
    example = f"{PREFIX}show_ns_info -p 0 --vlan 5"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        namespace(parser)
        notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        info = client.get_info_ns(namespace_of(options))[0]
        return in_notation(options, _print.namespace(info), info)


class ShowClient(EmulationCommand):
    """`emu_show_client_info`."""

    name = f"{PREFIX}show_client_info"
    summary = "show a client"
    example = f"{PREFIX}show_client_info -p 0 --mac 00:00:00:70:00:01 --4-dg"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        one_client(parser)
        client_columns(parser)
        notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        info = client.get_info_clients(client_of(options))[0]
        return in_notation(options, _clients([info], options), info)


@dataclass
class ShowCounters(RowCommand):
    """A command that shows counters: of the server, of namespaces or of a client."""

    counted: Callable[[EMUClient], Any]
    """What of a client reads them. It is one object for all keys: each is asked before the next."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        counter_options(parser)
        super().add_arguments(parser)
        notations(parser)

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        texts, data = [], {}
        counters, keys = self.counted(client), self.whom.keys(client, options)
        for key in keys:
            if self.whom.key_name:
                counters.set_add_data(**{self.whom.key_name: key})
            where = str(key) if len(keys) > 1 else ""
            if options.clear:
                counters.clear_counters()
                continue
            if options.headers:
                data[where or "tables"] = counters.table_names()
                texts.append(_format.table([where or "Tables"], [[one] for one in counters.table_names()]))
                continue
            found = counters.get_counters(_pattern(options.tables), options.types or None, options.zero)
            data[where or "counters"] = {
                name: {one["name"]: one["value"] for one in table} for name, table in found.items()
            }
            texts.append(_tables(where, found, options.verbose))
        if options.clear:
            return done("Clearing counters")
        return in_notation(
            options, "\n\n".join(text for text in texts if text) or "Nothing was counted", data
        )


class ResourceReset(EmulationCommand):
    """`emu_resource_monitor_reset`."""

    name = f"{PREFIX}resource_monitor_reset"
    summary = "measure the use of CPU and memory anew"
    example = f"{PREFIX}resource_monitor_reset"

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        client.resource_monitor_reset()
        return done("Resetting the resource monitor")


class ShowMbuf(EmulationCommand):
    """`emu_show_mbuf`."""

    name = f"{PREFIX}show_mbuf"
    summary = "show the packet memory of the server, which only TRex's has"
    example = f"{PREFIX}show_mbuf"

    def emulated(self, client: EMUClient, options: argparse.Namespace) -> Answer:
        found = client.general_data_c.get_counters(table_regex="mbuf")
        names = list(dict.fromkeys(one["name"] for table in found.values() for one in table))
        data = {pool: {one["name"]: one["value"] for one in table} for pool, table in found.items()}
        rows = [[pool, *(str(values.get(name, 0)) for name in names)] for pool, values in data.items()]
        text = (
            _format.table(["Mbuf Util", *names], rows) if rows else "The server has no pools of packet memory"
        )
        return Answer(text, {"mbuf": data})


def max_rate(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add `-m`."""
    parser.add_argument(
        *("-m", "--max-rate"),
        type=_options.whole_number,
        metavar="RATE",
        help=f"{verb} so many clients a second at most",
    )


def namespaces(parser: argparse.ArgumentParser) -> None:
    """Add what names a namespace, or all."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-p", "--port", type=int, metavar="PORT", help="its port")
    group.add_argument("--all-ns", action="store_true", help="all namespaces")
    _tags(parser)


def namespace(parser: argparse.ArgumentParser) -> None:
    """Add what names a namespace."""
    parser.add_argument("-p", "--port", type=int, required=True, metavar="PORT", help="its port")
    _tags(parser)


def one_client(parser: argparse.ArgumentParser) -> None:
    """Add what names a client."""
    namespace(parser)
    text = "the client's MAC address"
    parser.add_argument("--mac", type=_options.mac, required=True, metavar="MAC", help=text)


def _tags(parser: argparse.ArgumentParser) -> None:
    _arguments.vlan(parser)
    text = "types of the tags (0x8100)"
    parser.add_argument("--tpid", nargs="*", type=_arguments.any_number, metavar="TPID", help=text)


def client_columns(parser: argparse.ArgumentParser) -> None:
    """Add what else is shown of clients."""
    for name, dest, text in (
        ("--6", "ipv6", "IPv6 addresses, too"),
        ("--6-router", "ipv6_router", "routers of IPv6, too"),
        ("--4-dg", "ipv4_dg", "IPv4 gateways, too"),
        ("--6-dg", "ipv6_dg", "IPv6 gateways, too"),
    ):
        parser.add_argument(name, dest=dest, action="store_true", help=text)


def notations(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--yaml`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="as JSON")
    group.add_argument("--yaml", action="store_true", help="as YAML")


def counter_options(parser: argparse.ArgumentParser) -> None:
    """Add which counters are shown, and how."""
    add = parser.add_argument
    add("-v", "--verbose", action="store_true", help="say what each counts, too")
    add("--tables", metavar="TABLES", help="only tables in whose names this regular expression is found")
    add("--headers", action="store_true", help="only the names of the tables")
    add("--clear", action="store_true", help="let them begin at zero")
    kinds = ("INFO", "WARNING", "ERROR")
    add("--types", nargs="*", type=str.upper, choices=kinds, metavar="TYPE", help=f"only {', '.join(kinds)}")
    add("--zero", action="store_true", help="those that are zero, too")


def namespace_of(options: argparse.Namespace) -> EMUNamespaceKey:
    """Return the namespace that the options name. Raises `STLError` for wrong tags."""
    from allosaur import EMUNamespaceKey

    return EMUNamespaceKey(options.port, options.vlan or None, options.tpid or None)


def namespaces_of(client: EMUClient, options: argparse.Namespace) -> list[EMUNamespaceKey]:
    """Return the namespace that the options name, or all with `--all-ns`."""
    return client.get_all_ns() if options.all_ns else [namespace_of(options)]


def client_of(options: argparse.Namespace) -> EMUClientKey:
    """Return the client that the options name."""
    from allosaur import EMUClientKey

    return EMUClientKey(namespace_of(options), options.mac)


def in_notation(options: argparse.Namespace, text: str, data: dict[str, Any]) -> Answer:
    """Return an answer in the notation that the options ask for."""
    if options.json or options.yaml:
        return Answer(_print.dumped(data, options.json), data)
    return Answer(text, data)


def _pattern(text: str | None) -> str | None:
    try:
        re.compile(text or "")
    except re.error as error:
        raise bad_input(f"--tables {text}: is no regular expression ({error})") from None
    return text


def _clients(infos: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    return _print.clients(infos, options.ipv6, options.ipv4_dg, options.ipv6_dg, options.ipv6_router)


def _tables(where: str, found: dict[str, Any], verbose: bool) -> str:
    texts = [where] if where and found else []
    for name, table in found.items():
        rows = []
        for one in table:
            shown = one["name"] + _POSTFIXES.get(one["info"], "")
            rows.append([shown, str(one["value"]), one["unit"], one["info"], one["help"]])
        columns = len(_RECORDS) if verbose else 2
        text = _format.table(_RECORDS[:columns], [row[:columns] for row in rows], texts=_RECORDS[2:])
        texts.append(f"{name} counters\n\n{text}")
    return "\n\n".join(texts)


SERVER = Whom("the server", "", lambda parser: None, lambda client, options: [None])
NAMESPACES = Whom("a namespace", "-p 0", namespaces, namespaces_of, "ns_key")
NAMESPACE = Whom("a namespace", "-p 0", namespace, lambda client, options: [namespace_of(options)], "ns_key")
CLIENT = Whom(
    "a client", f"-p 0 --mac {_MAC}", one_client, lambda client, options: [client_of(options)], "c_key"
)
COMMANDS: tuple[EmulationCommand, ...] = (
    LoadProfile(),
    RemoveProfile(),
    ShowAll(),
    ShowNamespace(),
    ShowClient(),
    ShowCounters(
        "show_counters",
        "show the counters of the server",
        SERVER,
        lambda client: client.general_data_c,
        example="--zero --tables parser",
    ),
    ShowCounters(
        "resource_monitor_show",
        "show the counters of CPU and memory",
        SERVER,
        lambda client: client.resource_monitor_c,
        example="--zero",
    ),
    ResourceReset(),
    ShowMbuf(),
    Shutdown(),
)
