"""The HTML report: one file with everything inside, that opens without a network.

What lives here: the data a report shows, its plots as plain data, and the page around them. Plotly draws
the plots; every plot also has a sentence that says what it shows, and every number of the size plot is in
a table as well, so that neither sight nor colour is needed to read the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from allosaur.report._counters import PortCounters
from allosaur.report._sampling import PortRates

_BLUE, _ORANGE, _GREEN, _PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_PORT_COLOURS = (_BLUE, _ORANGE, _GREEN, _PURPLE)
_DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class Check:
    """One thing that had to hold, and whether it did."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Report:
    """All that a report shows."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where: shown as a list of names and values."""
    counters: Mapping[int, PortCounters]
    """Of each port, over the whole run."""
    rates: Mapping[int, Sequence[PortRates]]
    """Of each port, over time."""
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    """Commands, one a line."""
    profile: str = ""
    """The profile's source."""
    notes: Sequence[str] = field(default_factory=tuple)


def write_report(path: Path, report: Report) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    # Imported here: reading the 5 MB of the plotting library is of no use to a run without a report.
    from plotly.offline import get_plotlyjs

    page = _PAGE.substitute(
        title=escape(report.title),
        verdict=escape(report.verdict),
        verdict_class="ok" if report.ok else "failed",
        verdict_word="Passed" if report.ok else "Failed",
        facts=_definitions(report.facts),
        checks=_checks_table(report.checks),
        rate_sentence=escape(_rate_sentence(report.rates)),
        size_sentence=escape(_size_sentence(report.counters)),
        totals=_totals_table(report.counters),
        sizes=_sizes_table(report.counters),
        notes="".join(f"<p>{escape(note)}</p>" for note in report.notes),
        reproduce=escape("\n".join(report.reproduce)),
        profile=escape(report.profile),
        plotly=get_plotlyjs(),
        figures=_script_json({"rate": _rate_figure(report.rates), "sizes": _size_figure(report.counters)}),
    )
    path.write_text(page, encoding="utf-8")


def _rate_figure(rates: Mapping[int, Sequence[PortRates]]) -> dict[str, Any]:
    traces = []
    for index, (port, series) in enumerate(sorted(rates.items())):
        colour = _PORT_COLOURS[index % len(_PORT_COLOURS)]
        for offset, (word, value) in enumerate((("sent", "tx_pps"), ("received", "rx_pps"))):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"port {port} {word}",
                    "x": [round(point.time_s, 3) for point in series],
                    "y": [round(getattr(point, value), 1) for point in series],
                    # A port is a colour; sent and received are different dashes: colour never stands alone.
                    "line": {"color": colour, "dash": _DASHES[offset], "width": 2 + offset},
                }
            )
    return {
        "data": traces,
        "layout": _layout("seconds since the start", "packets per second"),
    }


def _size_figure(counters: Mapping[int, PortCounters]) -> dict[str, Any]:
    traces = []
    classes = _size_classes(counters)
    for index, (port, one) in enumerate(sorted(counters.items())):
        colour = _PORT_COLOURS[index % len(_PORT_COLOURS)]
        for word, sizes, shape in (("sent", one.tx_by_size, ""), ("received", one.rx_by_size, "/")):
            if sizes is None:
                continue
            traces.append(
                {
                    "type": "bar",
                    "name": f"port {port} {word}",
                    "x": classes,
                    "y": [sizes.get(name, 0) for name in classes],
                    "marker": {"color": colour, "pattern": {"shape": shape}},
                }
            )
    layout = _layout("frame size in bytes, with FCS", "packets")
    return {
        "data": traces,
        "layout": {**layout, "barmode": "group", "xaxis": {**layout["xaxis"], "type": "category"}},
    }


def _layout(x_title: str, y_title: str) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": x_title}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "y": -0.25},
        "margin": {"l": 70, "r": 20, "t": 20, "b": 60},
        "height": 420,
    }


