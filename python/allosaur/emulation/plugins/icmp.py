"""ICMP: clients answer echo requests, and ping."""

from __future__ import annotations

from typing import ClassVar

from .._plugin import Init, Outcome, PingPlugin, as_bytes
from .._profile import EMUClientKey
from .._values import Ipv4


class ICMPPlugin(PingPlugin):
    """``client.icmp``."""

    plugin_name = "ICMP"
    NS_COUNTERS = "icmp_ns_cnt"
    INIT_JSON_NS: ClassVar[Init] = {"icmp": {}}
    INIT_JSON_CLIENT: ClassVar[Init] = {"icmp": {}}
    START, STATS, STOP = "icmp_c_start_ping", "icmp_c_get_ping_stats", "icmp_c_stop_ping"

    def start_ping(
        self,
        c_key: EMUClientKey,
        amount: int | None = None,
        pace: float | None = None,
        dst: object = None,
        timeout: int | None = None,
        payload_size: int | None = None,
    ) -> Outcome:
        """Let a client ping, ``dst`` or its gateway; it returns at once.

        ``amount`` requests, ``pace`` of them a second, with ``payload_size`` bytes (at least 16);
        ``timeout`` is the seconds to wait for the last answers.
        """
        where = as_bytes(Ipv4, dst)
        return self._outcome(
            *(self.START, c_key),
            amount=amount,
            pace=pace,
            dst=where,
            timeout=timeout,
            payloadSize=payload_size,
        )
