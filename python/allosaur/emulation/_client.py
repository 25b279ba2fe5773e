"""The client of a server of emulated clients.

    with EMUClient(server="127.0.0.1") as client:
        client.load_profile("profiles/emulation/dhcp_clients.py", tunables=["--clients", "1000"])
        for namespace in client.get_all_ns_and_clients():
            print(namespace["vport"], len(namespace["clients"]))
        client.remove_profile()

Each protocol is an object of its own: ``client.arp``, ``client.icmp`` and so on, as `plugins` lists them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from .._console_lines import commands_of_plugins, console_line
from .._errors import STLArgumentError, STLRpcError
from .._not_here import SaysWhatIsMissing
from ..rpc._transport import Transport
from . import _bulk, _check, _loader, _print, _text
from ._counters import DataCounter
from ._not_here import EMULATION_NAMES
from ._plugin import EMUPluginBase
from ._profile import EMUClientKey, EMUClientObj, EMUNamespaceKey, EMUNamespaceObj, EMUProfile, Plugs
from ._requests import METHOD_NOT_FOUND, Requests, is_interrupted
from ._values import Mac
from .plugins import PLUGINS, Plugins

RPC_PORT = 4510
_SHUTDOWN_S_MAX = 0xFFFF_FFFF


class EMUClient(SaysWhatIsMissing, Plugins):
    """A connection to a server of emulated clients.

    Methods raise ``STLError`` with a message that says what to do; ``STLConnectionError`` when the server
    cannot be reached, ``STLRpcError`` when it refuses. They may be called from one thread at a time.
    """

    _not_here: ClassVar[Mapping[str, str]] = EMULATION_NAMES

    def __init__(
        self,
        username: str | None = None,
        server: str = "localhost",
        sync_port: int = RPC_PORT,
        verbose_level: str = "error",
        logger: logging.Logger | None = None,
        sync_timeout: float | None = None,
        transport: Transport | None = None,
        rpc_auth: Path | str | None = None,
    ) -> None:
        self.username = username
        self._requests = Requests(server, sync_port, verbose_level, logger, sync_timeout, transport, rpc_auth)
        self.general_data_c = DataCounter(self._requests, "ctx_cnt")
        self.resource_monitor_c = DataCounter(self._requests, "ctx_resource_monitor_get")
        #: The plugins by name.
        self.registered_plugs: dict[str, EMUPluginBase] = {}
        for name, plugin in PLUGINS.items():
            self.registered_plugs[name] = plugin(self._requests)
            setattr(self, name, self.registered_plugs[name])

    def __enter__(self) -> EMUClient:
        self.connect()
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()

    # The connection.

    def connect(self) -> None:
        """Connect to the server. Raises ``STLError``; the message says where it looked and what to do."""
        self._requests.open()

    def disconnect(self, release_ports: bool = True) -> None:
        """Disconnect; what is emulated goes on. Does nothing when not connected."""
        self._requests.close()

    def acquire(self, force: bool = False) -> None:
        """Do nothing: emulated clients have no owner. Existing scripts call it."""

    def release(self, force: bool = False) -> None:
        """Do nothing, as ``acquire``."""

    def _server_address(self) -> tuple[str, int, int]:
        """Where the server is: its name, and its port, which is for all."""
        return self._requests.server, self._requests.sync_port, self._requests.sync_port

    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._requests.is_open

    def get_mode(self) -> str:
        """The kind of traffic that this client is for: "emulation"."""
        return "emulation"

    def probe_server(self) -> dict[str, Any]:
        """What the server says of its version, connected or not."""
        return self._requests.probe()

    def ping_rpc_server(self) -> dict[str, Any]:
        """The server's time. Raises ``STLError`` when it does not answer."""
        answer: dict[str, Any] = self._requests.call("ping")
        return answer

    def get_server_version(self) -> dict[str, Any]:
        """What the server said of its version when we connected."""
        return dict(self._requests.version)

    def set_timeout(self, timeout_sec: float) -> None:
        """Wait so long for an answer, from the next connection on."""
        _check.kind("timeout_sec", timeout_sec, int, float)
        if timeout_sec <= 0:
            raise STLArgumentError("timeout_sec", timeout_sec, "seconds above zero")
        self._requests.timeout_s = float(timeout_sec)

    def set_verbose(self, level: str) -> None:
        """Say how much goes to the log: "none", "critical", "error", "warning", "info" or "debug"."""
        self._requests.set_level(level)

    def get_verbose(self) -> str:
        """How much goes to the log."""
        return self._requests.verbose_level

    @property
    def logger(self) -> logging.Logger:
        """Where the client writes what it does."""
        return self._requests.logger

    def shutdown(self, time: int) -> None:
        """Let the server end in ``time`` seconds, or with 0 at once; then we are disconnected."""
        _check.within("time", time, 0, _SHUTDOWN_S_MAX)
        self._requests.call("shutdown", {"time": time})
        if time == 0:
            self.disconnect()

    # Profiles.

    def load_profile(
        self,
        profile: EMUProfile | str | Path,
        max_rate: int | None = None,
        tunables: Sequence[str] | dict[str, Any] | None = None,
        dry: bool = False,
        verbose: bool = False,
    ) -> None:
        """Emulate a profile, given or in a file, and nothing else.

        ``max_rate`` is clients a second (as fast as can be), ``tunables`` words for the profile. With ``-h``
        among them it only prints those that it has; with ``dry`` it prints itself as JSON.
        """
        _check.kind("profile", profile, EMUProfile, str, Path)
        _check.rate(max_rate)
        words = _loader.words(tunables)
        if not isinstance(profile, EMUProfile):
            if set(_loader.HELP) & set(words):
                _loader.show_help(Path(profile))
                return
            self._requests.say(logging.INFO, f"reading profile {profile}")
            profile = EMUProfile.load(profile, words)
        if dry:
            _print.dump(profile.to_json(), to_json=True)
            return
        self.remove_profile(max_rate)
        self.add_profile(profile, max_rate, verbose)

    def add_profile(self, profile: EMUProfile, max_rate: int | None = None, verbose: bool = False) -> None:
        """Emulate a profile beside what is emulated already; its namespaces must be new ones."""
        _check.kind("profile", profile, EMUProfile)
        _check.rate(max_rate)
        self._requests.say(logging.INFO, "sending the profile")
        self.set_def_ns_plugs(profile.def_ns_plugs)
        self.add_ns(profile.ns_list)
        for ns in profile.ns_list:
            self.set_def_c_plugs(ns.key, ns.def_c_plugs)
            self.add_clients(ns.key, ns.clients, max_rate, verbose)

    def remove_profile(self, max_rate: int | None = None) -> None:
        """Remove all that is emulated: all clients, then all namespaces."""
        self._requests.say(logging.INFO, "removing all emulated clients")
        self.remove_all_clients_and_ns(max_rate)

    # Commands of the console.

    load_profile_line = console_line("emu_load_profile")
    remove_profile_line = console_line("emu_remove_profile")
    resource_monitor_reset_ctx_line = console_line("emu_resource_monitor_reset")
    resource_monitor_show_ctx_line = console_line("emu_resource_monitor_show")
    show_all_line = console_line("emu_show_all")
    show_client_info_line = console_line("emu_show_client_info")
    show_counters_ctx_line = console_line("emu_show_counters")
    show_mbuf_line = console_line("emu_show_mbuf")
    show_ns_info_line = console_line("emu_show_ns_info")
    shutdown_line = console_line("emu_shutdown")

    def get_plugin_methods(self) -> dict[str, Callable[[str], bool]]:
        """The console's commands of emulated clients and all plugins, as functions of their options."""
        return commands_of_plugins(self)

    # Namespaces and clients.

    def add_ns(self, ns_list: EMUNamespaceObj | list[EMUNamespaceObj]) -> None:
        """Add namespaces, without their clients. Raises ``STLRpcError`` for one that is there already."""
        namespaces = _check.several("ns_list", ns_list, EMUNamespaceObj)
        self._requests.send("ctx_add", {"tunnels": [ns.get_fields() for ns in namespaces]})

    def remove_ns(self, ns_keys: EMUNamespaceKey | list[EMUNamespaceKey]) -> None:
        """Remove namespaces, which must have no clients any more."""
        keys = _check.several("ns_keys", ns_keys, EMUNamespaceKey)
        for key in keys:
            for plugin in self.registered_plugs.values():
                plugin.tear_down_ns(key)
        self._requests.send("ctx_remove", {"tunnels": [key.conv_to_dict() for key in keys]})

    def add_clients(
        self,
        ns_key: EMUNamespaceKey,
        clients: EMUClientObj | list[EMUClientObj],
        max_rate: int | None = None,
        verbose: bool = False,
    ) -> None:
        """Add clients to a namespace, at most ``max_rate`` a second; ``verbose`` says so in the log.

        Raises ``STLRpcError`` when the server refuses one; those before it, and those of later requests that
        were already on their way, are there then.
        """
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        _check.rate(max_rate)
        added = _check.several("clients", clients, EMUClientObj)
        _check.unique("clients", [client._given["mac"] for client in added], Mac)

        def chunk(begin: int, end: int) -> bytes:
            return _bulk.members(added[begin:end])

        tunnel = ns_key.conv_to_dict(add_tunnel_key=True)
        self._requests.send_by("ctx_client_add", tunnel, len(added), chunk, max_rate)
        if verbose:
            self._requests.say(logging.INFO, f"added {len(added)} clients to {ns_key}")

    def remove_clients(self, c_keys: EMUClientKey | list[EMUClientKey], max_rate: int | None = None) -> None:
        """Remove clients of a namespace, at most ``max_rate`` a second."""
        _check.rate(max_rate)
        keys = _check.several("c_keys", c_keys, EMUClientKey)
        if keys:
            self._requests.to_clients("ctx_client_remove", keys, max_rate)

    def remove_all_clients_and_ns(self, max_rate: int | None = None) -> None:
        """Remove all clients, then all namespaces."""
        _check.rate(max_rate)
        is_changed = True
        while is_changed:
            is_changed = False
            try:
                for keys in self.yield_ns():
                    is_changed = True
                    self.remove_ns_and_clients(keys, max_rate)
                return
            except STLRpcError as error:
                # What we remove ourselves changes the table that we read: go on with what is left.
                if not (is_changed and is_interrupted(error)):
                    raise

    def remove_ns_and_clients(
        self, ns_keys: EMUNamespaceKey | list[EMUNamespaceKey], max_rate: int | None = None
    ) -> None:
        """Remove the clients of these namespaces, then the namespaces."""
        keys = _check.several("ns_keys", ns_keys, EMUNamespaceKey)
        for key in keys:
            self.stop_autotriggers_ns(key)
            self.remove_clients(self.get_all_clients_for_ns(key), max_rate)
        self.remove_ns(keys)

    def stop_autotriggers_ns(self, ns_key: EMUNamespaceKey) -> None:
        """Let a namespace make no more clients by itself. Older servers do not know this, and need not."""
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        try:
            self._requests.to_ns("ctx_stop_autotriggers", ns_key)
        except STLRpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise

    def get_all_ns(self) -> list[EMUNamespaceKey]:
        """The keys of all namespaces."""
        return [EMUNamespaceKey(**entry) for entry in self._requests.core_items("ctx_iter")]

    def get_all_clients_for_ns(self, ns_key: EMUNamespaceKey) -> list[EMUClientKey]:
        """The keys of all clients of a namespace."""
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        tunnel = ns_key.conv_to_dict(add_tunnel_key=True)
        return [EMUClientKey(ns_key, mac) for mac in self._requests.core_items("ctx_client_iter", tunnel)]

    def get_all_ns_and_clients(self) -> list[dict[str, Any]]:
        """All namespaces, each with what the server knows of its clients under "clients"."""
        return [
            {**key.conv_to_dict(), "clients": self.get_info_clients(self.get_all_clients_for_ns(key))}
            for key in self.get_all_ns()
        ]

    def yield_ns(self, count: int | None = None) -> Iterator[list[EMUNamespaceKey]]:
        """The keys of all namespaces, page by page."""
        for page in self._requests.pages("ctx_iter", count):
            yield [EMUNamespaceKey(**entry) for entry in page]

    def yield_clients(
        self, ns_key: EMUNamespaceKey, count: int | None = None
    ) -> Iterator[list[EMUClientKey]]:
        """The keys of all clients of a namespace, page by page."""
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        for page in self._requests.pages("ctx_client_iter", count, ns_key.conv_to_dict(add_tunnel_key=True)):
            yield [EMUClientKey(ns_key, mac) for mac in page]

    def get_info_ns(self, ns_keys: EMUNamespaceKey | list[EMUNamespaceKey]) -> list[dict[str, Any]]:
        """What the server knows of namespaces: `vport`, `tci`, `tpid`, `active_clients`, `plug_names`."""
        keys = _check.several("ns_keys", ns_keys, EMUNamespaceKey)
        return _records(
            self._requests.send("ctx_get_info", {"tunnels": [key.conv_to_dict() for key in keys]})
        )

    def get_info_clients(self, c_keys: EMUClientKey | list[EMUClientKey]) -> list[dict[str, Any]]:
        """What the server knows of clients of a namespace: addresses, gateways, plugins."""
        keys = _check.several("c_keys", c_keys, EMUClientKey)
        return _records(self._requests.to_clients("ctx_client_get_info", keys)) if keys else []

    # Default plugins.

    def get_def_ns_plugs(self) -> Any:
        """The plugins of a namespace that has none of its own."""
        return self._requests.call("ctx_get_def_plugins")["def_plugs"]

    def set_def_ns_plugs(self, def_plugs: Plugs | None) -> None:
        """Set the plugins of a namespace that has none of its own."""
        _check.optional("def_plugs", def_plugs, dict)
        self._requests.send("ctx_set_def_plugins", {"def_plugs": def_plugs})

    def get_def_c_plugs(self, ns_key: EMUNamespaceKey) -> Any:
        """The plugins of a client of a namespace that has none of its own."""
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        return self._requests.to_ns("ctx_client_get_def_plugins", ns_key)["def_plugs"]

    def set_def_c_plugs(self, ns_key: EMUNamespaceKey, def_plugs: Plugs | None) -> None:
        """Set the plugins of a client of a namespace that has none of its own."""
        _check.kind("ns_key", ns_key, EMUNamespaceKey)
        _check.optional("def_plugs", def_plugs, dict)
        self._requests.to_ns("ctx_client_set_def_plugins", ns_key, def_plugs=def_plugs)

    # Counters.

    def get_counters(
        self,
        meta: bool = False,
        zero: bool = False,
        mask: str | list[str] | None = None,
        clear: bool = False,
    ) -> Any:
        """The counters of the server as a whole: numbers by table and name, or with ``meta`` what they mean.

        ``zero`` gives those that are zero, too, ``mask`` those of some tables, ``clear`` lets all begin anew.
        """
        return _counted(self.general_data_c, meta, zero, mask, clear)

    def resource_monitor_get_counters(
        self,
        meta: bool = False,
        zero: bool = False,
        mask: str | list[str] | None = None,
        clear: bool = False,
    ) -> Any:
        """What the server uses of the CPU and of memory, as ``get_counters``."""
        return _counted(self.resource_monitor_c, meta, zero, mask, clear)

    def resource_monitor_reset(self) -> Any:
        """Begin to measure the use of the CPU anew."""
        return self._requests.call("ctx_resource_monitor_reset")

    def print_all_ns_clients(
        self,
        max_ns_show: int,
        max_c_show: int,
        to_json: bool = False,
        to_yaml: bool = False,
        ipv6: bool = False,
        dg4: bool = False,
        dg6: bool = False,
        ipv6_router: bool = False,
    ) -> None:
        """Print all namespaces and clients in tables, so many a time, or all as JSON or YAML."""
        if to_json or to_yaml:
            _print.dump(self.get_all_ns_and_clients(), to_json)
            return
        for keys in self.yield_ns(max_ns_show):
            for key, info in zip(keys, self.get_info_ns(keys), strict=True):
                print(_print.namespace(info))
                for clients in self.yield_clients(key, max_c_show):
                    print(_print.clients(self.get_info_clients(clients), ipv6, dg4, dg6, ipv6_router))


def _records(answer: Any) -> list[dict[str, Any]]:
    return [_text.record(one) for one in (answer if isinstance(answer, list) else [answer])]


def _counted(counters: DataCounter, meta: bool, zero: bool, mask: str | list[str] | None, clear: bool) -> Any:
    _check.kind("meta", meta, bool)
    _check.kind("zero", zero, bool)
    _check.kind("clear", clear, bool)
    _check.optional("mask", mask, str, list)
    return counters.values(meta, zero, mask, clear)
