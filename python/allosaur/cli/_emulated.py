"""What emulated clients count, in the server's registry of metrics: whatever plugins there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from allosaur.cli import _registry
from allosaur.metrics import MetricsReader

if TYPE_CHECKING:
    from allosaur import STLClient
    from allosaur.metrics import Metrics, Series

PREFIX = "allosaur_emulation_"
CLIENTS = f"{PREFIX}clients"
_STATE = {f"{PREFIX}namespaces": "namespaces", CLIENTS: "clients", f"{PREFIX}ready_clients": "ready"}
"""What there is now, with its word; all else is of plugins."""


def read(client: STLClient) -> Metrics | None:
    """Read what they count; `None` where the server has no registry, as TRex's. Raises `STLError`."""
    reader = MetricsReader(client, [PREFIX])
    return reader.read() if reader.is_told else None


def count(metrics: Metrics) -> int:
    """Return how many clients there are."""
    return int(sum(one.number for one in metrics.described(CLIENTS)))


def state(metrics: Metrics) -> list[Series]:
    """Return what there is now: namespaces, clients, those that are ready."""
    found = {one.family.name: one for one in _readings(metrics)}
    return [found[name] for name in _STATE if name in found]


def counters(metrics: Metrics) -> list[Series]:
    """Return what plugins counted and is not zero: first what must be zero, then by plugin."""
    found = [one for one in _readings(metrics) if one.family.name not in _STATE and one.value]
    return sorted(found, key=lambda one: not one.is_wrong)


def name(series: Series) -> str:
    """Return the name of a metric without what all have in common."""
    return series.family.name.removeprefix(PREFIX)


def said(metrics: Metrics) -> str:
    """Return what there is now in a line: `2 namespaces, 60 clients, 58 ready`."""
    return ", ".join(f"{_registry.said(one.value)} {_STATE[one.family.name]}" for one in state(metrics))


def _readings(metrics: Metrics) -> Iterator[Series]:
    return (one for one in metrics.described() if one.family.name.startswith(PREFIX))
