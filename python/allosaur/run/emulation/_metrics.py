"""What thresholds of a run of emulated clients may be about."""

from __future__ import annotations

from allosaur.run._metrics import COUNT, Metric, Row


def _errors(row: Row) -> float:
    return float(sum(one["value"] for one in row["errors"]))


_READY = "clients that have their address and know their gateway"
_ERRORS = "error counters of all plugins together"
METRICS: tuple[Metric, ...] = (
    Metric("clients", COUNT, "clients that are there", "clients.there", decides="clients", gains=True),
    Metric("clients.ready", COUNT, _READY, "clients.ready", decides="ready", gains=True),
    Metric("errors", COUNT, _ERRORS, _errors, decides="errors"),
)
"""All metrics of emulated clients, but for the counters of their plugins."""


def counter_metric(name: str) -> Metric | None:
    """Return the metric of a counter such as `dhcp.pktRxAck`; `None` when no plugin has the name."""
    from allosaur.cli.emulation import _counters

    plugin, dot, _ = name.partition(".")
    if not dot or plugin not in _counters.completions():
        return None
    # Counters that are zero are not listed.
    meaning = f"the counter {name} of emulated clients"
    return Metric(name, COUNT, meaning, lambda row: float(row["counters"].get(name, 0)), decides=name)
