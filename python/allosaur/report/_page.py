"""The page of a report: one HTML file that opens without a network, and without scripts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from allosaur.report._chart import charts_html, end_s
from allosaur.report._model import WHEN, Chart, Check, Headline, Part, Report, Section, Table, text
from allosaur.report._table import table_html

_TICK, _CROSS = "M4 12.5l5 5L20 6.5", "M5 5l14 14M19 5L5 19"
_FIRST_MAX = 2
"""Headlines of a part in the overview."""


def write_report(path: Path, report: Report) -> None:
    """Write the report to `path`, replacing what is there. Raises `OSError` when it cannot be written."""
    path.write_text(report_html(report), encoding="utf-8")


def report_html(report: Report) -> str:
    """Return the whole page."""
    logo = _resource("logo.svg")
    return Template(_resource("report.html")).substitute(
        title=escape(report.title),
        word="Passed" if report.ok else "Failed",
        style=_small(_resource("report.css")),
        logo=logo,
        icon=base64.b64encode(logo.replace("currentColor", "#0a7a5a").encode()).decode(),
        when=escape(report.facts.get(WHEN, "")),
        body="\n".join(one for one in _body(report) if one),
        version=escape(_version()),
    )


def _body(report: Report) -> Iterator[str]:
    parts = _laid_out(report.parts)
    if len(parts) == 1:
        # The only part is the page: its verdict and headlines are those of the whole.
        (part,) = parts
        yield _verdict(report.ok, report.verdict, _several(part.reasons), part.hints)
        yield _headlines(part.headlines)
        yield _facts(report.facts)
        yield from _sections(part.sections, [*part.checks, *report.checks])
        yield _notes([*part.notes, *report.notes])
        yield _again(report.reproduce)
        yield _profile(part)
        return
    yield _verdict(report.ok, report.verdict, _said(parts, report))
    yield _overview(parts)
    yield _facts(report.facts)
    failed = not all(one.ok for one in report.checks)
    checks = _checks(report.checks)
    yield checks if failed else ""
    yield from map(_part, parts)
    yield "" if failed else checks
    yield _notes(report.notes)
    yield _again(report.reproduce)


def _laid_out(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with one time axis for all charts, and a name of its own for each of them."""
    shown = [chart for part in parts for section in part.sections for chart in section.charts]
    last_s, taken = end_s(shown), set[str]()

    def placed(chart: Chart, before: str) -> Chart:
        name = before + (chart.name or _slug(chart.title))
        while name in taken:
            name += "-"
        taken.add(name)
        return replace(chart, name=name, end_s=last_s)

    return [
        replace(
            part,
            sections=[
                replace(
                    section,
                    charts=[
                        placed(chart, f"{_slug(part.name)}-" if len(parts) > 1 else "")
                        for chart in section.charts
                        if not chart.is_empty
                    ],
                )
                for section in part.sections
            ],
        )
        for part in parts
    ]


def _part(part: Part) -> str:
    """Return one of several parts: below its own title what is the whole page of a single one."""
    inside = [
        _verdict(part.ok, part.verdict, _several(part.reasons), part.hints, f"Verdict of {part.name}"),
        _headlines(part.headlines, f"Headline numbers of {part.name}"),
        *_sections(part.sections, part.checks, "h3"),
        _notes(part.notes),
        _profile(part, "h3"),
    ]
    title = f'<h2>{escape(part.name)} <span class="unit">{escape(part.kind)}</span></h2>'
    return f'<section class="part">{title}{"".join(one for one in inside if one)}</section>'


def _verdict(
    ok: bool,
    said: str,
    reasons: Sequence[tuple[str, str]],
    hints: Sequence[str] = (),
    label: str = "Verdict",
) -> str:
    """Return the verdict: `reasons`, each with the load that it is about, or without any what is `said`."""
    kind, word, sign = ("ok", "Passed", _TICK) if ok else ("failed", "Failed", _CROSS)
    inside = _items(reasons) if reasons else f"<p>{escape(_sentence(said))}</p>"
    look = f'<div class="look"><p>What to look at:</p>{_items([("", one) for one in hints])}</div>'
    return (
        f'<section class="verdict {kind}" aria-label="{escape(label)}"><p class="word">'
        f'<svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true"><path d="{sign}" fill="none" '
        f'stroke="currentColor" stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/></svg>'
        f"{word}.</p><div>{inside}{look if hints else ''}</div></section>"
    )


def _several(reasons: Sequence[str]) -> list[tuple[str, str]]:
    """Return the reasons of one load when there are several: of one the verdict is the sentence."""
    return [("", one) for one in reasons] if len(reasons) > 1 else []


