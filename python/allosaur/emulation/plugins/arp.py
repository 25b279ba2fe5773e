"""ARP: a namespace answers for its clients, and resolves each gateway once."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _check
from .._plugin import Init, NamespacePlugin
from .._profile import EMUClientKey, EMUNamespaceKey

STATES = {16: "Learned", 17: "Incomplete", 18: "Complete", 19: "Refresh"}
"""What an entry of the cache is in; that of IPv6 has the same numbers."""


class ARPPlugin(NamespacePlugin):
    """``client.arp``."""

    plugin_name = "ARP"
    NS_COUNTERS = "arp_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"arp": {"enable": True}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"arp": {"timer": 60, "timer_disable": False}}

    def get_cfg(self, ns_key: EMUNamespaceKey) -> Any:
        """The settings of a namespace: `enable`, whether it answers."""
        return self._to_ns("arp_ns_get_cfg", ns_key)

    def set_cfg(self, ns_key: EMUNamespaceKey, enable: bool) -> Any:
        """Let a namespace answer, or be silent."""
        _check.kind("enable", enable, bool)
        return self._to_ns("arp_ns_set_cfg", ns_key, enable=enable)

    def cmd_query(self, c_key: EMUClientKey, garp: bool) -> Any:
        """Let a client ask for its gateway, or with ``garp`` announce itself."""
        _check.kind("garp", garp, bool)
        return self._to_client("arp_c_cmd_query", c_key, garp=garp)

    def show_cache(self, ns_key: EMUNamespaceKey) -> list[dict[str, Any]]:
        """What a namespace knows: `ipv4`, `mac`, `resolve`, `state`, `refc` (the clients that need it)."""
        return [named_state(entry) for entry in self._of_ns_all("arp_ns_iter", ns_key)]


def named_state(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a cache with its state as a word."""
    return {**entry, "state": STATES.get(entry["state"], "Unknown state")} if "state" in entry else entry
