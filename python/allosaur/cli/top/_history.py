"""Rates over the last minutes, for sparklines; and how fast counters grow that have no rate of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from allosaur.cli.top._snapshot import Flows, Snapshot

if TYPE_CHECKING:
    from allosaur.metrics import Metrics

Name = TypeVar("Name")
_KEPT = 300
_OF_SERVER = ("tx_pps", "rx_pps", "tx_bps", "rx_bps", "cpu_util", "rx_cpu_util", "tx_cps", "active_flows")
_OF_PORT = ("tx_pps", "rx_pps", "tx_bps", "rx_bps")
SERVER = None

Reading = tuple[str, tuple[str, ...]]
"""A series of the registry: the metric, and the values of its labels."""
Key = tuple[int | str | None, str]
"""Whose (the server's, a port's by its number, a group's as `g7`), and what."""


class History:
    """What snapshots told, one after the other."""

    def __init__(self) -> None:
        self._series: dict[Key, deque[float]] = {}
        self._last: Snapshot | None = None
        self._growth: dict[str, dict[str, float]] = {}
        self._rates: dict[Reading, float] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Take the next one. What a series lacked until now counts as zero."""
        values = _values(snapshot)
        length = max((len(one) for one in self._series.values()), default=0)
        for key in {*self._series, *values}:
            series = self._series.setdefault(key, deque([0.0] * length, maxlen=_KEPT))
            series.append(values.get(key, 0.0))
        self._growth = self._grown(snapshot)
        self._rates = self._of_registry(snapshot)
        self._last = snapshot

    def interrupt(self) -> None:
        """Begin counters anew: the server was away, and may be another one."""
        self._last, self._growth, self._rates = None, {}, {}

    def series(self, whose: int | str | None, what: str) -> list[float]:
        """Return all values that are kept, the oldest first."""
        return list(self._series.get((whose, what), ()))

    def growth(self, side: str, name: str) -> float | None:
        """Return how fast a counter of flows grows a second; `None` when that is not known."""
        return self._growth.get(side, {}).get(name)

    def rate(self, name: str, labels: tuple[str, ...]) -> float | None:
        """Return how fast a counter of the registry grows a second; `None` when that is not known."""
        return self._rates.get((name, labels))

    def _of_registry(self, snapshot: Snapshot) -> dict[Reading, float]:
        before = None if self._last is None else self._last.metrics
        now = snapshot.metrics
        if before is None or now is None or now.time_ns <= before.time_ns:
            return {}
        values = (_numbers(before), _numbers(now))
        return _rates(*values, (now.time_ns - before.time_ns) / 1e9)

    def _grown(self, snapshot: Snapshot) -> dict[str, dict[str, float]]:
        before = self._last.flows if self._last is not None else None
        now = snapshot.flows
        if self._last is None or before is None or now is None or before.of != now.of:
            return {}
        passed_s = snapshot.at_s - self._last.at_s
        if passed_s <= 0:
            return {}
        return {
            side: _rates(_counted(before, side), _counted(now, side), passed_s)
            for side in ("client", "server")
        }


def _counted(flows: Flows, side: str) -> dict[str, float]:
    """Return counters and outcomes of one side."""
    place = 0 if side == "client" else 1
    counters = flows.client if side == "client" else flows.server
    return {**counters, **{label: values[place] for label, values in flows.outcomes.items()}}


def _numbers(metrics: Metrics) -> dict[Reading, float]:
    return {(one.family.name, one.labels): one.number for one in metrics.described()}


def _rates(old: Mapping[Name, float], new: Mapping[Name, float], passed_s: float) -> dict[Name, float]:
    """A counter that is smaller than before was cleared, and has no rate."""
    grown = {name: value - old.get(name, 0) for name, value in new.items()}
    return {name: by / passed_s for name, by in grown.items() if by >= 0}


def _values(snapshot: Snapshot) -> dict[Key, float]:
    values: dict[Key, float] = {(SERVER, name): snapshot.totals.get(name, 0.0) for name in _OF_SERVER}
    for port in snapshot.ports:
        values.update({(port.number, name): port.counters.get(name, 0.0) for name in _OF_PORT})
    for group in snapshot.groups:
        values[f"g{group.number}", "tx_pps"] = group.tx_pps
        values[f"g{group.number}", "rx_pps"] = group.rx_pps
    return values
