"""The part of a report that one load is: what all kinds have in it."""

from __future__ import annotations

from collections.abc import Sequence

from allosaur.report import Check, Headline, Part, Section, count, share
from allosaur.run._result import Result
from allosaur.run._verdict import Verdict, checks_of


def part_of(
    kind: str,
    result: Result,
    verdict: Verdict,
    headlines: Sequence[Headline],
    sections: Sequence[Section],
    checks: Sequence[Check] = (),
    hints: Sequence[str] | None = None,
) -> Part:
    """Return the part of a load of this kind; `checks` stand before its thresholds.

    Without `hints` they are those of the result.
    """
    return Part(
        name=kind,
        kind=kind,
        ok=verdict.ok,
        verdict=verdict.summary,
        headlines=headlines,
        sections=sections,
        checks=[*checks, *checks_of(verdict)],
        reasons=verdict.reasons,
        hints=result.hints if hints is None else hints,
        notes=[f"Warning: {warning}" for warning in result.all_warnings],
    )


def missed_headline(label: str, missed: int, offered: int) -> Headline:
    """Return how much of the load was late."""
    note = f"{share(missed, offered)} of the load" if missed else "the load was reached"
    return Headline(label, count(missed), note, missed > 0)


def errors_headline(errors: int) -> Headline:
    """Return how often something went wrong."""
    return Headline("Errors counted", count(errors), "" if errors else "all counters are zero", errors > 0)
