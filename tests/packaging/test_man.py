"""Man pages: one for each command, of its own words, without a fault that troff or mandoc would name."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur.cli import _parser
from allosaur.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SOURCE_DATE_EPOCH": "0",
    }
    subprocess.run([sys.executable, ROOT / "scripts" / "man.py", folder], env=variables, check=True)
    return folder


def test_every_command_has_a_page_with_every_option(pages: Path) -> None:
    (action,) = (
        one for one in _parser.build(COMMANDS)._actions if isinstance(one, argparse._SubParsersAction)
    )
    for name, parser in action.choices.items():
        text = (pages / f"allosaur-{name}.1").read_text(encoding="utf-8")
        spelled = name.replace("-", r"\-")
        assert f".SH NAME\nallosaur\\-{spelled} \\- " in text
        options = {option for one in parser._actions for option in one.option_strings} - {"-h", "--help"}
        bold = {option: option.replace("-", r"\-").join((r"\fB", r"\fR")) for option in options}
        assert [option for option in options if bold[option] not in text] == []
        assert rf"\fBallosaur\-{spelled}\fR(1)" in (pages / "allosaur.1").read_text(encoding="utf-8")


def test_names_of_trex_have_pages_too(pages: Path) -> None:
    text = (pages / "t-rex-64.1").read_text(encoding="utf-8")
    assert r"\fB\-\-astf\-server\-only\fR" in text
    assert {"trex-console.1", "astf-sim.1", "emu-sim.1"} <= {page.name for page in pages.iterdir()}


def test_exit_codes_are_those_of_the_guide(pages: Path) -> None:
    text = (pages / "allosaur-run.1").read_text(encoding="utf-8")
    codes = re.findall(r"^\\fB([\d, ]+)\\fR$", text.partition(".SH EXIT STATUS")[2], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "130, 143, 129"]


def test_troff_finds_no_fault(pages: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    files = sorted(pages.iterdir())
    words = ["groff", "-man", "-Tutf8", "-ww", "-z", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
