"""The registry of metrics of ``allosaur.testing``: what the mock counts, by the names that a server has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Value = int | float | dict[str, Any]
Series = Mapping[tuple[str, ...], Value]


@dataclass(frozen=True)
class MockMetric:
    """A metric of a mock server: what it is, and its series by the values of their labels."""

    kind: str = "counter"
    """``counter``, ``gauge``, ``histogram``, ``summary`` or ``info``."""
    labels: tuple[str, ...] = ()
    series: Series = field(default_factory=dict)
    help: str = ""
    unit: str | None = None
    is_error: bool = False

    def family(self) -> dict[str, Any]:
        """Say what it is, as ``get_metrics`` does."""
        described = {"kind": self.kind, "unit": self.unit, "labels": list(self.labels)}
        return {**described, "help": self.help, "is_error": self.is_error}


_DIRECTIONS = {"packets": ("opackets", "ipackets"), "bytes": ("obytes", "ibytes")}
_PROBLEMS = {
    "missed_packets": ("missed_packets", "packets", True),
    "queue_full": ("queue_full", None, False),
    "tx_lost_packets": ("oerrors", "packets", True),
    "rx_lost_packets": ("rx_lost_packets", "packets", True),
}


def of_ports(ports: Mapping[int, Mapping[str, Any]]) -> dict[str, MockMetric]:
    """Return the metrics of ports, of what ``get_port_stats`` tells of each."""
    found = {}
    for unit, keys in _DIRECTIONS.items():
        series: Series = {
            (str(port), direction): int(stats.get(key, 0))
            for port, stats in ports.items()
            for direction, key in zip(("tx", "rx"), keys, strict=True)
        }
        found[f"allosaur_port_{unit}"] = MockMetric("counter", ("port", "direction"), series, unit=unit)
    for name, (key, unit_of, is_error) in _PROBLEMS.items():
        of_port: Series = {(str(port),): int(stats.get(key, 0)) for port, stats in ports.items()}
        found[f"allosaur_port_{name}"] = MockMetric(
            "counter", ("port",), of_port, unit=unit_of, is_error=is_error
        )
    return found


def of_flows(
    profiles: Iterable[str],
    counters: Mapping[str, Mapping[str, float]],
    outcomes: Mapping[str, Mapping[str, int]],
    known: Iterable[tuple[str, bool, bool]],
) -> dict[str, MockMetric]:
    """Return the metrics of flows: each profile has the same counters. ``known`` has name, gauge, error."""
    labels, found = ("profile", "template", "side"), {}
    profiles = list(profiles)
    for name, is_gauge, is_error in known:
        series: Series = {
            (profile, "", side): values.get(name, 0)
            for profile in profiles
            for side, values in counters.items()
        }
        metric = MockMetric("gauge" if is_gauge else "counter", labels, series, is_error=is_error)
        found[_RENAMED.get(name, f"allosaur_{name}")] = metric
    ended: Series = {
        (profile, side, outcome): count
        for profile in profiles
        for side, of_side in outcomes.items()
        for outcome, count in of_side.items()
        if outcome != "unanswered" and not outcome.startswith("http_")
    }
    found["allosaur_flow_outcomes"] = MockMetric(
        "counter", ("profile", "side", "outcome"), ended, unit="flows"
    )
    return found


_RENAMED = {"m_active_flows": "allosaur_active_flows", "m_est_flows": "allosaur_established_flows"}


def reply(metrics: Mapping[str, MockMetric], params: Mapping[str, Any], time_ns: int) -> dict[str, Any]:
    """Answer ``get_metrics``."""
    prefixes = tuple(params.get("prefixes") or ("",))
    wanted = {name: one for name, one in metrics.items() if name.startswith(prefixes)}
    families = {name: one.family() for name, one in wanted.items()}
    return {
        "time_ns": time_ns,
        "families": families if params.get("families") is not False else {},
        "metrics": {
            name: [[list(labels), value] for labels, value in one.series.items()]
            for name, one in wanted.items()
            if one.series
        },
    }
