"""Words that may come next: what a shell shows when Tab is pressed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from allosaur.cli._completion import completions
from allosaur.cli.commands import COMMANDS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sta"], ["start", "stats", "status"]),
        (["run", "imi"], ["imix", "imix_ipv6"]),
        (["run", "imix", "--loc"], ["--local", "--local-ports"]),
        (["-q", "stop", "--cl"], ["--clear"]),
        (["server", "--poll", ""], ["busy", "adaptive"]),
        (["sim", "--direction", ""], ["0", "1"]),
        (["config", ""], ["init", "check"]),
        (["help", "ar"], ["arp"]),
        (["push", ""], []),
        (["run", "--report", ""], []),
        (["nothing", ""], []),
        (["--ver"], ["--version"]),
    ],
)
def test_what_comes_next(words: list[str], expected: list[str]) -> None:
    assert completions(COMMANDS, words) == expected


def test_every_command_and_every_option_is_completed() -> None:
    assert set(completions(COMMANDS, [""])) >= {command.name for command in COMMANDS}
    for command in COMMANDS:
        if command.name != "help":
            assert {"--help", "--quiet"} <= set(completions(COMMANDS, [command.name, "-"]))


def test_a_shell_asks_by_its_variables() -> None:
    def asked(line: str, point: int) -> list[str]:
        variables = {**os.environ, "COMP_LINE": line, "COMP_POINT": str(point)}
        words = [sys.executable, "-m", "allosaur.cli", "allosaur", "", ""]
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert asked("allosaur pi --port 1", len("allosaur pi")) == ["ping"]
    assert "--limit" in asked("allosaur sim vlan --", len("allosaur sim vlan --"))
    assert asked("allosaur run 'x", len("allosaur run 'x")) == []
