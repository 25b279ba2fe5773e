"""Statistics of packet groups as scripts read them, made from the server's counters.

The server's counters only grow; ``clear_stats`` takes a reference of each group, and what is read
is the difference.
"""

from __future__ import annotations

from typing import Any

from ..rpc._rpc import Rpc
from ._hdrh import decode, percentile, since

_PREAMBLE_AND_GAP_BITS = 20 * 8
#: Name in the dictionary, name in the protocol.
_COUNTERS = {"rx_pkts": "rp", "rx_bytes": "rb", "tx_pkts": "tp", "tx_bytes": "tb"}
#: Only our own server has it: it appears when the server sends it.
_MORE_COUNTERS = {"missed_pkts": "missed"}
_RATES = {"rx_bps": "rbs", "rx_pps": "rps", "tx_bps": "tbs", "tx_pps": "tps"}
_ERRORS = {
    "dropped": "drp",
    "out_of_order": "ooo",
    "dup": "dup",
    "seq_too_high": "sth",
    "seq_too_low": "stl",
}
#: Only our own server has it: it appears when a packet arrived before it was sent, by the clocks.
_MORE_ERRORS = {"impossible_times": "imp"}
_GLOBAL_ERRORS = {"old_flow": "old_flow", "bad_hdr": "bad_header"}
#: Only our own server has these, in microseconds: they appear when it sends them.
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9}


class PgidBook:
    """The last counters of each packet group, and the reference since ``clear``."""

    def __init__(self) -> None:
        self._groups: dict[int, dict[str, Any]] = {}
        self._latency: dict[int, dict[str, Any]] = {}
        self._versions: dict[int, int] = {}
        self._errors: dict[str, Any] = {}
        self._latency_errors: dict[str, Any] = {}
        self._reference: dict[int, _Reference] = {}
        self._ports: tuple[int, ...] = ()

    def read(self, rpc: Rpc, ports: list[int], pgids: list[int] | None = None) -> list[int]:
        """Ask the server for these groups, or for all; returns those that it has."""
        self._ports = tuple(ports)
        if pgids is None:
            active = active_pgids(rpc)
            pgids = active["flow_stats"] + active["latency"]
        answer = rpc.call("get_pgid_stats", pgids=pgids) if pgids else {}
        groups = dict(answer.get("flow_stats") or {})
        latency = dict(answer.get("latency") or {})
        self._errors = groups.pop("g", None) or {}
        self._latency_errors = latency.pop("g", None) or {}
        self._groups = {int(pgid): counters for pgid, counters in groups.items()}
        self._latency = {int(pgid): counters for pgid, counters in latency.items()}
        self._versions = {int(pgid): version for pgid, version in (answer.get("ver_id") or {}).items()}
        for pgid in self._groups:
            # A group that was made anew counts from zero again.
            if pgid in self._reference and self._reference[pgid].version != self._versions.get(pgid):
                del self._reference[pgid]
            if pgid in self._reference and pgid in self._latency:
                self._reference[pgid].note_max(self._latency[pgid])
        return sorted(self._groups)

    def clear(self, flow_stats: bool, latency: bool) -> None:
        """Count from here: packets and bytes, latency, or both."""
        for pgid, counters in self._groups.items():
            before = self._reference.get(pgid)
            now = _Reference(self._versions.get(pgid))
            now.counters = counters if flow_stats else (before.counters if before else {})
            if latency:
                now.latency = self._latency.get(pgid, {})
                now.max_usec = 0
            elif before:
                now.latency, now.max_usec = before.latency, before.max_usec
            self._reference[pgid] = now

    def forget_references(self) -> None:
        """Count from the server's start."""
        self._reference = {}

    def flow_stats(self) -> dict[Any, Any]:
        """The ``flow_stats`` part: by group, counter and port, with ``total``."""
        stats: dict[Any, Any] = {pgid: self._group(pgid) for pgid in sorted(self._groups)}
        if stats:
            stats["global"] = {
                name: {port: (self._errors.get(name) or {}).get(str(port), 0) for port in self._ports}
                for name in ("rx_err", "tx_err")
            }
        return stats

    def latency(self) -> dict[Any, Any]:
        """The ``latency`` part: by group. Times are in microseconds."""
        stats: dict[Any, Any] = {
            pgid: self._latency_of(pgid, counters) for pgid, counters in sorted(self._latency.items())
        }
        stats["global"] = {name: self._latency_errors.get(key, 0) for name, key in _GLOBAL_ERRORS.items()}
        return stats

    def versions(self) -> dict[int, int]:
        """A number for each group that changes when the group is made anew."""
        return dict(self._versions)

    def _group(self, pgid: int) -> dict[str, Any]:
        now = self._groups[pgid]
        before = self._reference.get(pgid)
        reference = before.counters if before else {}
        values: dict[str, Any] = {}
        for name, key in {**_COUNTERS, **_MORE_COUNTERS}.items():
            if name in _MORE_COUNTERS and key not in now:
                continue
            old = reference.get(key) or {}
            by_port: dict[Any, Any] = {
                int(port): count - old.get(port, 0) for port, count in (now.get(key) or {}).items()
            }
            values[name] = _with_total(by_port)
        for name, key in _RATES.items():
            values[name] = _with_total({int(port): rate for port, rate in (now.get(key) or {}).items()})
        for direction in ("rx", "tx"):
            bps, pps = values[f"{direction}_bps"], values[f"{direction}_pps"]
            values[f"{direction}_bps_l1"] = {
                port: rate + pps.get(port, 0.0) * _PREAMBLE_AND_GAP_BITS for port, rate in bps.items()
            }
        return values

    def _latency_of(self, pgid: int, counters: dict[str, Any]) -> dict[str, Any]:
        before = self._reference.get(pgid)
        reference = before.latency if before else {}
        now, errors = counters.get("lat") or {}, counters.get("er") or {}
        old_errors = reference.get("er") or {}
        old_histogram = (reference.get("lat") or {}).get("histogram") or {}
        histogram = {
            int(bucket): count - old_histogram.get(bucket, 0)
            for bucket, count in (now.get("histogram") or {}).items()
            if count > old_histogram.get(bucket, 0)
        }
        latency: dict[str, Any] = {
            "jitter": now.get("jit", 0),
            "average": now.get("average", 0),
            "total_max": before.max_usec if before and before.latency else now.get("total_max", 0),
            "total_min": now.get("total_min", 0),
            "last_max": now.get("last_max", 0),
            "histogram": dict(sorted(histogram.items())),
        }
        latency.update({name: now[name] for name in ("hdrh", "min", "max", *_PERCENTILES) if name in now})
        if "p50" in now and "hdrh" in (reference.get("lat") or {}):
            latency.update(_since(now, reference["lat"]))
        names = {**_ERRORS, **{name: key for name, key in _MORE_ERRORS.items() if key in errors}}
        return {
            "err_cntrs": {name: errors.get(key, 0) - old_errors.get(key, 0) for name, key in names.items()},
            "latency": latency,
        }


