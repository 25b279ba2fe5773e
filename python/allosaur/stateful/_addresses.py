"""Where the addresses of clients and servers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._arguments import U32_MAX, as_number, ipv4, ipv4_range, of_kind, whole
from ._emulated import NamespaceKey, namespace_fields
from ._errors import ASTFError, ASTFErrorMissingParam, ASTFErrorOverlapIP

_DISTRIBUTIONS = ("seq", "rand")
_PER_CORE = ("default", "seq")
_DIRECTIONS = {"c": "clients", "s": "servers"}


class ASTFIPGenDist:
    """A pool of IPv4 addresses, from the first to the last of ``ip_range``.

    ``distribution`` is "seq" (one after the other) or "rand". With ``per_core_distribution="seq"`` each
    core has a range of its own; with "default" the cores may take turns. A pool is for clients or for
    servers, not both.

    With ``emulation`` in the place of ``ip_range`` the clients are emulated ones: those of a namespace
    (an ``EMUNamespaceKey``, or a dictionary of its ``vport``, ``tci`` and ``tpid``) that are ready when
    the profile starts. A client is ready when it has its lease and its login, where it has such plugins,
    an address of the template's family, and the MAC address of its gateway. It keeps its address, its MAC
    address, its gateway and its VLAN tags. The start is refused unless ``ready_min`` of them are ready.
    TRex's servers know no such pools. Raises ``ASTFError``.
    """

    def __init__(
        self,
        ip_range: Sequence[str] | None = None,
        distribution: str = "seq",
        per_core_distribution: str | None = None,
        emulation: NamespaceKey | Mapping[str, Any] | None = None,
        ready_min: int = 1,
    ) -> None:
        #: The fields of the pool's namespace, or None for a pool of a range.
        self.emulation: dict[str, Any] | None = None
        self.ip_start = self.ip_end = "0.0.0.0"
        if emulation is None:
            if ip_range is None:
                raise ASTFErrorMissingParam("ASTFIPGenDist: ip_range is missing, give it, or emulation")
            self.ip_start, self.ip_end = ipv4_range("ASTFIPGenDist", "ip_range", ip_range)
        else:
            self._take_emulation(ip_range, per_core_distribution, emulation, ready_min)
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

    def _take_emulation(
        self, ip_range: object, per_core_distribution: object, emulation: object, ready_min: int
    ) -> None:
        """Be a pool of emulated clients. Raises ``ASTFError``."""
        for name, value in (("ip_range", ip_range), ("per_core_distribution", per_core_distribution)):
            if value is not None:
                raise ASTFError(
                    f"ASTFIPGenDist: {name} is {value!r} beside emulation, whose clients have their own "
                    "addresses: leave one of the two out"
                )
        fields = namespace_fields(emulation)
        self.emulation = {**fields, "ready_min": whole("ASTFIPGenDist", "ready_min", ready_min, 1, U32_MAX)}

    def to_json(self) -> dict[str, Any]:
        """An entry of the ``ip_gen_dist_list`` of the protocol."""
        if self.emulation is not None:
            return {"emulation": self.emulation, "distribution": self.distribution, "dir": self.direction}
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
                f"the pool {self._name()} is for {_DIRECTIONS[str(self.direction)]}: "
                f"make another ASTFIPGenDist for the {_DIRECTIONS[direction]}"
            )
        if self.emulation is not None and direction == "s":
            raise ASTFError(
                f"the pool {self._name()} cannot be dist_server: emulated clients begin flows, they do not "
                "serve; give the servers an ip_range"
            )
        self.direction, self.ip_offset = direction, ip_offset

    def _name(self) -> str:
        if self.emulation is None:
            return f"{self.ip_start} to {self.ip_end}"
        return f"of emulated clients of port {self.emulation['vport']}"

    def overlaps(self, other: ASTFIPGenDist) -> bool:
        """Whether two pools share addresses, as far as that is known: those of emulated clients are not."""
        if self.emulation is not None or other.emulation is not None:
            return False
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
