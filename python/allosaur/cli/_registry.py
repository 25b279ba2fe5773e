"""The metrics of a server's registry, for people and for programs: any of them, also one that is new."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from allosaur.cli import _format, _parser
from allosaur.cli._errors import bad_input, explained

if TYPE_CHECKING:
    from allosaur import STLClient
    from allosaur.metrics import Metrics, Series, Value

PREFIX = "allosaur_"
"""What all names begin with; it need not be written."""


def read(client: STLClient, prefixes: Sequence[str]) -> Metrics:
    """Read the metrics whose names begin so. Raises :class:`CommandError`, also where none does."""
    wanted = [prefix if prefix.startswith(PREFIX) else PREFIX + prefix for prefix in prefixes]
    with explained("cannot read the metrics"):
        metrics = client.get_metrics(wanted)
        every = metrics if all(_known(one, metrics) for one in wanted) else client.get_metrics()
    for given, prefix in zip(prefixes, wanted, strict=True):
        if not _known(prefix, metrics):
            hint = _parser.nearest(prefix, every.families) or " (without PREFIX all are shown)"
            raise bad_input(f"--metrics {given}: no metric of the server begins so{hint}")
    return metrics


def _known(prefix: str, metrics: Metrics) -> bool:
    return any(name.startswith(prefix) for name in metrics.families)


def table(found: Sequence[Series]) -> str:
    """Return a table of series; those that must be zero and are not are marked."""
    if not found:
        return "There are no such series."
    rows = [
        [
            ("! " if one.is_wrong else "") + one.family.name.removeprefix(PREFIX),
            where(one),
            said(one.value),
            one.family.unit or "",
        ]
        for one in found
    ]
    return _format.table(("metric", "of", "value", "unit"), rows, texts=("metric", "of", "unit"))


def where(series: Series) -> str:
    """Return the labels that are not empty, as one writes them: `port=0 direction=tx`."""
    return " ".join(f"{name}={value}" for name, value in series.named_labels.items() if value)


def said(value: Value) -> str:
    """Return a value as people read it."""
    if isinstance(value, int):
        return _format.count(value)
    if isinstance(value, float):
        return _format.count(int(value)) if value.is_integer() else f"{value:,.6g}"
    mean = f", mean {value.sum / value.count:.4g}" if value.count else ""
    most = f", max {value.max:.4g}" if value.max is not None else ""
    return f"{_format.count(value.count)}{mean}{most}"


def objects(metrics: Metrics) -> dict[str, Any]:
    """Return metrics as plain data, by name."""
    return {
        name: {
            "kind": family.kind,
            "unit": family.unit,
            "help": family.help,
            "is_error": family.is_error,
            "series": [
                {"labels": one.named_labels, "value": _plain(one.value)} for one in metrics.described(name)
            ],
        }
        for name, family in metrics.families.items()
    }


def _plain(value: Value) -> Any:
    if isinstance(value, (int, float)):
        return value
    return {
        "count": value.count,
        "sum": value.sum,
        # JSON has no infinity: the last bucket has all.
        "buckets": [[bound if math.isfinite(bound) else None, count] for bound, count in value.buckets],
        "quantiles": {f"{share:g}": quantile for share, quantile in value.quantiles.items()},
        "min": value.min,
        "max": value.max,
    }
