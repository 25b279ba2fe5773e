"""DNS: clients that resolve names, and clients that are name servers."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _check
from .._plugin import BothPlugin, Init
from .._profile import EMUClientKey


class DNSPlugin(BothPlugin):
    """``client.dns``."""

    plugin_name = "DNS"
    NS_COUNTERS = "dns_ns_cnt"
    CLIENT_COUNTERS = "dns_c_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"dns": {"auto_play": False}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"dns": {"dns_server_ip": "16.0.0.254"}}

    def query(self, c_key: EMUClientKey, queries: list[dict[str, Any]]) -> None:
        """Let a client ask: each query has `name`, and perhaps `dns_type` ("A") and `dns_class` ("IN")."""
        _check.kind("queries", queries, list)
        self._to_client("dns_c_query", c_key, queries=queries)

    def get_domains(self, c_key: EMUClientKey) -> Any:
        """The domains that a name server knows."""
        return self._to_client("dns_c_get_domains", c_key)

    def get_domain_entries(self, c_key: EMUClientKey, domain: str) -> Any:
        """What a name server answers for a domain."""
        _check.kind("domain", domain, str)
        return self._to_client("dns_c_get_domain_entries", c_key, domain=domain)

    def add_domain_entries(self, c_key: EMUClientKey, domain: str, entries: list[dict[str, Any]]) -> Any:
        """Let a name server know more of a domain: each entry has `type`, `class` and `answer`."""
        return self._change(c_key, False, domain, entries)

    def remove_domain_entries(self, c_key: EMUClientKey, domain: str, entries: list[dict[str, Any]]) -> Any:
        """Let a name server forget entries of a domain."""
        return self._change(c_key, True, domain, entries)

    def get_cache(self, c_key: EMUClientKey) -> list[dict[str, Any]]:
        """What a resolver remembers: `name`, `dns_type`, `dns_class`, `answer`, `ttl`, `time_left`."""
        return self._of_client_all("dns_c_cache_iter", c_key)

    def flush_cache(self, c_key: EMUClientKey) -> None:
        """Let a resolver forget what it has asked."""
        self._to_client("dns_c_cache_flush", c_key)

    def _change(self, c_key: EMUClientKey, remove: bool, domain: str, entries: list[dict[str, Any]]) -> Any:
        _check.kind("domain", domain, str)
        _check.kind("entries", entries, list)
        method = "dns_c_add_remove_domain_entries"
        return self._to_client(method, c_key, op=remove, domain=domain, entries=entries)
