"""What a client reads of ports and packet groups: counters, rates, latency.

The server's counters only grow; "cleared" is the difference to a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..rpc._rpc import Call, Rpc
from ..stats import Stats
from ._connection import Connection
from ._pgid import PgidBook, active_pgids
from ._places import Ports
from ._session import Session

_COUNTERS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")
#: Counters that only our own server has: they appear when it sends them.
_MORE_COUNTERS = ("missed_packets", "queue_full", "rx_lost_packets")
_HISTOGRAMS = ("tx_by_size", "rx_by_size")
_PREAMBLE_AND_GAP_BITS = 20 * 8

_GLOBAL = (
    *(
        "active_flows",
        "active_sockets",
        "bw_per_core",
        "cpu_util",
        "cpu_util_raw",
        "open_flows",
        "platform_factor",
    ),
    *("rx_bps", "rx_core_pps", "rx_cpu_util", "rx_drop_bps", "rx_pps", "socket_util", "tx_expected_bps"),
    *("tx_expected_cps", "tx_expected_pps", "tx_pps", "tx_bps", "tx_cps", "total_servers", "total_clients"),
)
#: Name in the dictionary, name in the protocol.
_GLOBAL_COUNTERS = {
    "total_alloc_error": "m_total_alloc_error",
    "queue_full": "m_total_queue_full",
    "missed_packets": "m_total_missed_packets",
}


class Statistics:
    """Statistics. The server's counters only grow: clearing is this client's view."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._book = StatsBook()

    def begin(self, session: Session) -> None:
        """A session begins: read what there is, and count from here."""
        self._book = StatsBook()
        self._book.read(session.rpc, list(session.ports), session.group_ports)
        self._book.clear(list(session.ports), clear_global=True)
        self._book.pgids.clear(flow_stats=True, latency=True)

    def count_since_server_start(self) -> None:
        """Count from the server's start, as its own counters do, and no longer from ``connect()``."""
        self._connection.session()
        self._book.forget_references()

    def get_stats(self, ports: Ports = None, sync_now: bool = True, *, only_given: bool = False) -> Stats:
        """Counters and rates: keys are port numbers, "total", "global", "flow_stats", "latency".

        They count from ``connect()``, or the last ``clear_stats()``. Bytes are with FCS, rates in bits or
        packets a second, utilization in percent. With ``sync_now=False`` what was read last is returned
        without asking the server.

        All ports of the server are there, and "total" is of all, also of those that are not ours: as with
        TRex's client, which checks ``ports`` and gives all. With ``only_given`` those of ``ports`` are.
        """
        session = self._connection.session()
        chosen = self._counted(ports, only_given)
        if sync_now:
            self._book.read(session.rpc, chosen, session.group_ports)
        return self._book.to_dict(
            chosen, {port_id: self._connection.port(port_id).speed_bps for port_id in chosen}
        )

    def clear_stats(
        self,
        ports: Ports = None,
        clear_global: bool = True,
        clear_flow_stats: bool = True,
        clear_latency_stats: bool = True,
        clear_xstats: bool = True,
        *,
        only_given: bool = False,
    ) -> None:
        """Count from here. The server goes on counting: only this client's view starts at zero.

        All ports of the server begin at zero, as with TRex's client, which checks ``ports`` and clears
        all. With ``only_given`` those of ``ports`` do. ``clear_xstats`` has nothing to clear: extended
        statistics are always since the server's start.
        """
        session = self._connection.session()
        chosen = self._counted(ports, only_given)
        self._book.read(session.rpc, chosen, session.group_ports)
        self._book.clear(chosen, clear_global)
        self._book.pgids.clear(clear_flow_stats, clear_latency_stats)

    def clear_pgid_stats(self, clear_flow_stats: bool = True, clear_latency_stats: bool = True) -> None:
        """Count packet groups from here; ``clear_stats`` does it, too."""
        session = self._connection.session()
        self._book.pgids.read(session.rpc, list(session.ports))
        self._book.pgids.clear(clear_flow_stats, clear_latency_stats)

    def get_active_pgids(self) -> dict[str, list[int]]:
        """The packet groups of all streams on the server: ``flow_stats`` and ``latency``."""
        return active_pgids(self._connection.session().rpc)

    def get_pgid_stats(self, pgid_list: list[int] | None = None) -> dict[str, Any]:
        """Packet groups: the ``flow_stats`` and ``latency`` parts of ``get_stats``, and ``ver_id``.

        Without ``pgid_list`` those of all groups; groups that the server does not have are left out.
        Bytes are with FCS, rates in bits or packets a second, times in microseconds.
        """
        session = self._connection.session()
        self._book.pgids.read(session.rpc, list(session.ports), pgid_list or None)
        groups = self._book.pgids
        return {"flow_stats": groups.flow_stats(), "latency": groups.latency(), "ver_id": groups.versions()}

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

    def _counted(self, ports: Ports, only_given: bool) -> list[int]:
        """All ports, or those given; they must be there in any case. Raises ``STLError``."""
        given = self._connection.ports_of(ports, self._connection.all_ports, owned=False)
        return given if only_given else self._connection.all_ports()


