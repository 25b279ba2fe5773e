"""What a search found, as a table for spreadsheets: a row for each limit, trial and point."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from allosaur.cli.ndr._result import CaseResult
from allosaur.search import Trial

COLUMNS = (
    *("case", "kind", "name", "unit", "load", "upper", "throughput", "bps_l1", "line_percent", "duration_s"),
    *("offered", "lost", "loss_ratio", "passed", "latency_average_us", "latency_p99_us", "latency_max_us"),
)


def text(results: Sequence[CaseResult]) -> str:
    """Return the table, with a header."""
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in results:
        for row in _rows(one):
            writer.writerow({"case": one.case.name, "unit": one.scale.unit, **row})
    return written.getvalue()


def _rows(result: CaseResult) -> Iterator[dict[str, Any]]:
    for bounds in result.bounds:
        yield {
            "kind": "limit",
            "name": bounds.goal.name,
            "upper": bounds.upper,
            "throughput": bounds.throughput,
            "loss_ratio": bounds.goal.loss_ratio,
            "passed": bounds.is_complete and bounds.lower is not None,
            **_load(result, bounds.lower),
        }
    for number, trial in enumerate(result.trials, 1):
        yield {"kind": "trial", "name": number, **_trial(result, trial)}
    for share, trial in result.points:
        yield {"kind": "point", "name": f"{100 * share:g} %", **_trial(result, trial)}


def _trial(result: CaseResult, trial: Trial) -> dict[str, Any]:
    times = trial.details.get("latency") or {}
    return {
        "duration_s": trial.duration_s,
        "offered": trial.offered,
        "lost": trial.lost,
        "loss_ratio": trial.loss_ratio,
        "passed": "" if not trial.failures else False,
        **{f"latency_{name}": times.get(name) for name in ("average_us", "p99_us", "max_us")},
        **_load(result, trial.load),
    }


def _load(result: CaseResult, load: float | None) -> dict[str, Any]:
    rates = result.scale.rates(load) or {}
    return {name: rates.get(name) for name in ("load", "bps_l1", "line_percent")}
