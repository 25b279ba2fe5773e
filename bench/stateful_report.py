"""Tables and charts of `stateful.py`: what each case shows of its rows, on the terminal and as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from allosaur.cli import _format
from allosaur.report._model import Chart, Part, Report, Section, Series, Table, number, text
from allosaur.report._numbers import short
from allosaur.report._page import write_report
from allosaur.report._scale import linear_axis
from common import Result
from rich.console import Console


class Column(NamedTuple):
    """A column: its title, the key of its number in a row, and how it is said."""

    title: str
    key: str
    say: Callable[[Any], str]


Columns = Sequence[Column]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _one(value: float) -> str:
    return f"{value:,.1f}"


def _two(value: float) -> str:
    return f"{value:,.2f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _giga(value: float) -> str:
    return f"{value / 1e9:,.2f}"


def _mega(value: float) -> str:
    return f"{value / 1e6:,.2f}"


def _counts(errors: Mapping[str, int]) -> str:
    """Say the largest, and how many more there are."""
    if not errors:
        return "none"
    largest = max(errors, key=lambda name: errors[name])
    more = f" (+{len(errors) - 1})" if len(errors) > 1 else ""
    return f"{largest} {errors[largest]:,}{more}"


_FLOWS = (
    Column("flows/s", "cps", _whole),
    Column("a s that ran", "cps_running", _whole),
    Column("per testpmd Mpps", "per_mpps", _whole),
    Column("CPU", "cpu", _percent),
    Column("µs/flow", "cpu_us", _two),
)
_LOAD = (Column("Gb/s", "bps", _giga), Column("Mpps", "pps", _mega))
_ENDS = (
    Column("missed", "missed", _whole),
    Column("drops", "drops", _whole),
    Column("errors", "errors", _counts),
    Column("others ran", "waited", _percent),
    Column("steal", "steal", _percent),
)
_ACTIVE = (
    Column("active", "active_flows_max", _whole),
    Column("MB", "memory_bytes", lambda v: f"{v / 1e6:,.0f}"),
)
YARDSTICK: Columns = (Column("Mpps", "mpps", _one),)
PAPER: Columns = (*_FLOWS, *_LOAD, *_ACTIVE, *_ENDS)
SIZES: Columns = (*_FLOWS, Column("of memory's", "of_memory", _percent), *_LOAD, *_ACTIVE, *_ENDS)
OVERLOAD: Columns = (
    Column("offered/s", "offered_cps", _whole),
    Column("flows/s", "cps", _whole),
    Column("a s that ran", "cps_running", _whole),
    Column("of the best", "of_best", _percent),
    *(Column("CPU", "cpu", _percent), Column("active", "active_flows", _whole)),
    *_ENDS,
)
OPEN: Columns = (
    *_ACTIVE,
    Column("B/end", "bytes_per_end", _one),
    Column("by bench", "bytes_per_end_by_server", _one),
    *(Column("flows/s", "cps", _whole), Column("CPU", "cpu", _percent)),
    *_ENDS,
)
WEB: Columns = (
    Column("connections/s", "cps", _whole),
    *(Column("own CPU", "own", _percent), Column("own µs", "own_us", _one)),
    Column("apart µs", "own_apart_us", _one),
    *(Column("nginx CPU", "nginx", _percent), Column("nginx µs", "nginx_us", _one)),
    *(Column("wrk CPU", "wrk", _percent), Column("wrk µs", "wrk_us", _one)),
)
CORES: Columns = (
    Column("flows/s", "cps", _whole),
    *(Column("if all ran", "together_cps", _whole), Column("of one", "together_ratio", _two)),
    *(Column("apart, if all ran", "apart_cps", _whole), Column("of one", "apart_ratio", _two)),
    *(Column("CPU", "cpu", _percent), Column("steal", "steal", _percent)),
)


def cell(column: Column, row: Mapping[str, Any]) -> str:
    """Return a number as text, and nothing where it was not measured."""
    value = row.get(column.key)
    return "" if value is None else column.say(value)


def shown(columns: Columns, rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns that some row has a number for."""
    return [column for column in columns if any(row.get(column.key) is not None for row in rows)]


def show(case: Result, columns: Columns, console: Console) -> None:
    """Print the table of a case, and why something is not in it."""
    rows = [row for row in case["rows"] if "not_run" not in row]
    if rows:
        wanted = shown(columns, rows)
        cells = [[row["what"], *(cell(column, row) for column in wanted)] for row in rows]
        print(f"\n{case['title']}\n")
        print(_format.table(["", *(column.title for column in wanted)], cells, console.width))
    for line in problems(case):
        print(line)


def problems(case: Result) -> list[str]:
    """Return why a case, or a row of it, was not measured."""
    lines = [f"{case['name']}: not measured: {case['not_run']}"] if "not_run" in case else []
    lines += [f"{row['what']}: not measured: {row['not_run']}" for row in case["rows"] if "not_run" in row]
    return lines + ([f"{case['name']}: failed: {case['failed']}"] if "failed" in case else [])


def write(path: Path, results: Result, columns: Mapping[str, Columns]) -> None:
    """Write the HTML report of what is known so far."""
    cases = results["cases"]
    failed = [line for case in cases for line in problems(case) if "failed" in case]
    part = Part(
        name="flows",
        kind="flows",
        ok=not failed,
        sections=[_section(case, columns[case["name"]]) for case in cases],
        notes=["Rates are per second that the data threads ran, where the title of a column says so."],
    )
    verdict = "; ".join(failed) or "all cases that can run here were measured"
    facts = {name: str(value) for name, value in results["machine"].items()}
    report = Report("Flows at scale", verdict, not failed, facts | {"server": results["binary"]}, [part])
    write_report(path, report)


def _section(case: Result, columns: Columns) -> Section:
    rows = [row for row in case["rows"] if "not_run" not in row]
    wanted = shown(columns, rows)
    cells = [[row["what"], *(cell(column, row) for column in wanted)] for row in rows]
    heads = [text(""), *(number(column.title) for column in wanted)]
    tables = [Table(case["title"], heads, cells)]
    if not rows:
        tables = [Table(case["title"], [text("")], [["Not measured."]])]
    return Section(case["title"], _charts(case, rows), tables, " ".join(problems(case)))


def _charts(case: Result, rows: Sequence[Result]) -> list[Chart]:
    """Draw the paper's figure: what came of what was offered, and what it took."""
    if not case["name"].startswith("paper"):
        return []
    return [
        _chart(case, rows, "cps", "flows", "a second", "Flows that ended a second, by the flows offered."),
        _chart(case, rows, "cpu", "CPU", "of one core", "Share of one core, by the flows offered a second."),
        _chart(
            case,
            rows,
            "active_flows_max",
            "active flows",
            "at a time",
            "Open flows, by those offered a second.",
        ),
    ]


def _chart(case: Result, rows: Sequence[Result], key: str, title: str, unit: str, sentence: str) -> Chart:
    points = [(row["offered"] / row["seconds"], row[key]) for row in rows]
    highest = max((x for x, _ in points if math.isfinite(x)), default=1.0)
    axis = replace(linear_axis(highest), say=lambda x: f"{short(x)} offered")
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{case['name']}-{key}")
    return Chart(title, unit, [Series(title, points)], "points", sentence, axis, name=name)
