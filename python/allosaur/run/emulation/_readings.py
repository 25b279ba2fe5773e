"""What a server knows of its emulated clients: which are ready, and what their plugins count."""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli.emulation import _counters
from allosaur.run.emulation._counts import Clients, Counter

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey, EMUNamespaceKey

_UNSET = (None, "", "0.0.0.0", "::", "00:00:00:00:00:00")
_PAGE = 255
_LOGGED_IN = "EAP_DONE_OK"


def missing(info: Mapping[str, Any]) -> str:
    """Return what a client waits for, as far as its addresses tell; empty when it is ready.

    A client of which nothing is asked is ready at once.
    """
    plugins = _plugins(info)
    leases = {"dhcp": ("ipv4", "an IPv4 lease (DHCP)"), "dhcpv6": ("dhcp_ipv6", "an IPv6 lease (DHCPv6)")}
    for plugin, (field, what) in leases.items():
        if plugin in plugins and info.get(field) in _UNSET:
            return what
    for gateway, forced, found, what in (
        ("ipv4_dg", "ipv4_force_dg", "dgw", "its gateway (ARP)"),
        ("dg_ipv6", "ipv6_force_dg", "ipv6_dgw", "its IPv6 gateway (neighbor discovery)"),
    ):
        asks = info.get(gateway) not in _UNSET and not info.get(forced)
        if asks and not (info.get(found) or {}).get("resolve"):
            return what
    return ""


def clients(client: EMUClient, keys: Sequence[EMUNamespaceKey], asked: int) -> Clients:
    """Read how many clients are there, and how many of them are ready."""
    there = sum(one["active_clients"] for one in client.get_info_ns(list(keys))) if keys else 0
    pages = (page for key in keys for page in client.yield_clients(key, _PAGE))
    waiting = Sums(what for page in pages for what in _waits(client, page))
    return Clients(asked, there, max(there - waiting.total(), 0), dict(waiting), len(keys))


def _waits(client: EMUClient, page: list[EMUClientKey]) -> Iterator[str]:
    """Return what clients wait for that are not ready: to be let in, to be connected, then addresses."""
    infos = list(zip(page, client.get_info_clients(page), strict=True))
    logging_in = [key for key, info in infos if "dot1x" in _plugins(info)]
    logins = zip(logging_in, client.dot1x.get_clients_info(logging_in), strict=True)
    outside = {key for key, login in logins if login["state"] != _LOGGED_IN}
    for key, info in infos:
        if key in outside:
            yield "a login (802.1X)"
        elif "ppp" in _plugins(info) and not client.ppp.get_session(key):
            yield "a session (PPPoE)"
        elif what := missing(info):
            yield what


def _plugins(info: Mapping[str, Any]) -> list[str]:
    return str(info.get("plug_names") or "").split(", ")


def counters(client: EMUClient, keys: Sequence[EMUNamespaceKey], zero: bool = False) -> list[Counter]:
    """Read the counters of all plugins; those of namespaces and of their clients are added up."""
    found: dict[tuple[str, str], Counter] = {}
    for key in keys:
        for plugin in _plugins(client.get_info_ns(key)[0]):
            if plugin not in client.registered_plugs:
                continue
            for one in _rows(_counters.of_namespace(client, plugin, key, zero)):
                name = str(one["name"])
                before = found.get((plugin, name))
                found[plugin, name] = Counter(
                    plugin,
                    name,
                    int(one["value"]) + (before.value if before else 0),
                    str(one["unit"]),
                    str(one["help"]).strip(),
                    one["info"] == "ERROR",
                )
    return list(found.values())


def _rows(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    for rows in tables.values():
        yield from rows
