"""Metrics as OpenTelemetry's collectors take them: OTLP 1.x over HTTP, in JSON. No input, no output.

The protocol: https://opentelemetry.io/docs/specs/otlp/ (its JSON has 64-bit numbers as texts, and enums
as numbers). How OpenMetrics becomes OTLP:
https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.

Names stay as Prometheus has them, so that the same queries work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.samples import Sample

Json = dict[str, Any]
Labels = tuple[tuple[str, str], ...]

CUMULATIVE = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE."""
_UNITS = {"seconds": "s", "bytes": "By"}
"""Units of OpenMetrics in those of UCUM, which OTLP has."""


class Readings:
    """Makes one document of each reading of a server, and remembers when each series began.

    A series that falls has begun anew: its beginning is then the reading before (OpenTelemetry's data
    model, "Cumulative streams: handling resets").
    """

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._server_start_ns = 0
        self._uptime_s = math.inf
        self._before_ns = 0
        self._known: dict[tuple[str, Labels], tuple[int, float]] = {}
        """Of each series that only grows: when it began, and its value at the reading before."""
        self._now: dict[tuple[str, Labels], tuple[int, float]] = {}

    def document(self, families: Iterable[Metric], now_ns: int) -> Json:
        """Return the request of `ExportMetricsService` for a reading at a time, ns since 1970."""
        families = list(families)
        self._note_start(families, now_ns)
        self._now = {}
        metrics = [metric for family in families if (metric := self._metric(family, now_ns))]
        self._known, self._before_ns = self._now, now_ns
        version = _label(families, "allosaur_build", "version")
        resource = {
            "service.name": "allosaur",
            "service.instance.id": self._instance,
            "service.version": version,
        }
        scope = {"scope": {"name": "allosaur", "version": version}, "metrics": metrics}
        return {
            "resourceMetrics": [
                {"resource": {"attributes": _attributes(resource.items())}, "scopeMetrics": [scope]}
            ]
        }

    def _note_start(self, families: list[Metric], now_ns: int) -> None:
        uptime = next((one.samples for one in families if one.name == "allosaur_uptime_seconds"), None)
        uptime_s = uptime[0].value if uptime else 0.0
        if uptime_s < self._uptime_s:  # the first reading, or another server since
            self._server_start_ns = now_ns - int(uptime_s * 1e9)
            self._known = {}
        self._uptime_s = uptime_s

    def _metric(self, family: Metric, now_ns: int) -> Json | None:
        if not family.samples:
            return None
        metric: Json = {
            "name": family.samples[0].name,
            "description": family.documentation,
            "unit": _UNITS.get(family.unit, ""),
        }
        time = {"timeUnixNano": str(now_ns)}
        if family.type == "counter":
            points = [{**self._since(one.name, one), **time, **_number(one)} for one in family.samples]
            metric["sum"] = _sum(points, is_monotonic=True)
        elif family.type == "info":
            points = [{**_of(one.labels), **time, **_number(one)} for one in family.samples]
            metric["sum"] = _sum(points, is_monotonic=False)
        elif family.type in ("histogram", "summary"):
            metric["name"] = family.name
            of_series = [self._distribution(family, series) for series in _series(family)]
            points = [{**time, **one} for one in of_series]
            metric[family.type] = {"dataPoints": points}
            if family.type == "histogram":
                metric["histogram"]["aggregationTemporality"] = CUMULATIVE
        else:
            metric["gauge"] = {
                "dataPoints": [{**_of(one.labels), **time, **_number(one)} for one in family.samples]
            }
        return metric

    def _distribution(self, family: Metric, series: Mapping[str, list[Sample]]) -> Json:
        """Return a point of a histogram or of a summary: the samples of a series by what they end with."""
        count, total = series["_count"][0], series["_sum"][0]
        point = {**self._since(family.name, count), "count": str(int(count.value)), "sum": total.value}
        if family.type == "histogram":
            buckets = [(float(one.labels["le"]), int(one.value)) for one in series["_bucket"]]
            buckets.sort()
            below = [0, *(packets for _, packets in buckets)]
            point["explicitBounds"] = [bound for bound, _ in buckets if math.isfinite(bound)]
            point["bucketCounts"] = [str(after - before) for before, after in pairwise(below)]
        return point

    def _since(self, name: str, sample: Sample) -> Json:
        """Return labels and beginning of a series, and remember where it is."""
        key = (name, tuple(sample.labels.items()))
        start_ns, before = self._known.get(key, (self._server_start_ns, 0.0))
        if sample.value < before:
            start_ns = self._before_ns
        self._now[key] = (start_ns, sample.value)
        return {**_of(sample.labels), "startTimeUnixNano": str(start_ns)}


def points(document: Json) -> int:
    """Return how many series a document has."""
    count = 0
    for resource in document["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                kind = next(kind for kind in ("sum", "gauge", "histogram", "summary") if kind in metric)
                count += len(metric[kind]["dataPoints"])
    return count


def _sum(points: list[Json], is_monotonic: bool) -> Json:
    return {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": is_monotonic}


def _series(family: Metric) -> list[dict[str, list[Sample]]]:
    """Return the samples of each series of a histogram or summary, by what their names end with."""
    series: dict[Labels, dict[str, list[Sample]]] = {}
    for sample in family.samples:
        labels = tuple(label for label in sample.labels.items() if label[0] != "le")
        of_one = series.setdefault(labels, {})
        of_one.setdefault(sample.name.removeprefix(family.name), []).append(sample)
    return list(series.values())


def _number(sample: Sample) -> Json:
    # A number without a fraction is whole in the text, too.
    return {"asInt": str(sample.value)} if isinstance(sample.value, int) else {"asDouble": sample.value}


def _of(labels: Mapping[str, str]) -> Json:
    return {"attributes": _attributes((name, value) for name, value in labels.items() if value)}


def _attributes(pairs: Iterable[tuple[str, str]]) -> list[Json]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in pairs]


def _label(families: list[Metric], family: str, label: str) -> str:
    samples = next((one.samples for one in families if one.name == family), [])
    return samples[0].labels.get(label, "") if samples else ""
