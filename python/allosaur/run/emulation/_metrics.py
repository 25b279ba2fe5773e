"""What thresholds of a run of emulated clients may be about."""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.run._metrics import Row, Values, at, whole
from allosaur.run._thresholds import COUNT, Document, Labels, Metric, Reading


def _errors(row: Row) -> float:
    return float(sum(one["value"] for one in row["errors"]))


_READY = "clients that have their address and know their gateway"
_ERRORS = "error counters of all plugins together"


def _count(name: str, meaning: str, read: Values, decides: str, gains: bool = False) -> Metric:
    return Metric(name, COUNT, meaning, read, decides=decides, gains=gains)


METRICS: tuple[Metric, ...] = (
    _count("clients", "clients that are there", Values(whole, at("clients", "there")), "clients", True),
    _count("clients.ready", _READY, Values(whole, at("clients", "ready")), "ready", True),
    _count("errors", _ERRORS, Values(whole, _errors), "errors"),
)
"""All metrics of emulated clients, but for the counters of their plugins."""


def counter_metric(name: str) -> Metric | None:
    """Return the metric of a counter such as `dhcp.pktRxAck`; `None` when no plugin has the name."""
    from allosaur.cli.emulation import _counters

    plugin, dot, _ = name.partition(".")
    if not dot or plugin not in _counters.completions():
        return None

    def read(document: Document, _: Labels) -> Sequence[Reading]:
        # Counters that are zero are not listed.
        return [Reading(float(document["counters"].get(name, 0)))]

    return Metric(name, COUNT, f"the counter {name} of emulated clients", read, decides=name)
