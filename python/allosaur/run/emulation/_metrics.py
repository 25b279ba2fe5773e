"""What thresholds of a run of emulated clients may be about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from allosaur.run._thresholds import COUNT, Document, Labels, Metric, Reading

Read = Callable[[Document, Labels], Sequence[Reading]]


def _clients(name: str) -> Read:
    return lambda document, _: [Reading(float(document["clients"][name]))]


def _errors(document: Document, _: Labels) -> Sequence[Reading]:
    return [Reading(float(sum(one["value"] for one in document["errors"])))]


METRICS: tuple[Metric, ...] = (
    Metric("clients", COUNT, "clients that are there", _clients("there"), decides="clients", gains=True),
    Metric(
        "clients.ready",
        COUNT,
        "clients that have their address and know their gateway",
        _clients("ready"),
        decides="ready",
        gains=True,
    ),
    Metric("errors", COUNT, "counters of errors of all plugins together", _errors, decides="errors"),
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
