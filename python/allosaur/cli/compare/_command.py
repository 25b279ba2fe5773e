"""What `allosaur compare` does: it reads two results of the same command, and says whether one is worse."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allosaur.cli import _format, _result
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input
from allosaur.cli.compare import _limits, _metrics
from allosaur.cli.compare._rows import Row, table

_KINDS = {"ndr": (_limits, "cases"), "run": (_metrics, "verdict")}
"""The commands whose results can be compared: who knows them, and a key that each such result has."""


def run(options: argparse.Namespace) -> int:
    """Compare two files; return the exit code."""
    before, after = read(Path(options.before)), read(Path(options.after))
    command = before["command"]
    if after["command"] != command:
        raise bad_input(
            f"{options.before} is a result of `allosaur {command}`, and {options.after} one of "
            f"`allosaur {after['command']}`: compare two of the same"
        )
    kind, _ = _KINDS[command]
    rows = list(kind.rows(before, after, options.tolerance))
    if not rows:
        raise bad_input(f"{options.before} and {options.after} {kind.NOTHING}")
    worse = [row for row in rows if row.is_worse]
    failed = bool(before.get("ok", True)) and not after.get("ok", True) and command == "run"
    verdict = _verdict(rows, worse, kind.NOUN, str(after["verdict"]) if failed else "")
    unlike = differences(before, after, kind.ALIKE)
    if options.json:
        fields = {
            **_result.heading("compare"),
            "before": str(options.before),
            "after": str(options.after),
            kind.NOUN[1]: kind.objects(rows, before),
            "differences": unlike,
            "ok": not worse and not failed,
            "verdict": verdict,
        }
        print(json.dumps(fields, indent=2))
    else:
        said = [f"warning: not measured alike: {one}" for one in unlike]
        print("\n".join([table(rows), "", *said, _format.verdict(not worse and not failed, f"{verdict}.")]))
    return EXIT_FAILED if worse or failed else EXIT_OK


def read(path: Path) -> dict[str, Any]:
    """Read a result. Raises :class:`CommandError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_input(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise bad_input(f"{path}: not JSON: {error}") from error
    known = _KINDS.get(value.get("command", "")) if isinstance(value, dict) else None
    if known is None or known[1] not in value:
        raise bad_input(
            f"{path}: no result of `allosaur run` or `allosaur ndr`; make one with "
            f"`allosaur run PROFILE --out {path}`"
        )
    if value.get("schema") != _result.SCHEMA:
        raise bad_input(
            f"{path}: has schema {value.get('schema')}, and this is for {_result.SCHEMA}; measure again"
        )
    return dict(value)


def differences(before: Mapping[str, Any], after: Mapping[str, Any], alike: tuple[str, ...]) -> list[str]:
    """Return what was not measured alike."""
    found = []
    for name in alike:
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


def _verdict(rows: list[Row], worse: list[Row], noun: tuple[str, str], failed: str) -> str:
    said = f"the second run failed: {failed}; " if failed else ""
    if not worse:
        return f"{said}none of {len(rows)} {noun[1]} is worse"
    changes = ", ".join(f"{row.name} ({_why(row)})" for row in worse)
    return f"{said}{len(worse)} of {len(rows)} {noun[1]} are worse: {changes}"


def _why(row: Row) -> str:
    """Return the change, or where there is no share of nothing, both values."""
    if row.before is None or row.after is None or row.change is not None:
        return row.change_text
    return f"{row.shown(row.before)} to {row.shown(row.after)}"
