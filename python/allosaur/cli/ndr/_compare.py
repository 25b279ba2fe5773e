"""What `allosaur compare` does: two results of `allosaur ndr` beside each other, and whether one is worse."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allosaur.cli import _format, _result
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input

_SAME, _BETTER, _WORSE, _MISSING = "same", "better", "worse", "missing"


@dataclass(frozen=True)
class Row:
    """One limit of both results."""

    case: str
    goal: str
    unit: str
    before: float | None
    after: float | None
    tolerance: float
    """The share of a difference that says nothing."""

    @property
    def change(self) -> float | None:
        """The difference, as a share of what it was."""
        return None if not self.before or self.after is None else self.after / self.before - 1

    @property
    def word(self) -> str:
        """What the difference is worth."""
        if self.before is None or self.after is None:
            # What never passed cannot become worse.
            return _SAME if self.before is self.after else _BETTER if self.before is None else _MISSING
        change = self.change or 0.0
        if abs(change) <= self.tolerance:
            return _SAME
        return _BETTER if change > 0 else _WORSE


def run(options: argparse.Namespace) -> int:
    """Compare two files; return the exit code."""
    before, after = read(Path(options.before)), read(Path(options.after))
    rows = list(_rows(before, after, options.tolerance))
    if not rows:
        raise bad_input(f"{options.before} and {options.after} have no case and goal in common")
    worse = [row for row in rows if row.word in (_WORSE, _MISSING)]
    verdict = (
        f"{len(worse)} of {len(rows)} limits are worse: "
        + ", ".join(f"{row.case} {row.goal} ({_change(row)})" for row in worse)
        if worse
        else f"none of {len(rows)} limits is worse"
    )
    if options.json:
        fields = {
            **_result.heading("compare"),
            "before": str(options.before),
            "after": str(options.after),
            "limits": [{**asdict(row), "change": row.change, "result": row.word} for row in rows],
            "differences": differences(before, after),
            "ok": not worse,
            "verdict": verdict,
        }
        print(json.dumps(fields, indent=2))
    else:
        print(_text(rows, differences(before, after), verdict))
    return EXIT_FAILED if worse else EXIT_OK


def read(path: Path) -> dict[str, Any]:
    """Read a result. Raises :class:`CommandError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_input(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise bad_input(f"{path}: not JSON: {error}") from error
    if (
        not isinstance(value, dict)
        or value.get("command") != "ndr"
        or not isinstance(value.get("cases"), list)
    ):
        raise bad_input(
            f"{path}: no result of `allosaur ndr`; make one with `allosaur ndr PROFILE --out {path}`"
        )
    if value.get("schema") != _result.SCHEMA:
        raise bad_input(
            f"{path}: has schema {value.get('schema')}, and this is for {_result.SCHEMA}; measure again"
        )
    return value


def _rows(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float | None) -> Iterator[Row]:
    limits_after = _limits(after)
    for key, (unit, limit) in _limits(before).items():
        other = limits_after.get(key, (unit, {}))[1]
        share = tolerance if tolerance is not None else _width(limit) + _width(other)
        yield Row(*key, unit, _load(limit), _load(other), share)


def _limits(result: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, Mapping[str, Any]]]:
    return {
        (case["name"], limit["goal"]): (case["unit"], limit)
        for case in result["cases"]
        for limit in case["limits"]
    }


def _load(limit: Mapping[str, Any]) -> float | None:
    bound = limit.get("lower")
    return None if bound is None else float(bound["load"])


def _width(limit: Mapping[str, Any]) -> float:
    """Return how far the bounds of a limit are apart: what a measurement cannot tell."""
    low, high = limit.get("lower"), limit.get("upper")
    return (high["load"] - low["load"]) / high["load"] if low and high else 0.0


_COMPARED = ("profile", "tunables", "mode", "ports", "search")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what was not measured alike."""
    found = []
    for name in _COMPARED:
        one, other = before.get(name), after.get(name)
        if name == "search" and isinstance(one, dict) and isinstance(other, dict):
            found += [
                f"{key}: {one.get(key)} and {other.get(key)}"
                for key in {**one, **other}
                if one.get(key) != other.get(key)
            ]
        elif one != other:
            found.append(f"{name}: {one} and {other}")
    return found


def _text(rows: list[Row], unlike: list[str], verdict: str) -> str:
    cells = [
        [f"{row.case} {row.goal}", _said(row, row.before), _said(row, row.after), _change(row), row.word]
        for row in rows
    ]
    parts = [_format.table(["", "before", "after", "change", ""], cells), ""]
    parts += [f"warning: not measured alike: {one}" for one in unlike]
    ok = not any(row.word in (_WORSE, _MISSING) for row in rows)
    return "\n".join([*parts, _format.verdict(ok, f"{verdict}.")])


def _said(row: Row, load: float | None) -> str:
    if load is None:
        return "-"
    return _format.rate(load, "pps") if row.unit == "pps" else f"{load:,.4g} times"


def _change(row: Row) -> str:
    return "-" if row.change is None else f"{100 * row.change:+.2f} %"
