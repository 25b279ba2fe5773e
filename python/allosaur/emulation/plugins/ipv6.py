"""IPv6: neighbours and routers, the groups of MLD, and pings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import _check
from .._groups import GroupsPlugin
from .._plugin import Init, Outcome, PingPlugin, as_bytes
from .._profile import EMUClientKey, EMUNamespaceKey
from .._values import Ipv6
from .arp import named_state


class IPV6Plugin(GroupsPlugin, PingPlugin):
    """``client.ipv6``."""

    plugin_name = "IPV6"
    NS_COUNTERS = "ipv6_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {
        "ipv6": {"mtu": 1500, "dmac": [0, 0, 0, 112, 0, 1], "vec": [], "version": 2}
    }
    INIT_JSON_CLIENT: ClassVar[Init] = {"ipv6": {"nd_timer": 29, "nd_timer_disable": False}}
    ADDRESS = Ipv6
    METHODS = "ipv6_mld_ns"
    START, STATS, STOP = "ipv6_start_ping", "ipv6_get_ping_stats", "ipv6_stop_ping"

    def add_mld(self, ns_key: EMUNamespaceKey, ipv6_vec: Sequence[object]) -> Any:
        """Join groups, whatever their source."""
        return self._change(ns_key, "add", ipv6_vec)

    def remove_mld(self, ns_key: EMUNamespaceKey, ipv6_vec: Sequence[object]) -> Any:
        """Leave groups."""
        return self._change(ns_key, "remove", ipv6_vec)

    def add_gen_mld(self, ns_key: EMUNamespaceKey, ipv6_start: object, ipv6_count: int = 1) -> Any:
        """Join ``ipv6_count`` groups from ``ipv6_start`` on."""
        return self._change(ns_key, "add", self._range(ipv6_start, ipv6_count))

    def remove_gen_mld(self, ns_key: EMUNamespaceKey, ipv6_start: object, ipv6_count: int = 1) -> Any:
        """Leave ``ipv6_count`` groups from ``ipv6_start`` on."""
        return self._change(ns_key, "remove", self._range(ipv6_start, ipv6_count))

    def add_mld_sg(self, ns_key: EMUNamespaceKey, g_vec: Sequence[object], s_vec: Sequence[object]) -> Any:
        """Join each group of ``g_vec`` for the source at the same place of ``s_vec``."""
        return self._change_sources(ns_key, "add", g_vec, s_vec)

    def remove_mld_sg(self, ns_key: EMUNamespaceKey, g_vec: Sequence[object], s_vec: Sequence[object]) -> Any:
        """Leave each group of ``g_vec`` for the source at the same place of ``s_vec``."""
        return self._change_sources(ns_key, "remove", g_vec, s_vec)

    def iter_mld(self, ns_key: EMUNamespaceKey, ipv6_amount: int | None = None) -> list[dict[str, Any]]:
        """The groups that a namespace is in, read ``ipv6_amount`` at a time.

        Each has `ipv6`, `mode`, `refc`, `management` (whether it was joined by us) and perhaps `sv`, sources.
        """
        _check.optional("ipv6_amount", ipv6_amount, int)
        return self._of_ns_all("ipv6_mld_ns_iter", ns_key, ipv6_amount)

    def remove_all_mld(self, ns_key: EMUNamespaceKey) -> Any:
        """Leave all groups that were joined by us."""
        groups = [one["ipv6"] for one in self.iter_mld(ns_key) if one["management"]]
        return self._to_ns("ipv6_mld_ns_remove", ns_key, vec=groups) if groups else True

    def show_cache(self, ns_key: EMUNamespaceKey) -> list[dict[str, Any]]:
        """The neighbours that a namespace knows: `ipv6`, `mac`, `resolve`, `state`, `refc`."""
        return [named_state(entry) for entry in self._of_ns_all("ipv6_nd_ns_iter", ns_key)]

    def start_ping(
        self,
        c_key: EMUClientKey,
        amount: int | None = None,
        pace: float | None = None,
        dst: object = None,
        src: object = None,
        timeout: int | None = None,
        payload_size: int | None = None,
    ) -> Outcome:
        """Let a client ping ``dst``, or its gateway, from ``src``, or the address that suits; as for IPv4."""
        return self._outcome(
            *(self.START, c_key),
            amount=amount,
            pace=pace,
            dst=as_bytes(Ipv6, dst),
            src=as_bytes(Ipv6, src),
            timeout=timeout,
            payloadSize=payload_size,
        )

    def _leave_all(self, ns_key: EMUNamespaceKey) -> Any:
        return self.remove_all_mld(ns_key)
