"""The result of a run, for people and for programs: of one load, or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allosaur.cli import _format
from allosaur.cli._options import FOREVER
from allosaur.run import _thresholds
from allosaur.run._result import Result, Verdict


def text(result: Result, verdict: Verdict, more_hints: Sequence[str] = ()) -> str:
    """Return the tables of a load, what went wrong, the warnings, what to look at, and the verdict."""
    parts = ["\n\n".join(_tables(result.tables(), verdict)), ""]
    parts += [*_remarks(result), *(f"hint: {hint}" for hint in more_hints)]
    parts.append(result.ended())
    parts.append(_format.verdict(verdict.ok, f"{verdict.summary}."))
    return "\n".join(parts)


def text_of_several(
    results: Mapping[str, Result],
    verdicts: Mapping[str, Verdict],
    verdict: Verdict,
    more_hints: Sequence[str] = (),
) -> str:
    """Return one table of several loads, what is to be said of each, and one verdict."""
    rows = [
        [name, *result.brief(), _format.seconds(result.elapsed_s), "OK" if verdicts[name].ok else "FAILED"]
        for name, result in results.items()
    ]
    header = ["load", "did", "of it", "ran", ""]
    tables = [_format.table(header, rows, texts=header[:3])]
    parts = ["\n\n".join(_tables(tables, verdict)), ""]
    parts += [f"{name}: {line}" for name, result in results.items() for line in _remarks(result)]
    parts += [f"hint: {hint}" for hint in more_hints]
    parts.append(_format.verdict(verdict.ok, f"{verdict.summary}."))
    return "\n".join(parts)


def of_all(results: Sequence[Result]) -> dict[str, Any]:
    """Return what a document says of several loads together, by the names that it has for one."""
    asked = results[0].duration_asked_s
    return {
        "duration_asked_s": None if asked == FOREVER else asked,
        "duration_s": round(max(one.elapsed_s for one in results), 3),
        "interrupted": any(one.exit_code is not None for one in results),
        "cut_short": next((one.cut_short for one in results if one.cut_short), None),
    }


def document(result: Result, verdict: Verdict | None = None) -> dict[str, Any]:
    """Return the part of a JSON result that is of one load; docs/commands/run.md describes it.

    Without a verdict it is what thresholds read.
    """
    asked = result.duration_asked_s
    found = {
        "duration_asked_s": None if asked == FOREVER else asked,
        "duration_s": round(result.elapsed_s, 3),
        "interrupted": result.exit_code is not None,
        "cut_short": result.cut_short or None,
        **result.fields(),
        "warnings": result.all_warnings,
        "hints": list(result.hints),
    }
    return found if verdict is None else {**found, **verdict.to_json()}


def _tables(tables: Sequence[str], verdict: Verdict) -> list[str]:
    return [*tables, *([_thresholds.table(verdict.thresholds)] if verdict.thresholds else [])]


def _remarks(result: Result) -> list[str]:
    return [
        *result.alarms(),
        *(f"warning: {warning}" for warning in result.warnings),
        *(f"hint: {hint}" for hint in result.hints),
    ]
