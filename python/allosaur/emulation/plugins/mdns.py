"""mDNS: clients with names of their own, who ask each other."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _check
from .._plugin import BothPlugin, Init
from .._profile import EMUClientKey, EMUNamespaceKey


class MDNSPlugin(BothPlugin):
    """``client.mdns``."""

    plugin_name = "mDNS"
    NS_COUNTERS = "mdns_ns_cnt"
    CLIENT_COUNTERS = "mdns_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"mdns": {"auto_play": False}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"mdns": {"hosts": ["printer"], "ttl": 240}}

    def query(self, c_key: EMUClientKey, queries: list[dict[str, Any]]) -> None:
        """Let a client ask: each query has `name`, and perhaps `dns_type`, `dns_class` and `ipv6`."""
        _check.kind("queries", queries, list)
        self._to_client("mdns_c_query", c_key, queries=queries)

    def add_remove_hosts(self, c_key: EMUClientKey, op: bool, hosts: list[str]) -> Any:
        """Give a client names, or with ``op`` take them; returns those that it has, or has not, already."""
        _check.kind("op", op, bool)
        _check.kind("hosts", hosts, list)
        return self._to_client("mdns_c_add_remove_hosts", c_key, op=op, hosts=hosts)

    def get_client_hosts(self, c_key: EMUClientKey) -> Any:
        """The names of a client."""
        return self._to_client("mdns_c_get_hosts", c_key)

    def get_cache(self, ns_key: EMUNamespaceKey) -> list[dict[str, Any]]:
        """What a namespace remembers: `name`, `dns_type`, `dns_class`, `answer`, `ttl`, `time_left`."""
        return self._of_ns_all("mdns_ns_cache_iter", ns_key)

    def flush_cache(self, ns_key: EMUNamespaceKey) -> None:
        """Let a namespace forget what it has asked."""
        self._to_ns("mdns_ns_cache_flush", ns_key)
