"""What a stateful client does with latency: packets that measure it, beside the traffic."""

from __future__ import annotations

from typing import Any

from .._arguments import U32_MAX, ipv4, number, whole
from ._connection import StatefulConnection

_RATE_PPS_MAX = 1e6


class Latency:
    """ICMP echo from each client port, reflected by its server port."""

    def __init__(self, connection: StatefulConnection) -> None:
        self._connection = connection

    def start_latency(
        self,
        mult: float = 1,
        src_ipv4: str = "16.0.0.1",
        dst_ipv4: str = "48.0.0.1",
        ports_mask: int = 0x7FFFFFFF,
        dual_ipv4: str = "1.0.0.0",
        port_ipv4_offset_s: str | None = None,
    ) -> None:
        """Send ``mult`` echo requests a second from ``src_ipv4`` to ``dst_ipv4``.

        ``dual_ipv4`` is added to both for each further pair of ports; ``port_ipv4_offset_s`` is for the
        server's side, where it differs. ``ports_mask`` are the ports that take part, bit by bit. VLANs
        are those of the ports.
        """
        where = "start_latency"
        self._connection.owned(
            where,
            mult=number(where, "mult", mult, 0, _RATE_PPS_MAX),
            src_addr=ipv4(where, "src_ipv4", src_ipv4),
            dst_addr=ipv4(where, "dst_ipv4", dst_ipv4),
            dual_port_addr=ipv4(where, "dual_ipv4", dual_ipv4),
            port_s_offset=ipv4(where, "port_ipv4_offset_s", port_ipv4_offset_s or dual_ipv4),
            mask=whole(where, "ports_mask", ports_mask, 0, U32_MAX),
        )

    def stop_latency(self) -> None:
        """Send no more echo requests."""
        self._connection.owned("stop_latency")

    def update_latency(self, mult: float = 1) -> None:
        """Change how many echo requests are sent a second."""
        where = "update_latency"
        self._connection.owned(where, mult=number(where, "mult", mult, 0, _RATE_PPS_MAX))

    def get_latency_stats(self, skip_zero: bool = True) -> dict[int, dict[str, Any]]:
        """Latency of each port that measures.

        "hist" has times in microseconds (min_usec, max_usec, s_avg, s_max, and a histogram of keys and
        values), "stats" counters. A server of Allosaur also sends percentiles (p50, p90, p99, p99_9), and
        which errors of sequence they were (dropped, out_of_order, duplicates). ``skip_zero`` is accepted:
        existing scripts give it.
        """
        answer = self._connection.call("get_latency_stats")["data"]
        ports = {name.removeprefix("port-"): value for name, value in answer.items() if name[:5] == "port-"}
        return {int(port): value for port, value in ports.items()}
