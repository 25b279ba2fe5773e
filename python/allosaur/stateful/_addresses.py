"""Where the addresses of clients and servers come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._arguments import as_number, ipv4, ipv4_range, of_kind
from ._errors import ASTFError, ASTFErrorOverlapIP

_DISTRIBUTIONS = ("seq", "rand")
_PER_CORE = ("default", "seq")
_DIRECTIONS = {"c": "clients", "s": "servers"}


class ASTFIPGenDist:
    """A pool of IPv4 addresses, from the first to the last of ``ip_range``.

    ``distribution`` is "seq" (one after the other) or "rand". With ``per_core_distribution="seq"`` each
    core has a range of its own; with "default" the cores may take turns. A pool is for clients or for
    servers, not both. Raises ``ASTFError``.
    """

    def __init__(
        self,
        ip_range: Sequence[str],
        distribution: str = "seq",
        per_core_distribution: str | None = None,
    ) -> None:
        self.ip_start, self.ip_end = ipv4_range("ASTFIPGenDist", "ip_range", ip_range)
        if distribution not in _DISTRIBUTIONS:
            raise ASTFError(f"ASTFIPGenDist: distribution is {distribution!r}, give 'seq' or 'rand'")
        if per_core_distribution and per_core_distribution not in _PER_CORE:
            raise ASTFError(
                f"ASTFIPGenDist: per_core_distribution is {per_core_distribution!r}, give 'default' or 'seq'"
            )
        self.distribution = distribution
        self.per_core_distribution = per_core_distribution or None
        #: "c" or "s", once an ``ASTFIPGen`` uses it.
        self.direction: str | None = None
        self.ip_offset = "0.0.0.0"

    def to_json(self) -> dict[str, Any]:
        """An entry of the ``ip_gen_dist_list`` of the protocol."""
        fields = {
            "ip_start": self.ip_start,
            "ip_end": self.ip_end,
            "distribution": self.distribution,
        }
        if self.per_core_distribution is not None:
            fields["per_core_distribution"] = self.per_core_distribution
        return {**fields, "dir": self.direction, "ip_offset": self.ip_offset}

    def use(self, direction: str, ip_offset: str) -> None:
        """Be a pool of clients ("c") or servers ("s"). Raises ``ASTFError`` when it is one of the others."""
        if self.direction not in (None, direction):
            raise ASTFError(
                f"the pool {self.ip_start} to {self.ip_end} is for {_DIRECTIONS[str(self.direction)]}: "
                f"make another ASTFIPGenDist for the {_DIRECTIONS[direction]}"
            )
        self.direction, self.ip_offset = direction, ip_offset

    def overlaps(self, other: ASTFIPGenDist) -> bool:
        """Whether two pools share addresses."""
        return as_number(self.ip_start) <= as_number(other.ip_end) and as_number(self.ip_end) >= as_number(
            other.ip_start
        )


class ASTFIPGenGlobal:
    """What each further pair of ports adds to the addresses of its pools: ``ip_offset``.

    ``ip_offset_server`` is for the servers' pools, where it differs. Raises ``ASTFError``.
    """

    def __init__(self, ip_offset: str = "1.0.0.0", ip_offset_server: str | None = None) -> None:
        self.ip_offset = ipv4("ASTFIPGenGlobal", "ip_offset", ip_offset)
        self.ip_offset_server = (
            ipv4("ASTFIPGenGlobal", "ip_offset_server", ip_offset_server)
            if ip_offset_server
            else self.ip_offset
        )


class ASTFIPGen:
    """The pools of a template: clients from ``dist_client``, servers from ``dist_server``."""

    def __init__(
        self,
        dist_client: ASTFIPGenDist,
        dist_server: ASTFIPGenDist,
        glob: ASTFIPGenGlobal | None = None,
    ) -> None:
        glob = ASTFIPGenGlobal() if glob is None else glob
        of_kind("ASTFIPGen", "glob", glob, ASTFIPGenGlobal)
        of_kind("ASTFIPGen", "dist_client", dist_client, ASTFIPGenDist)
        of_kind("ASTFIPGen", "dist_server", dist_server, ASTFIPGenDist)
        dist_client.use("c", glob.ip_offset)
        dist_server.use("s", glob.ip_offset_server)
        self.dist_client = dist_client
        self.dist_server = dist_server


class Pools:
    """The pools of a profile, each kept once, in the order in which they were first used."""

    def __init__(self) -> None:
        self._pools: list[ASTFIPGenDist] = []

    def add(self, generator: ASTFIPGen) -> dict[str, Any]:
        """The ``ip_gen`` of a template. Raises ``ASTFErrorOverlapIP``."""
        return {
            "dist_client": {"index": self._index(generator.dist_client)},
            "dist_server": {"index": self._index(generator.dist_server)},
        }

    def to_json(self) -> list[dict[str, Any]]:
        """The ``ip_gen_dist_list`` of the protocol."""
        return [pool.to_json() for pool in self._pools]

    def _index(self, pool: ASTFIPGenDist) -> int:
        known = [one.to_json() for one in self._pools]
        if pool.to_json() in known:
            return known.index(pool.to_json())
        for other in self._pools:
            if pool.direction == "c" and pool.overlaps(other):
                raise ASTFErrorOverlapIP(
                    f"the pool of clients {pool.ip_start} to {pool.ip_end} overlaps with the pool of "
                    f"{_DIRECTIONS[str(other.direction)]} {other.ip_start} to {other.ip_end}: use the same "
                    f"pool, or other addresses"
                )
        self._pools.append(pool)
        return len(self._pools) - 1
