"""What a client reads of ports and packet groups: counters, rates, latency."""

from __future__ import annotations

from typing import Any

from ._connection import Connection
from ._pgid import active_pgids
from ._places import Ports


class Statistics:
    """Statistics. The server's counters only grow: clearing is this client's view."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_stats(self, ports: Ports = None, sync_now: bool = True) -> dict[Any, Any]:
        """Counters and rates: keys are port numbers, "total", "global", "flow_stats", "latency".

        Bytes are with FCS, rates in bits or packets a second, utilization in percent. With
        ``sync_now=False`` what was read last is returned without asking the server.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self._interesting_ports, owned=False)
        if sync_now:
            session.stats.read(session.rpc, chosen, session.group_ports)
        return session.stats.to_dict(
            chosen, {port_id: self._connection.port(port_id).speed_bps for port_id in chosen}
        )

    def clear_stats(
        self,
        ports: Ports = None,
        clear_global: bool = True,
        clear_flow_stats: bool = True,
        clear_latency_stats: bool = True,
        clear_xstats: bool = True,
    ) -> None:
        """Count from here. The server goes on counting: only this client's view starts at zero.

        ``clear_xstats`` has nothing to clear: extended statistics are always since the server's start.
        """
        session = self._connection.session()
        chosen = self._connection.ports_of(ports, self._interesting_ports, owned=False)
        session.stats.read(session.rpc, chosen, session.group_ports)
        session.stats.clear(chosen, clear_global)
        session.stats.pgids.clear(clear_flow_stats, clear_latency_stats)

    def clear_pgid_stats(self, clear_flow_stats: bool = True, clear_latency_stats: bool = True) -> None:
        """Count packet groups from here; ``clear_stats`` does it, too."""
        session = self._connection.session()
        session.stats.pgids.read(session.rpc, list(session.ports))
        session.stats.pgids.clear(clear_flow_stats, clear_latency_stats)

    def get_active_pgids(self) -> dict[str, list[int]]:
        """The packet groups of all streams on the server: ``flow_stats`` and ``latency``."""
        return active_pgids(self._connection.session().rpc)

    def get_pgid_stats(self, pgid_list: list[int] | None = None) -> dict[str, Any]:
        """Packet groups: the ``flow_stats`` and ``latency`` parts of ``get_stats``, and ``ver_id``.

        Without ``pgid_list`` those of all groups; groups that the server does not have are left out.
        Bytes are with FCS, rates in bits or packets a second, times in microseconds.
        """
        session = self._connection.session()
        session.stats.pgids.read(session.rpc, list(session.ports), pgid_list or None)
        book = session.stats.pgids
        return {"flow_stats": book.flow_stats(), "latency": book.latency(), "ver_id": book.versions()}

    def get_xstats(self, port_id: int) -> dict[str, int]:
        """The counters that the port's driver has, by its own names."""
        (port,) = self._connection.ports_of([port_id], self._connection.all_ports, owned=False)
        rpc = self._connection.session().rpc
        names = rpc.call("get_port_xstats_names", port_id=port)["xstats_names"]
        values = rpc.call("get_port_xstats_values", port_id=port)["xstats_values"]
        return dict(zip(names, values, strict=True))

    def get_util_stats(self) -> dict[str, Any]:
        """Use of each data core over the last seconds in percent, and of the packet memory."""
        stats: dict[str, Any] = self._connection.session().rpc.call("get_utilization")
        return stats

    def _interesting_ports(self) -> list[int]:
        return self._connection.acquired_ports() or self._connection.all_ports()