def _since(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Give what our own server's fields say of the packets after ``before``, in whole microseconds."""
    counts = since(decode(now["hdrh"]), decode(before["hdrh"]))
    packets = now["packets"] - before["packets"]
    least, most = min(counts, default=0), max(counts, default=0)
    return {
        "average": round((now["sum_ns"] - before["sum_ns"]) / packets / 1000, 2) if packets else 0,
        "total_min": least,
        "total_max": most,
        "min": least,
        "max": most,
        **{name: percentile(counts, percent) for name, percent in _PERCENTILES.items()},
    }


class _Reference:
    """What a group had counted when it was cleared."""

    def __init__(self, version: int | None) -> None:
        self.version = version
        self.counters: dict[str, Any] = {}
        self.latency: dict[str, Any] = {}
        #: The highest latency that was seen since, for the server's is of all time.
        self.max_usec = 0

    def note_max(self, latency: dict[str, Any]) -> None:
        self.max_usec = max(self.max_usec, (latency.get("lat") or {}).get("last_max", 0))


def active_pgids(rpc: Rpc) -> dict[str, list[int]]:
    """The groups of all streams on the server: ``flow_stats`` and ``latency``."""
    ids = (rpc.call("get_active_pgids") or {}).get("ids") or {}
    return {kind: list(ids.get(kind) or []) for kind in ("flow_stats", "latency")}


def _with_total(by_port: dict[Any, Any]) -> dict[Any, Any]:
    return {**by_port, "total": sum(by_port.values())}
