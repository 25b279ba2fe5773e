"""The command of a report that does the run again: read by our own parser, it is the same run."""

from __future__ import annotations

import argparse
import html
import shlex
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import _again, _parser
from allosaur.cli.commands import COMMANDS

#: All that changes what a run does; each option is in one of them.
RUNS = (
    "run imix",
    "run imix -m 5mpps -d 500ms --ports 0,2 --port-counters --server 192.0.2.1:4601 --pub-port 4700 --force",
    "run 'my profiles/a;b.py' -d forever -t size=128,name=a -t 'host=a b' -t on=true --local",
    "run imix --local --local-ports 'memory:rate=1gbps,memory' --cores 2 -m 40%",
    "run http -m 100 --pid web -l 10 --ipv6 --nc --clients 0,2 --establish-within 0.00001 --close-within 0",
    "run http --servers-only --server [2001:db8::1]:4501",
    "run imix http emu:ipv6 -m imix=5mpps -m http=100 --ports http=2,3 -t imix:size=64 --emu-port 4511",
    "run imix --fail-if 'loss>0.01%' 'latency.p99{stream=\"a, b\"}>100us' --local",
)
#: What a run prints and writes is not what it does.
NOT_TOLD = ["--debug", "--quiet", "--no-color", "--report", "--json", "--out", "--junit", "--help"]


def parsed(words: list[str]) -> dict[str, Any]:
    options = vars(_parser.build(COMMANDS).parse_args(words))
    others = ("parser", "all_commands", "execute", "report", "json")
    return {name: value for name, value in options.items() if name not in others}


@pytest.mark.parametrize("line", RUNS)
def test_the_command_is_the_same_run(line: str) -> None:
    words = shlex.split(line)
    options = _parser.build(COMMANDS).parse_args([*words, "--report", "one.html", "--json"])
    again = shlex.split(_again.command(options))
    assert again[0] == "allosaur"
    assert parsed(again[1:]) == parsed(words)
    assert "--report" not in again
    assert "--json" not in again


def test_each_option_is_told() -> None:
    given = {word for line in RUNS for word in shlex.split(line)}
    parser: argparse.ArgumentParser = _parser.build(COMMANDS).parse_args(["run", "imix"]).parser
    for action in parser._actions:
        if action.option_strings:
            assert given & set(action.option_strings) or action.option_strings[-1] in NOT_TOLD, action


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("imix", ["--local-ports", "memory,memory", "--port-counters", "-m", "1kpps"]),
        ("http", ["--local-ports", "memory,memory", "--pid", "web", "--close-within", "30"]),
    ],
)
def test_a_report_tells_it(allosaur: Any, tmp_path: Path, profile: str, words: list[str]) -> None:
    report = tmp_path / "r.html"
    done = allosaur("run", profile, "--local", "-d", "0.2", *words, "--report", report)
    assert done.code in (0, 1), done
    page = html.unescape(report.read_text(encoding="utf-8"))
    line = next(line for line in page.splitlines() if "allosaur run" in line)
    again = shlex.split(line[line.index("allosaur run") :].partition("</")[0])
    assert parsed(again[1:]) == parsed(["run", profile, "--local", "-d", "0.2", *words]) | (
        {"ports": [0]} if profile == "imix" else {}
    )
