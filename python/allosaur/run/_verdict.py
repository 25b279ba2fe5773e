"""Whether a run kept its promise: the rules of each kind of traffic, and thresholds in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, EXIT_SETUP
from allosaur.run._result import UNTIL_THEN, Result, Verdict
from allosaur.run._thresholds import NONE, Checked, Thresholds


def judge(result: Result, thresholds: Thresholds = NONE) -> Verdict:
    """Judge a result by the rules of its kind; what thresholds decide on is left to them."""
    reasons = [result.cut_short, UNTIL_THEN] if result.cut_short else result.reasons(thresholds)
    if reasons:
        return Verdict(False, "; ".join(reasons), reasons)
    return Verdict(True, result.praise())


def judge_by(thresholds: Thresholds, result: Result, document: Mapping[str, Any]) -> Verdict:
    """Judge the same, and whether each threshold held for the document of the run."""
    built_in = judge(result, thresholds)
    checked = thresholds.check(None if result.cut_short else document)
    if not checked:
        return built_in
    reasons = [*(str(one) for one in checked if not one.ok), *built_in.reasons]
    # What would have failed it, were it not that thresholds decide.
    allowed = [] if built_in.reasons else list(judge(result).reasons)
    if reasons:
        summary = "; ".join(reasons)
    else:
        went = f"{'; '.join(allowed)}, which the thresholds allow" if allowed else built_in.summary
        summary = f"{went}; {_held(checked)}"
    without = {"ok": built_in.ok, "verdict": built_in.summary, "allowed": allowed}
    return Verdict(not reasons, summary, reasons, checked, without)


def joined(verdicts: Mapping[str, Verdict], own: Sequence[Checked] = ()) -> Verdict:
    """Return the verdict of a run of several loads, by name: each that fails alone fails it.

    `own` are thresholds of the run as a whole.
    """
    if len(verdicts) == 1 and not own:
        return next(iter(verdicts.values()))
    reasons = [str(one) for one in own if not one.ok]
    reasons += [f"{name}: {reason}" for name, one in verdicts.items() for reason in one.reasons]
    checked = [*own, *(found for one in verdicts.values() for found in one.thresholds)]
    without = {name: dict(one.built_in) or one.to_json()["built_in"] for name, one in verdicts.items()}
    built_in = {
        "ok": all(one["ok"] for one in without.values()),
        "verdict": "; ".join(f"{name}: {one['verdict']}" for name, one in without.items()),
        "allowed": [f"{name}: {text}" for name, one in without.items() for text in one["allowed"]],
    }
    summary = "; ".join(reasons or [f"{name}: {one.summary}" for name, one in verdicts.items()])
    return Verdict(not reasons, summary, reasons, checked, built_in)


def exit_code(results: Sequence[Result], ok: bool) -> int:
    """Return what a run exits with."""
    signalled = next((one.exit_code for one in results if one.exit_code is not None), None)
    if signalled is not None:
        return signalled
    if any(one.cut_short for one in results):
        return EXIT_SETUP
    return EXIT_OK if ok else EXIT_FAILED


def _held(checked: Sequence[Checked]) -> str:
    if len(checked) > 1:
        return f"all {len(checked)} thresholds hold"
    return f"the threshold holds: {checked[0]}"