def _size_classes(counters: Mapping[int, PortCounters]) -> list[str]:
    seen: dict[str, None] = {}
    for one in counters.values():
        for sizes in (one.tx_by_size, one.rx_by_size):
            seen.update(dict.fromkeys(name for name, packets in (sizes or {}).items() if packets))
    return sorted(seen, key=lambda name: int(name.split("-")[0]))


def _rate_sentence(rates: Mapping[int, Sequence[PortRates]]) -> str:
    parts = []
    for port, series in sorted(rates.items()):
        if series:
            sent, received = max(p.tx_pps for p in series), max(p.rx_pps for p in series)
            parts.append(
                f"port {port} sent up to {sent:,.0f} and received up to {received:,.0f} packets per second"
            )
    return "Rate over time: " + ("; ".join(parts) or "nothing was measured") + "."


def _size_sentence(counters: Mapping[int, PortCounters]) -> str:
    if not _size_classes(counters):
        return "Packet sizes: this server does not count them."
    return "Packets by frame size, sent beside received. The table below has the same numbers."


def _definitions(facts: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())


def _checks_table(checks: Sequence[Check]) -> str:
    rows = [("ok" if check.ok else "FAILED", check.what, check.found) for check in checks]
    return _table("What was checked", ("result", "what must hold", "what was found"), rows)


def _totals_table(counters: Mapping[int, PortCounters]) -> str:
    header = ("port", "offered", "sent", "bytes sent", "received", "bytes received", "missed", "queue full")
    rows = [
        (
            str(port),
            *(
                _number(value)
                for value in (
                    one.offered_packets,
                    one.tx_packets,
                    one.tx_bytes,
                    one.rx_packets,
                    one.rx_bytes,
                    one.missed_packets,
                    one.queue_full,
                )
            ),
        )
        for port, one in sorted(counters.items())
    ]
    return _table("Totals (packets; bytes with FCS)", header, rows)


def _sizes_table(counters: Mapping[int, PortCounters]) -> str:
    classes = _size_classes(counters)
    if not classes:
        return ""
    rows = []
    for port, one in sorted(counters.items()):
        for word, sizes in (("sent", one.tx_by_size), ("received", one.rx_by_size)):
            rows.append((f"{port} {word}", *(_number((sizes or {}).get(name, 0)) for name in classes)))
    return _table("Packets by frame size in bytes", ("port", *classes), rows)


def _number(value: int | None) -> str:
    return "not counted" if value is None else f"{value:,}"


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    top = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _script_json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.verdict { border-left: .5rem solid; padding: .5rem 1rem; background: #f4f4f4; }
.ok { border-color: #009e73; } .failed { border-color: #d55e00; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border: 1px solid #ccc; padding: .25rem .6rem; text-align: right;
  font-variant-numeric: tabular-nums; }
th[scope="row"], td:last-child { text-align: left; } thead th { background: #f4f4f4; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="verdict $verdict_class"><strong>$verdict_word.</strong> $verdict</p>
<dl>$facts</dl>
<h2>Checks</h2>
$checks
<h2>Rate over time</h2>
<p id="rate-text">$rate_sentence</p>
<div id="rate" role="img" aria-labelledby="rate-text"></div>
<h2>Packet sizes</h2>
<p id="sizes-text">$size_sentence</p>
<div id="sizes" role="img" aria-labelledby="sizes-text"></div>
$sizes
<h2>Totals</h2>
$totals
$notes
<h2>How to run it again</h2>
<pre>$reproduce</pre>
<details><summary>The profile</summary><pre>$profile</pre></details>
</main>
<script>$plotly</script>
<script type="application/json" id="figures">$figures</script>
<script>
const figures = JSON.parse(document.getElementById("figures").textContent);
for (const name of Object.keys(figures)) {
  Plotly.newPlot(name, figures[name].data, figures[name].layout, {responsive: true, displaylogo: false});
}
</script>
</body>
</html>
""")
