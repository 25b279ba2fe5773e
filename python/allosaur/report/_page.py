"""The page of a report: one HTML file that opens without a network, and without scripts."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from allosaur.report import _table

WHEN = "When"
"""The fact that stands at the top of the page."""


@dataclass(frozen=True)
class Check:
    """One thing that had to hold, and whether it did."""

    what: str
    ok: bool
    found: str


@dataclass(frozen=True)
class Headline:
    """One of the numbers that stand at the top of the page."""

    label: str
    value: str
    note: str = ""
    is_bad: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page: charts and tables below a title, with a sentence before and a note after them."""

    title: str
    parts: Sequence[str] = ()
    """HTML, as `_chart.charts_html` and `_table.table` make it. A section without any is not shown."""
    sentence: str = ""
    note: str = ""
    is_folded: bool = False
    """Whether the reader has to open it."""

    def html(self) -> str:
        """Return the section as it stands in the page."""
        parts = [part for part in self.parts if part]
        if not parts:
            return ""
        title = escape(self.title)
        before = f"<p>{escape(self.sentence)}</p>" if self.sentence else ""
        after = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        inside = before + "\n".join(parts) + after
        if self.is_folded:
            return f"<section><details><summary><h2>{title}</h2></summary>{inside}</details></section>"
        return f"<section><h2>{title}</h2>{inside}</section>"


@dataclass(frozen=True)
class Page:
    """All that a page says."""

    title: str
    verdict: str
    ok: bool
    facts: Mapping[str, str]
    """What was run and where: shown as a list of names and values."""
    sections: Sequence[Section]
    headlines: Sequence[Headline] = ()
    reasons: Sequence[str] = ()
    """Why it failed: each a line below the verdict, when there are several."""
    hints: Sequence[str] = ()
    """What to look at next."""
    checks: Sequence[Check] = ()
    reproduce: Sequence[str] = ()
    """Commands, one a line."""
    profile: str = ""
    """The profile's source."""
    notes: Sequence[str] = ()


def write_page(path: Path, page: Page) -> None:
    """Write a page to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    path.write_text(page_html(page), encoding="utf-8")


def page_html(page: Page) -> str:
    """Return the whole page."""
    logo = _resource("logo.svg")
    body = [
        _verdict(page),
        _headlines(page.headlines),
        _facts(page.facts),
        *(section.html() for section in _in_order(page)),
        _again(page.reproduce, page.notes),
        _source(page.profile),
    ]
    return Template(_resource("report.html")).substitute(
        title=escape(page.title),
        word="Passed" if page.ok else "Failed",
        style=_small(_resource("report.css")),
        logo=logo,
        icon=base64.b64encode(logo.replace("currentColor", "#0a7a5a").encode()).decode(),
        when=escape(page.facts.get(WHEN, "")),
        body="\n".join(part for part in body if part),
        version=escape(_version()),
    )


_TICK, _CROSS = "M4 12.5l5 5L20 6.5", "M5 5l14 14M19 5L5 19"


def _verdict(page: Page) -> str:
    kind, word, sign = ("ok", "Passed", _TICK) if page.ok else ("failed", "Failed", _CROSS)
    reasons = page.reasons if len(page.reasons) > 1 else ()
    listed = "".join(f"<li>{escape(_sentence(one))}</li>" for one in reasons)
    said = f"<ul>{listed}</ul>" if listed else f"<p>{escape(_sentence(page.verdict))}</p>"
    hints = "".join(f"<li>{escape(_sentence(one))}</li>" for one in page.hints)
    look = f'<div class="look"><p>What to look at:</p><ul>{hints}</ul></div>' if hints else ""
    return (
        f'<section class="verdict {kind}" aria-label="Verdict"><p class="word">'
        f'<svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true"><path d="{sign}" fill="none" '
        f'stroke="currentColor" stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/></svg>'
        f"{word}.</p><div>{said}{look}</div></section>"
    )


def _headlines(headlines: Sequence[Headline]) -> str:
    if not headlines:
        return ""
    cells = "".join(
        f'<div class="{"bad" if one.is_bad else "plain"}"><dt>{escape(one.label)}</dt>'
        f"<dd><b>{escape(one.value)}</b><span>{escape(one.note)}</span></dd></div>"
        for one in headlines
    )
    # As many columns as leave the fewest places empty.
    columns = min(range(5, 2, -1), key=lambda columns: -len(headlines) % columns)
    by = min(columns, len(headlines))
    return f'<section aria-label="Headline numbers"><dl class="headlines by{by}">{cells}</dl></section>'


def _facts(facts: Mapping[str, str]) -> str:
    # The time stands at the top of the page.
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
        if name != WHEN
    )
    return f'<section aria-label="What was run"><dl class="facts">{cells}</dl></section>' if cells else ""


def _in_order(page: Page) -> list[Section]:
    """Return the sections: checks that failed before all others, and checks that all hold after them."""
    checks = _checks(page.checks)
    if all(one.ok for one in page.checks):
        return [*page.sections, checks]
    return [checks, *page.sections]


def _checks(checks: Sequence[Check]) -> Section:
    """Return the checks: those that failed in the open, those that hold folded behind their number."""
    failed = [("failed", one.what, one.found) for one in checks if not one.ok]
    held = [("ok", one.what, one.found) for one in checks if one.ok]
    columns = [_table.text("result"), _table.text("what must hold"), _table.text("what was found")]
    parts = [_table.table("Checks that failed", columns, failed)]
    if held:
        rest = f"{'All' if not failed else 'The other'} {len(held):,} checks passed"
        if len(held) == 1:
            rest = "One check passed" if not failed else "The other check passed"
        table = _table.table("Checks that passed", columns, held)
        parts.append(f"<details><summary>{rest}</summary>{table}</details>")
    return Section("Checks", parts)


def _again(commands: Sequence[str], notes: Sequence[str]) -> str:
    said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    if not commands:
        return said
    listed = escape("\n".join(commands))
    return f'{said}<section><h2>How to run it again</h2><pre tabindex="0">{listed}</pre></section>'


def _source(profile: str) -> str:
    if not profile:
        return ""
    return (
        '<section class="screen"><details><summary><h2>The profile</h2></summary>'
        f'<pre tabindex="0">{escape(profile)}</pre></details></section>'
    )


def _sentence(text: str) -> str:
    """Return the text as a sentence: with a capital and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def _small(style: str) -> str:
    """Return a style sheet without its comments and indents."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    return "\n".join(line.strip() for line in style.splitlines() if line.strip())


def _resource(name: str) -> str:
    return files("allosaur.report").joinpath(name).read_text(encoding="utf-8").strip()


def _version() -> str:
    import allosaur

    return allosaur.__version__