def _said(parts: Sequence[Part], report: Report) -> list[tuple[str, str]]:
    """Return why the whole failed, load by load; what is good of each load when it did not."""
    if report.ok:
        return [(part.name, part.verdict) for part in parts if part.verdict]
    own = [("", f"{one.what}: {one.found}") for one in report.checks if not one.ok]
    return own + [(part.name, one) for part in parts for one in part.reasons]


def _items(sentences: Sequence[tuple[str, str]]) -> str:
    """Return a list of sentences, each after the name of its load if it has one."""
    items = (
        f"<li>{f'<b>{escape(name)}</b>: ' if name else ''}{escape(_sentence(said))}</li>"
        for name, said in sentences
    )
    return f"<ul>{''.join(items)}</ul>"


def _headlines(headlines: Sequence[Headline], label: str = "Headline numbers") -> str:
    if not headlines:
        return ""
    cells = "".join(
        f'<div class="{"bad" if one.is_bad else "plain"}"><dt>{escape(one.label)}</dt>'
        f"<dd><b>{escape(one.value)}</b><span>{escape(one.detail)}</span></dd></div>"
        for one in headlines
    )
    # As many columns as leave the fewest places empty.
    columns = min(range(5, 2, -1), key=lambda columns: -len(headlines) % columns)
    by = min(columns, len(headlines))
    return f'<section aria-label="{escape(label)}"><dl class="headlines by{by}">{cells}</dl></section>'


def _overview(parts: Sequence[Part]) -> str:
    """Return what came of each part, and its first numbers, or those that are not as they should be."""

    def first(part: Part) -> str:
        bad = [one for one in part.headlines if one.is_bad]
        return "; ".join(f"{one.label}: {one.value}" for one in (bad or part.headlines)[:_FIRST_MAX])

    return _headlines(
        [
            Headline(
                f"{part.name} ({part.kind})", "Passed" if part.ok else "Failed", first(part), not part.ok
            )
            for part in parts
        ],
        "Loads",
    )


def _facts(facts: Mapping[str, str]) -> str:
    # The time stands at the top of the page.
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
        if name != WHEN
    )
    return f'<section aria-label="What was run"><dl class="facts">{cells}</dl></section>' if cells else ""


def _sections(sections: Sequence[Section], checks: Sequence[Check], heading: str = "h2") -> Iterator[str]:
    """Return the sections: checks that failed before all others, and checks that all hold after them."""
    place = len(sections) if all(one.ok for one in checks) else 0
    shown = [_section(one, heading) for one in sections]
    shown.insert(place, _checks(checks, heading))
    yield from shown


def _section(section: Section, heading: str = "h2") -> str:
    inside = charts_html(section.charts) + "\n".join(map(table_html, section.tables))
    if not inside:
        return ""
    title = f"<{heading}>{escape(section.title)}</{heading}>"
    inside += f'<p class="note">{escape(section.note)}</p>' if section.note else ""
    if section.is_folded:
        inside, title = f"<details><summary>{title}</summary>{inside}</details>", ""
    return f"<section>{title}{inside}</section>"


def _checks(checks: Sequence[Check], heading: str = "h2") -> str:
    """Return the checks: those that failed in the open, those that hold folded behind their number."""
    if not checks:
        return ""
    failed = [("failed", one.what, one.found) for one in checks if not one.ok]
    held = [("ok", one.what, one.found) for one in checks if one.ok]
    columns = [text("result"), text("what must hold"), text("what was found")]
    inside = table_html(Table("Checks that failed", columns, failed))
    if held:
        rest = f"{'The other' if failed else 'All'} {len(held):,} checks passed"
        if len(held) == 1:
            rest = "The other check passed" if failed else "One check passed"
        table = table_html(Table("Checks that passed", columns, held))
        inside += f"<details><summary>{rest}</summary>{table}</details>"
    return f"<section><{heading}>Checks</{heading}>{inside}</section>"


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _again(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    listed = escape("\n".join(commands))
    return f'<section><h2>How to run it again</h2><pre tabindex="0">{listed}</pre></section>'


def _profile(part: Part, heading: str = "h2") -> str:
    if not part.profile:
        return ""
    return (
        f'<section class="screen"><details><summary><{heading}>The profile</{heading}></summary>'
        f'<pre tabindex="0">{escape(part.profile)}</pre></details></section>'
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


def _slug(words: str) -> str:
    """Return the words as an identifier: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "chart"
