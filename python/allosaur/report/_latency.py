"""Latency in the report: the percentiles as curves, and all that was measured as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from allosaur.report import _scale
from allosaur.report._model import Chart, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import count, microseconds
from allosaur.report._streams import StreamLatency

LINES_MAX = 8
"""Curves in one chart, of those with the longest times. The table has them all."""
_ROWS_MAX = 100
LATENCY_COLUMNS = {
    "min": "min_us",
    "average": "average_us",
    "p50": "p50_us",
    "p90": "p90_us",
    "p99": "p99_us",
    "p99.9": "p99_9_us",
    "max": "max_us",
    "jitter": "jitter_us",
}
"""What is measured of times in microseconds: how a table calls it, and its name."""
_CURVE = {name: field for name, field in LATENCY_COLUMNS.items() if name not in ("average", "jitter")}
_LINEAR_UP_TO = 20.0
"""From how many times the least on the times are drawn by powers of ten."""


@dataclass(frozen=True)
class LatencyRow:
    """What was measured of one stream or port."""

    name: str
    received: int
    latency: StreamLatency


def latency_headline(rows: Sequence[LatencyRow]) -> list[Headline]:
    """Return the highest p99 of all; where the server tells no percentiles, the longest time of all."""
    known = [one.latency.p99_us for one in rows if one.latency.p99_us is not None]
    of = f"the highest of {len(rows)}" if len(rows) > 1 else ""
    if known:
        return [Headline("Latency, p99", microseconds(max(known)), of or "99 of 100 packets were as fast")]
    if rows:
        return [Headline("Latency, max", microseconds(max(one.latency.max_us for one in rows)), of)]
    return []


def latency_section(title: str, name: str, rows: Sequence[LatencyRow]) -> Section:
    """Return the section of what was measured; `name` tells its chart from others in the page."""
    slowest = sorted(rows, key=_slowness, reverse=True)
    shown = list(rows) if len(rows) <= _ROWS_MAX else slowest[:_ROWS_MAX]
    cells = [(one.name, one.received, vars(one.latency)) for one in shown]
    note = "p50: half of the packets took no longer; p99: 99 of 100; and so on."
    if len(shown) < len(rows):
        note += f" {len(shown)} of {len(rows):,} rows: those with the longest times."
    chart = _chart(name, slowest[:LINES_MAX], len(rows))
    return Section(title, [chart], [times_table("Times from port to port", "received", cells)], note)


def times_table(
    title: str, counted: str, rows: Sequence[tuple[str, int, Mapping[str, float | None]]]
) -> Table:
    """Return a table of times: of each row its name, how many were `counted`, and microseconds."""
    columns = [text(""), number(counted), *map(number, LATENCY_COLUMNS)]
    cells = [
        (
            name,
            count(n),
            *("" if (us := times.get(key)) is None else microseconds(us) for key in LATENCY_COLUMNS.values()),
        )
        for name, n, times in rows
    ]
    return Table(title, columns, cells)


def _chart(name: str, rows: Sequence[LatencyRow], of: int) -> Chart:
    # Without percentiles three points are no curve.
    told = [one for one in rows if one.latency.p50_us is not None]
    lines = [
        Series(
            one.name,
            [
                (place + 0.5, value)
                for place, field in enumerate(_CURVE.values())
                if (value := getattr(one.latency, field)) is not None
            ],
        )
        for one in told
    ]
    values = [value for line in lines for _, value in _scale.known(line.points)]
    least, most = min(values, default=0.0), max(values, default=0.0)
    is_wide = least > 0 and most / least > _LINEAR_UP_TO
    return Chart(
        *("Percentiles of latency", "logarithmic" if is_wide else "", lines, "points"),
        _sentence(told, of),
        _scale.named_axis(list(_CURVE)),
        _scale.log_axis(least, most) if is_wide else _scale.linear_axis(most, say=microseconds),
        f"latency-{name}",
    )


def _sentence(rows: Sequence[LatencyRow], of: int) -> str:
    said = []
    for one in rows[:2]:
        latency = one.latency
        times = [
            f"{microseconds(value)} for {word}"
            for word, value in (("half of the packets", latency.p50_us), ("99 %", latency.p99_us))
            if value is not None
        ]
        said.append(f"{one.name}: up to {', '.join(times)}")
    rest = f" The {len(rows)} with the longest times of {of}." if len(rows) < of else ""
    return f"{'; '.join(said)}.{rest}"


def _slowness(one: LatencyRow) -> float:
    return one.latency.max_us if one.latency.p99_us is None else one.latency.p99_us
