"""docs/commands has a page for each command: every option, every key of the JSON."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from allosaur.cli import _parser
from allosaur.cli.commands import COMMANDS
from allosaur.report._counters import PortCounters

DOCS = Path(__file__).resolve().parents[2] / "docs"


OF_ALL = ("--help", "--debug", "--quiet", "--no-color")
"""What the guide describes once, for all commands."""

OTHERS = "| all others | as for [`run`](run.md) |"


def page(name: str) -> str:
    """The page of a command."""
    return (DOCS / "commands" / f"{name}.md").read_text(encoding="utf-8")


def commands() -> dict[str, argparse.ArgumentParser]:
    found = [
        action
        for action in _parser.build(COMMANDS)._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(found[0].choices)


@pytest.mark.parametrize("name", commands())
def test_every_option_is_described(name: str) -> None:
    text = page(name)
    options = [option for action in commands()[name]._actions for option in action.option_strings]
    spelled = [option for option in options if option.startswith("--") and option not in OF_ALL]
    # Some refer to `run` for the options that are the same.
    known = text + (page("run") if name == "sim" or OTHERS in text else "")
    assert [option for option in spelled if f"{option}" not in known] == []


def test_there_is_a_page_of_each_command_and_none_of_others() -> None:
    assert {path.stem for path in (DOCS / "commands").glob("*.md")} == set(commands())
    index = (DOCS / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in commands() if f"](../commands/{name}.md)" not in index] == []


def test_every_counter_is_described() -> None:
    text = page("run").partition("\n## JSON\n")[2]
    assert [name for name in PortCounters().to_json() if f"`{name}`" not in text] == []


def test_a_command_imports_what_it_needs_when_it_runs() -> None:
    """`allosaur --help` lists all commands, and shall answer at once."""
    heavy = (
        "zmq",
        "scapy",
        "rich",
        "yaml",
        "prompt_toolkit",
        "textual",
        "allosaur.client",
        "allosaur.report",
    )
    heavy = (*heavy, "allosaur.server", "allosaur.cli.console")
    code = f"import sys, allosaur.cli._main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
