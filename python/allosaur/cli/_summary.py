"""The result of a run, for people and for programs."""

from __future__ import annotations

from typing import Any

from allosaur.cli import _format
from allosaur.cli._options import FOREVER
from allosaur.cli._traffic import Outcome, Verdict
from allosaur.report import PortCounters

_ROWS = (
    ("offered packets", "offered_packets"),
    ("sent packets", "tx_packets"),
    ("sent bytes", "tx_bytes"),
    ("received packets", "rx_packets"),
    ("received bytes", "rx_bytes"),
    ("missed packets", "missed_packets"),
    ("queue full", "queue_full"),
    ("lost by the link", "rx_lost_packets"),
)


def text(outcome: Outcome, verdict: Verdict) -> str:
    """Return the table of totals, the warnings and the verdict."""
    lines = [totals(outcome), ""]
    lines += [f"warning: {warning}" for warning in outcome.warnings]
    lost, missed = _format.count(verdict.lost_packets), _format.count(verdict.missed_packets)
    lines.append(f"Ran {_format.seconds(outcome.elapsed_s)}; lost {lost}, missed {missed}.")
    lines.append(f"{'OK' if verdict.ok else 'FAILED'}: {verdict.summary}.")
    return "\n".join(lines)


def totals(outcome: Outcome) -> str:
    """Return the table of what each port counted, and its average rates."""
    columns = [(f"port {port}", counters) for port, counters in sorted(outcome.counters.items())]
    if len(columns) > 1:
        columns.append(("total", outcome.total))
    header = ["", *(name for name, _ in columns)]
    rows = [
        [label, *(_format.count(getattr(counters, name)) for _, counters in columns)] for label, name in _ROWS
    ]
    rows += [
        [
            label,
            *(_format.rate(_average(counters, kind, outcome.elapsed_s), unit) for _, counters in columns),
        ]
        for label, kind, unit in _RATES
    ]
    return _format.table(header, rows)


_RATES = (
    ("offered rate", "offered_pps", "pps"),
    ("sent rate", "tx_pps", "pps"),
    ("", "tx_bps", "bps"),
    ("received rate", "rx_pps", "pps"),
    ("", "rx_bps", "bps"),
)


def json_object(outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """Return the part of a JSON result that every run has; docs/guide/command-line.md describes it."""
    asked = outcome.plan.duration_s
    return {
        "multiplier": outcome.plan.multiplier,
        "duration_asked_s": None if asked == FOREVER else asked,
        "duration_s": round(outcome.elapsed_s, 3),
        "interrupted": outcome.exit_code is not None,
        "ports": {
            str(port): _with_rates(one, outcome.elapsed_s) for port, one in sorted(outcome.counters.items())
        },
        "total": _with_rates(outcome.total, outcome.elapsed_s),
        "lost_packets": verdict.lost_packets,
        "missed_packets": verdict.missed_packets,
        "warnings": list(outcome.warnings),
        "ok": verdict.ok,
        "verdict": verdict.summary,
    }


def _with_rates(counters: PortCounters, elapsed_s: float) -> dict[str, Any]:
    rates = {kind: round(_average(counters, kind, elapsed_s), 1) for _, kind, _ in _RATES}
    return {**counters.to_json(), **rates}


def _average(counters: PortCounters, kind: str, elapsed_s: float) -> float:
    """Return an average over the run, of layer 2 with FCS."""
    amount = {
        "offered_pps": counters.offered_packets,
        "tx_pps": counters.tx_packets,
        "tx_bps": counters.tx_bytes * 8,
        "rx_pps": counters.rx_packets,
        "rx_bps": counters.rx_bytes * 8,
    }[kind]
    return amount / elapsed_s if elapsed_s > 0 else 0.0
