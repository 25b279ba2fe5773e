"""The page of a report: one HTML file with everything inside, that opens without a network.

What lives here: the page, its sections, and the tables and plots that they are made of. What does not: what
there is to show (`_html` for streams, `_flow_report` for flows). Plotly draws the plots; every plot also has
a sentence that says what it shows, so that neither sight nor colour is needed to read the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Blue, orange, green, purple: distinct for most eyes."""
DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class Check:
    """One thing that had to hold, and whether it did."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Section:
    """A part of the page: a plot with its sentence, tables, or both."""

    title: str
    name: str = ""
    """The element of the plot; empty without one."""
    sentence: str = ""
    figure: Mapping[str, Any] | None = None
    tables: Sequence[str] = ()
    """HTML, as `table` makes it."""

    def html(self) -> str:
        """Return the section as it stands in the page."""
        parts = [f"<h2>{escape(self.title)}</h2>"]
        if self.sentence:
            parts.append(f'<p id="{self.name}-text">{escape(self.sentence)}</p>')
        if self.figure is not None:
            parts.append(f'<div id="{self.name}" role="img" aria-labelledby="{self.name}-text"></div>')
        return "\n".join([*parts, *self.tables])


@dataclass(frozen=True)
class Page:
    """All that a page says."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where: shown as a list of names and values."""
    sections: Sequence[Section]
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    """Commands, one a line."""
    profile: str = ""
    """The profile's source."""
    notes: Sequence[str] = ()


def write_page(path: Path, page: Page) -> None:
    """Write a page to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    # Imported here: reading the 5 MB of the plotting library is of no use to a run without a report.
    from plotly.offline import get_plotlyjs

    figures = {one.name: one.figure for one in page.sections if one.figure is not None}
    text = _PAGE.substitute(
        title=escape(page.title),
        verdict=escape(page.verdict),
        verdict_class="ok" if page.ok else "failed",
        verdict_word="Passed" if page.ok else "Failed",
        facts=_definitions(page.facts),
        checks=_checks_table(page.checks),
        sections="\n".join(one.html() for one in page.sections),
        notes="".join(f"<p>{escape(note)}</p>" for note in page.notes),
        reproduce=escape("\n".join(page.reproduce)),
        profile=escape(page.profile),
        plotly=get_plotlyjs(),
        figures=_script_json(figures),
    )
    path.write_text(text, encoding="utf-8")


def line(name: str, x: Sequence[float], y: Sequence[float], colour: int, dash: int) -> dict[str, Any]:
    """Return one line of a plot. Colour never stands alone: lines of one colour differ in their dashes."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [round(value, 3) for value in x],
        "y": [round(value, 1) for value in y],
        "line": {
            "color": COLOURS[colour % len(COLOURS)],
            "dash": DASHES[dash % len(DASHES)],
            "width": 2 + dash,
        },
    }


def layout(x_title: str, y_title: str) -> dict[str, Any]:
    """Return the layout that all plots share."""
    return {
        "xaxis": {"title": {"text": x_title}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "y": -0.25},
        "margin": {"l": 70, "r": 20, "t": 20, "b": 60},
        "height": 420,
    }


def number(value: int | None) -> str:
    """Return a count for a table."""
    return "not counted" if value is None else f"{value:,}"


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML; the first cell of each row names it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    top = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _definitions(facts: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())


def _checks_table(checks: Sequence[Check]) -> str:
    rows = [("ok" if check.ok else "FAILED", check.what, check.found) for check in checks]
    return table("What was checked", ("result", "what must hold", "what was found"), rows)


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
$sections
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
