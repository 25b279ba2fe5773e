"""Statistics as scripts read them, made from the server's counters.

The server's counters only grow; "cleared" is the difference to a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rpc._rpc import Call, Rpc
from ._pgid import PgidBook

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

    def to_dict(self, ports: Sequence[int], speeds_bps: dict[int, float]) -> dict[Any, Any]:
        """The dictionary of ``get_stats``; ``speeds_bps`` is the line rate of each port."""
        stats: dict[Any, Any] = {"global": self._global_dict()}
        for port in ports:
            stats[port] = self._port_dict(port, speeds_bps.get(port, 0.0))
        stats["total"] = _total([stats[port] for port in ports])
        stats["flow_stats"] = self.pgids.flow_stats()
        stats["latency"] = self.pgids.latency()
        return stats

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
