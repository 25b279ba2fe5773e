"""Multicast groups of a namespace, the same for IGMP and MLD: joined for any source, or for one each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

from .._errors import STLArgumentError, STLError
from . import _check
from ._plugin import NamespacePlugin
from ._profile import EMUNamespaceKey
from ._values import Ipv4, Ipv6, Mac


class GroupsPlugin(NamespacePlugin):
    """A plugin by which a namespace is in groups."""

    ADDRESS: ClassVar[type[Ipv4] | type[Ipv6]]
    METHODS: ClassVar[str]
    """How the methods of the server begin."""

    def get_cfg(self, ns_key: EMUNamespaceKey) -> Any:
        """The settings of a namespace: `mtu`, `dmac` (the client that speaks for it), `version`."""
        return self._to_ns(f"{self.METHODS}_get_cfg", ns_key)

    def set_cfg(self, ns_key: EMUNamespaceKey, mtu: int, dmac: object) -> Any:
        """Set the MTU, and the MAC address of the client that speaks for the namespace."""
        _check.within("mtu", mtu, _check.MTU_MIN, _check.MTU_MAX)
        return self._to_ns(f"{self.METHODS}_set_cfg", ns_key, mtu=mtu, dmac=Mac(dmac).V())

    def add_gen_mc_sg(
        self,
        ns_key: EMUNamespaceKey,
        g_start: object,
        g_count: int = 1,
        s_start: object = None,
        s_count: int = 1,
    ) -> Any:
        """Join ``g_count`` groups from ``g_start`` on, each for ``s_count`` sources from ``s_start`` on."""
        return self._change_sources(ns_key, "add", *self._pairs(g_start, g_count, s_start, s_count))

    def remove_gen_mc_sg(
        self,
        ns_key: EMUNamespaceKey,
        g_start: object,
        g_count: int = 1,
        s_start: object = None,
        s_count: int = 1,
    ) -> Any:
        """Leave ``g_count`` groups from ``g_start`` on, each for ``s_count`` sources from ``s_start`` on."""
        return self._change_sources(ns_key, "remove", *self._pairs(g_start, g_count, s_start, s_count))

    def tear_down_ns(self, ns_key: EMUNamespaceKey) -> None:
        """Leave all groups, so that the namespace can go; it may not have the plugin."""
        with contextlib.suppress(STLError):
            self._leave_all(ns_key)

    def _leave_all(self, ns_key: EMUNamespaceKey) -> Any:
        raise NotImplementedError

    def _change(self, ns_key: EMUNamespaceKey, what: str, groups: Sequence[object]) -> Any:
        vec = [self.ADDRESS(group, mc=True).V() for group in groups]
        return self._to_ns(f"{self.METHODS}_{what}", ns_key, vec=vec)

    def _change_sources(
        self, ns_key: EMUNamespaceKey, what: str, groups: Sequence[object], sources: Sequence[object]
    ) -> Any:
        if len(groups) != len(sources):
            raise STLArgumentError(
                "s_vec", f"{len(sources)} sources", f"one for each of the {len(groups)} groups of g_vec"
            )
        vec = [
            {"g": self.ADDRESS(group, mc=True).V(), "s": self.ADDRESS(source).V()}
            for group, source in zip(groups, sources, strict=True)
        ]
        return self._to_ns(f"{self.METHODS}_sg_{what}", ns_key, vec=vec)

    def _range(self, start: object, count: int, mc: bool = True) -> list[Ipv4 | Ipv6]:
        first = self.ADDRESS(start, mc=mc)
        _check.within("count", count, 0, 1 << 24)
        return [first[number] for number in range(count)]

    def _pairs(
        self, g_start: object, g_count: int, s_start: object, s_count: int
    ) -> tuple[list[Ipv4 | Ipv6], list[Ipv4 | Ipv6]]:
        """Each group of a range with each source of another."""
        groups = self._range(g_start, g_count)
        sources = self._range(s_start, s_count, mc=False)
        return (
            [group for group in groups for _ in sources],
            [source for _ in groups for source in sources],
        )