class StatsBook:
    """The last counters of the server and of each port, and the reference since ``clear``."""

    def __init__(self) -> None:
        #: The counters of packet groups.
        self.pgids = PgidBook()
        self._global: dict[str, Any] = {}
        self._ports: dict[int, dict[str, Any]] = {}
        self._global_reference: dict[str, Any] = {}
        self._port_references: dict[int, dict[str, Any]] = {}

    def read(self, rpc: Rpc, ports: Sequence[int], group_ports: Sequence[int]) -> None:
        """Ask for the counters of the server, of these ports, and of the packet groups of ``group_ports``."""
        # Our own server counts frames by size when asked to; another ignores that it is asked.
        port_stats: list[Call] = [("get_port_stats", {"port_id": port, "by_size": True}) for port in ports]
        replies = rpc.batch([("get_global_stats", {}), *port_stats])
        self.update(ports, [reply.unwrap() for reply in replies])
        if group_ports:
            self.pgids.read(rpc, list(group_ports))

    def update(self, ports: Sequence[int], results: Sequence[Any]) -> None:
        """Take the counters of the server and of these ports, in order."""
        self._global = results[0]
        self._ports.update(zip(ports, results[1:], strict=True))

    def clear(self, ports: Sequence[int], clear_global: bool) -> None:
        """Count from here."""
        self._port_references.update({port: self._ports[port] for port in ports})
        if clear_global:
            self._global_reference = self._global

    def forget_references(self) -> None:
        """Count from the server's start."""
        self._global_reference = {}
        self._port_references = {}
        self.pgids.forget_references()

    def to_dict(self, ports: Sequence[int], speeds_bps: dict[int, float]) -> Stats:
        """The dictionary of ``get_stats``; ``speeds_bps`` is the line rate of each port."""
        stats: dict[Any, Any] = {"global": self._global_dict()}
        for port in ports:
            stats[port] = self._port_dict(port, speeds_bps.get(port, 0.0))
        stats["total"] = _total([stats[port] for port in ports])
        stats["flow_stats"] = self.pgids.flow_stats()
        stats["latency"] = self.pgids.latency()
        return cast("Stats", stats)

    def _global_dict(self) -> dict[str, Any]:
        values = {name: self._global.get(f"m_{name}", 0) for name in _GLOBAL}
        for name, key in _GLOBAL_COUNTERS.items():
            if key in self._global or name != "missed_packets":
                values[name] = self._global.get(key, 0) - self._global_reference.get(key, 0)
        return values

    def _port_dict(self, port: int, speed_bps: float) -> dict[str, Any]:
        now = self._ports.get(port, {})
        reference = self._port_references.get(port, {})
        values: dict[str, Any] = {name: now.get(name, 0) - reference.get(name, 0) for name in _COUNTERS}
        for direction in ("tx", "rx"):
            bps, pps = now.get(f"m_total_{direction}_bps", 0.0), now.get(f"m_total_{direction}_pps", 0.0)
            l1_bps = bps + pps * _PREAMBLE_AND_GAP_BITS
            values[f"{direction}_bps"] = bps
            values[f"{direction}_pps"] = pps
            values[f"{direction}_bps_L1"] = l1_bps
            values[f"{direction}_util"] = 100.0 * l1_bps / speed_bps if speed_bps else 0.0
        for name in _MORE_COUNTERS:
            if name in now:
                values[name] = now[name] - reference.get(name, 0)
        for name in _HISTOGRAMS:
            if name in now:
                before = reference.get(name, {})
                values[name] = {size: count - before.get(size, 0) for size, count in now[name].items()}
        return values


def _total(ports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for values in ports:
        for name, value in values.items():
            if isinstance(value, dict):
                sums = total.setdefault(name, {})
                for size, count in value.items():
                    sums[size] = sums.get(size, 0) + count
            else:
                total[name] = total.get(name, 0) + value
    return total
