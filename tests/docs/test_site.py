"""The navigation of the site has every page of the documentation; `make docs` checks the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
#: Pages of the site that are files elsewhere: `scripts/site.py` has the list.
ELSEWHERE = "project/"


def pages(nav: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for one in nav:
            yield from pages(one)
    else:
        for one in nav.values():
            yield from pages(one)


def test_every_page_is_in_the_navigation() -> None:
    docs = ROOT / "docs"
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    # Decisions are in a table of their own.
    wanted = {name for name in there if not re.match(r"decisions/\d", name)}
    named = {name for name in pages(SITE["nav"]) if not name.startswith(ELSEWHERE)}
    assert wanted - named == set(), "add them to `nav` of mkdocs.yml"
    assert named - there == set(), "`nav` of mkdocs.yml names what is not there"


def test_pages_from_elsewhere_are_files() -> None:
    hooks = (ROOT / "scripts" / "site.py").read_text(encoding="utf-8")
    for name in pages(SITE["nav"]):
        if name.startswith(ELSEWHERE):
            line = next(line for line in hooks.splitlines() if f'"{name}"' in line)
            assert (ROOT / line.split('"')[3]).is_file(), line
