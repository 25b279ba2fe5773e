"""IGMP: the groups that a namespace is in, with any source or with sources of its choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import _check
from .._groups import GroupsPlugin
from .._plugin import Init
from .._profile import EMUNamespaceKey
from .._values import Ipv4


class IGMPPlugin(GroupsPlugin):
    """``client.igmp``."""

    plugin_name = "IGMP"
    NS_COUNTERS = "igmp_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {
        "igmp": {"mtu": 1500, "dmac": [0, 0, 0, 112, 0, 1], "vec": [[239, 0, 0, 1]], "version": 3}
    }
    INIT_JSON_CLIENT: ClassVar[Init] = {"igmp": {}}
    ADDRESS = Ipv4
    METHODS = "igmp_ns"

    def add_mc(self, ns_key: EMUNamespaceKey, ipv4_vec: Sequence[object]) -> Any:
        """Join groups, whatever their source."""
        return self._change(ns_key, "add", ipv4_vec)

    def remove_mc(self, ns_key: EMUNamespaceKey, ipv4_vec: Sequence[object]) -> Any:
        """Leave groups."""
        return self._change(ns_key, "remove", ipv4_vec)

    def add_gen_mc(self, ns_key: EMUNamespaceKey, ipv4_start: object, ipv4_count: int = 1) -> Any:
        """Join ``ipv4_count`` groups from ``ipv4_start`` on."""
        return self._change(ns_key, "add", self._range(ipv4_start, ipv4_count))

    def remove_gen_mc(self, ns_key: EMUNamespaceKey, ipv4_start: object, ipv4_count: int = 1) -> Any:
        """Leave ``ipv4_count`` groups from ``ipv4_start`` on."""
        return self._change(ns_key, "remove", self._range(ipv4_start, ipv4_count))

    def add_mc_sg(self, ns_key: EMUNamespaceKey, g_vec: Sequence[object], s_vec: Sequence[object]) -> Any:
        """Join each group of ``g_vec`` for the source at the same place of ``s_vec``."""
        return self._change_sources(ns_key, "add", g_vec, s_vec)

    def remove_mc_sg(self, ns_key: EMUNamespaceKey, g_vec: Sequence[object], s_vec: Sequence[object]) -> Any:
        """Leave each group of ``g_vec`` for the source at the same place of ``s_vec``."""
        return self._change_sources(ns_key, "remove", g_vec, s_vec)

    def iter_mc(self, ns_key: EMUNamespaceKey, ipv4_amount: int | None = None) -> list[dict[str, Any]]:
        """The groups of a namespace, read ``ipv4_amount`` at a time: `g`, `mode`, and `sv` (sources)."""
        _check.optional("ipv4_amount", ipv4_amount, int)
        return self._of_ns_all("igmp_ns_iter", ns_key, ipv4_amount)

    def remove_all_mc(self, ns_key: EMUNamespaceKey) -> Any:
        """Leave all groups; False when there are none."""
        groups = self.iter_mc(ns_key)
        return self._to_ns("igmp_ns_remove", ns_key, vec=[one["g"] for one in groups]) if groups else False

    def _leave_all(self, ns_key: EMUNamespaceKey) -> Any:
        return self.remove_all_mc(ns_key)
