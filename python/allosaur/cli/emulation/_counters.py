"""Counters of emulated clients: of the server, of namespaces, of a client, or the sums of all clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _parser
from allosaur.cli._errors import bad_input
from allosaur.cli.emulation._views import Tables

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUClientKey, EMUNamespaceKey

CORE, RESOURCES = "core", "resources"
"""What may be asked for beside plugins: the server as a whole, and what it uses of the machine."""


def names(client: EMUClient) -> list[str]:
    """Return what counters may be asked for."""
    counting = (
        name for name, one in client.registered_plugs.items() if one.ns_data_cnt or one.client_data_cnt
    )
    return [CORE, RESOURCES, *counting]


def completions(**asked: object) -> list[str]:
    """Return what a shell may complete."""
    from allosaur import EMUClient

    return names(EMUClient())


def check(client: EMUClient, name: str) -> None:
    """Refuse a name that counts nothing. Raises :class:`CommandError`."""
    if name not in names(client):
        hint = _parser.nearest(name, names(client)) or f"; there are {', '.join(names(client))}"
        raise bad_input(f"{name}: no such counters{hint}")


def of_server(client: EMUClient, name: str, zero: bool) -> Tables:
    """Return the counters of the server as a whole."""
    counters = client.general_data_c if name == CORE else client.resource_monitor_c
    return counters.get_counters(zero=zero)


def of_client(client: EMUClient, name: str, key: EMUClientKey, zero: bool) -> Tables:
    """Return the counters of one client. Raises :class:`CommandError` for a plugin without such."""
    counters = client.registered_plugs[name].client_data_cnt
    if counters is None:
        raise bad_input(f"{name}: counts by namespace: leave --mac out")
    counters.set_add_data(c_key=key)
    return counters.get_counters(zero=zero)


def of_namespace(client: EMUClient, name: str, key: EMUNamespaceKey, zero: bool) -> Tables:
    """Return the counters of a namespace, and the sums of those of its clients. Empty without the plugin."""
    plugin = client.registered_plugs[name]
    if name not in client.get_info_ns(key)[0]["plug_names"].split(", "):
        return {}
    found: dict[str, Any] = {}
    if plugin.ns_data_cnt is not None:
        plugin.ns_data_cnt.set_add_data(ns_key=key)
        found |= plugin.ns_data_cnt.get_counters(zero=zero)
    if plugin.client_data_cnt is not None:
        sums = plugin.client_data_cnt.get_sums(client.get_all_clients_for_ns(key), zero)
        found |= {f"{table} of clients": counters for table, counters in sums.items()}
    return found


def clear(client: EMUClient, name: str, keys: Sequence[EMUNamespaceKey], one: EMUClientKey | None) -> None:
    """Let counters begin at zero."""
    if name in (CORE, RESOURCES):
        (client.general_data_c if name == CORE else client.resource_monitor_c).clear_counters()
        return
    plugin = client.registered_plugs[name]
    if plugin.ns_data_cnt is not None and one is None:
        for key in keys:
            plugin.ns_data_cnt.set_add_data(ns_key=key)
            plugin.ns_data_cnt.clear_counters()
    if plugin.client_data_cnt is not None:
        clients: Iterable[EMUClientKey] = (
            [one]
            if one is not None
            else (each for key in keys for each in client.get_all_clients_for_ns(key))
        )
        for each in clients:
            plugin.client_data_cnt.set_add_data(c_key=each)
            plugin.client_data_cnt.clear_counters()
