"""What a server counts, by the names that Prometheus has for it: what ``get_metrics`` returns.

    with STLClient() as client:
        metrics = client.get_metrics(["allosaur_port_"])
        sent = metrics.value("allosaur_port_packets", port=0, direction="tx")
        for (port, direction), packets in metrics.series("allosaur_port_packets").items():
            print(port, direction, packets)

The guide to metrics lists them. Names are without ``_total`` and ``_info``, and labels are strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["counter", "gauge", "histogram", "summary", "info"]
"""What the values of a metric are."""


@dataclass(frozen=True)
class MetricFamily:
    """What a metric is."""

    name: str
    """Its name, such as ``allosaur_port_packets``."""
    kind: Kind
    """``counter``, ``gauge``, ``histogram``, ``summary`` or ``info``."""
    unit: str | None
    """What its values are counted in; None where they are just times that something happened."""
    labels: tuple[str, ...]
    """The names of its labels, in the order in which series have their values."""
    help: str
    """What it says."""
    is_error: bool
    """Whether it stays zero in a run in which nothing goes wrong."""


@dataclass(frozen=True)
class Distribution:
    """Many values, and what is known of how they are distributed."""

    count: int
    """How many there are."""
    sum: float
    """Their sum."""
    buckets: tuple[tuple[float, int], ...] = ()
    """Upper bounds in rising order, and how many values are at most so large; none of a summary."""
    quantiles: Mapping[float, float] = field(default_factory=dict)
    """The values that shares of them do not exceed, such as 0.99, where they are known."""
    min: float | None = None
    """The smallest, where it is known."""
    max: float | None = None
    """The largest, where it is known."""

    @classmethod
    def from_reply(cls, value: Mapping[str, Any]) -> Distribution:
        """What the server says of them."""
        return cls(
            count=value["count"],
            sum=value["sum"],
            buckets=tuple((bound, count) for bound, count in value.get("buckets", ())),
            quantiles={float(share): quantile for share, quantile in value.get("quantiles", {}).items()},
            min=value.get("min"),
            max=value.get("max"),
        )


Value = int | float | Distribution
"""The value of a series: a number, 1 of an ``info``, a distribution of a ``histogram`` or a ``summary``."""


@dataclass(frozen=True)
class Series:
    """One series of a metric."""

    family: MetricFamily
    labels: tuple[str, ...]
    """The values of its labels, in the order of the family."""
    value: Value

    @property
    def named_labels(self) -> dict[str, str]:
        """The values of its labels, by their names."""
        return dict(zip(self.family.labels, self.labels, strict=True))

    @property
    def number(self) -> float:
        """Its value; of a distribution how many values it has."""
        return self.value if isinstance(self.value, (int, float)) else self.value.count

    @property
    def is_wrong(self) -> bool:
        """Whether it stays zero where nothing goes wrong, and is not zero."""
        return self.family.is_error and bool(self.number)


@dataclass(frozen=True)
class Metrics:
    """What a server had counted at a time."""

    time_ns: int
    """The server's time, which only grows; that of another reading makes a rate."""
    families: Mapping[str, MetricFamily]
    """What the metrics are, by name, also of those without series; empty if nobody asked for it."""
    values: Mapping[str, Mapping[tuple[str, ...], Value]]
    """The series of each metric that has any: by the values of its labels."""

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Metrics:
        """What the server answers to ``get_metrics``."""
        families = {
            name: MetricFamily(
                name=name,
                kind=about["kind"],
                unit=about["unit"],
                labels=tuple(about["labels"]),
                help=about["help"],
                is_error=about["is_error"],
            )
            for name, about in reply["families"].items()
        }
        values = {
            name: {tuple(labels): _value(value) for labels, value in series}
            for name, series in reply["metrics"].items()
        }
        return cls(reply["time_ns"], families, values)

    def series(self, name: str) -> Mapping[tuple[str, ...], Value]:
        """The series of a metric by the values of its labels; none of one that has none."""
        return self.values.get(name, {})

    def described(self, name: str | None = None) -> Iterator[Series]:
        """The series of a metric, or of all in ``families``, each with what it is."""
        for one in self.families if name is None else {name} & self.families.keys():
            for labels, value in self.series(one).items():
                yield Series(self.families[one], labels, value)

    def since(self, earlier: Metrics) -> Metrics:
        """What was counted since an earlier reading: counters less what they were then, all else as it is.

        A counter that is smaller than it was began anew in between, and is as it is.
        """
        return replace(self, values={name: self._grown(name, earlier) for name in self.values})

    def _grown(self, name: str, earlier: Metrics) -> dict[tuple[str, ...], Value]:
        family = self.families.get(name)
        before = earlier.series(name) if family is not None and family.kind == "counter" else {}
        grown: dict[tuple[str, ...], Value] = {}
        for labels, value in self.series(name).items():
            old = before.get(labels, 0)
            are_numbers = isinstance(value, (int, float)) and isinstance(old, (int, float))
            grown[labels] = value - old if are_numbers and old <= value else value  # type: ignore[operator]
        return grown

    def value(self, name: str, **labels: object) -> Value | None:
        """The value of one series: that with these labels, all of them. None if there is no such series.

        The names of labels are those of ``families``, which must have been asked for if there are labels.
        Raises ``KeyError`` when the metric has no such label.
        """
        names = self.families[name].labels if labels else ()
        unknown = sorted(set(labels) - set(names))
        if unknown:
            raise KeyError(f"{name} has no label {', '.join(unknown)}: it has {', '.join(names) or 'none'}")
        missing = [label for label in names if label not in labels]
        if missing:
            raise KeyError(f"{name} needs the label {', '.join(missing)}, too")
        return self.series(name).get(tuple(str(labels[label]) for label in names))


def _value(value: Any) -> Value:
    return Distribution.from_reply(value) if isinstance(value, dict) else value


class MetricsReader:
    """Reads the metrics of a server, by any client of it, again and again; what they are is asked once."""

    def __init__(self, client: Any, prefixes: Sequence[str] | None = None) -> None:
        self._client = client
        self._prefixes = prefixes
        self._families: Mapping[str, MetricFamily] | None = None

    @property
    def is_told(self) -> bool:
        """Whether the server tells its metrics; one of TRex's does not."""
        return "get_metrics" in self._client.get_server_supported_cmds()

    def read(self) -> Metrics:
        """What the server has counted."""
        is_first = self._families is None
        metrics: Metrics = self._client.get_metrics(self._prefixes, families=is_first)
        if self._families is None:
            self._families = metrics.families
        return replace(metrics, families=self._families)
