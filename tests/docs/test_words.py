"""What users read speaks of error counters and of flows, in the words of the field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from allosaur.cli import _parser
from allosaur.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "docs" / "README.md"),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "commands").glob("*.md")),
]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
#: Said otherwise: error counters, flows or connections, opened flows.
AVOIDED = re.compile(r"counters? of errors|\bconversations?\b|begun flows", re.IGNORECASE)
#: A key of JSON, which stays as programs know it.
KEY = "`conversations`"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_has_the_words_of_the_field(page: Path) -> None:
    assert AVOIDED.findall(page.read_text(encoding="utf-8").replace(KEY, "")) == []


@pytest.mark.parametrize("page", REFERENCE, ids=[page.name for page in REFERENCE])
def test_a_reference_page_says_first_what_it_is(page: Path) -> None:
    """Not how it was written: that is for who opens the file, in a comment."""
    shown = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"by hand|ALLOSAUR_WRITE_DOCS|reference\.py", shown) == []


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_help_has_them_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser.build(COMMANDS).parse_args([name, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("usage:")
    assert AVOIDED.findall(told) == []
