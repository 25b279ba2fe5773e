"""Types of statistics, for annotations: what ``get_stats`` and its like return.

    from allosaur.stats import PortStats

    def sent(port: PortStats) -> int:
        return port["opackets"]

While a script runs they are plain dictionaries.
"""

from __future__ import annotations

from .client._stats import (
    ByPort,
    FlowRates,
    FlowStats,
    GlobalStats,
    GroupErrors,
    GroupLatency,
    GroupStats,
    LatencyErrors,
    LatencyHeaders,
    LatencyStats,
    LatencyTimes,
    PortStats,
    RateByPort,
    StatefulStats,
    Stats,
    TrafficStats,
)

__all__ = [
    "ByPort",
    "FlowRates",
    "FlowStats",
    "GlobalStats",
    "GroupErrors",
    "GroupLatency",
    "GroupStats",
    "LatencyErrors",
    "LatencyHeaders",
    "LatencyStats",
    "LatencyTimes",
    "PortStats",
    "RateByPort",
    "StatefulStats",
    "Stats",
    "TrafficStats",
]
