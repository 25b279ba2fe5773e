"""Words that may come next: what a shell shows when Tab is pressed, in real shells too."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from allosaur.cli.commands import COMMANDS

WAIT_S = 60
#: What is typed, and what it becomes when Tab is pressed: a command, an option, a profile, a value.
TYPED = [
    ("allosaur statu", "allosaur status"),
    ("allosaur run --repo", "allosaur run --report"),
    ("allosaur run imix_ip", "allosaur run imix_ipv6"),
    ("allosaur doctor --for af_p", "allosaur doctor --for af_packet"),
]
#: How a shell begins without files of its user, and what is typed into it first.
BEGUN = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(allosaur completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(allosaur completion zsh)"'),
}

Complete = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("allosaur sta", ["start", "stats", "status"]),
        ("allosaur run imi", ["imix", "imix_ipv6"]),
        ("allosaur run imix --loc", ["--local", "--local-ports"]),
        ("allosaur -q stop --cl", ["--clear"]),
        ("allosaur server --poll ", ["busy", "adaptive"]),
        ("allosaur server --poll=b", ["--poll=busy"]),
        ("allosaur sim --direction ", ["0", "1"]),
        ("allosaur config ", ["init", "check"]),
        ("allosaur config check --js", ["--json"]),
        ("allosaur help ar", ["arp"]),
        ("allosaur completion z", ["zsh"]),
        ("allosaur run imix --fail-if out_of", ["out_of_order.packets"]),
        ("allosaur run http --fail-if reset", ["reset", "reset.flows"]),
        ("allosaur run http --fail-if 'refu", ["refused", "refused.flows"]),
        ("allosaur ndr imix --fail-if latency.m", ["latency.min", "latency.max"]),
        ("allosaur run -m ", []),
        ("allosaur --ver", ["--version"]),
    ],
)
def test_what_comes_next(complete: Complete, line: str, expected: list[str]) -> None:
    assert [word.rstrip() for word in complete(line)] == expected


def test_every_command_and_every_option_is_completed(complete: Complete) -> None:
    assert set(complete("allosaur ")) >= {command.name for command in COMMANDS}
    for command in COMMANDS:
        assert {"--help", "--quiet"} <= set(complete(f"allosaur {command.name} -"))


def test_files_are_completed_where_a_file_is_meant(
    complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.yaml").touch()
    Path("lab").mkdir()
    assert set(complete("allosaur config check la")) == {"lab.yaml", "lab/"}
    assert set(complete("allosaur run la")) == {"lab.yaml", "lab/", "latency_streams"}
    assert complete("allosaur doctor --root la") == ["lab/"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `allosaur` is the package under test."""
    command = tmp_path / "bin" / "allosaur"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m allosaur.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return f"{command.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", BEGUN)
def test_tab_in_a_real_shell(shell: str, path: str, tmp_path: Path) -> None:
    """One shell, in which each line is typed, completed, and deleted again."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    words, begin = BEGUN[shell]
    terminal, side = pty.openpty()
    variables = {
        **os.environ,
        "PATH": path,
        "PS1": "> ",
        "TERM": "dumb",
        "HOME": str(tmp_path),
        "COLUMNS": "200",
    }
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [shell, *words],
        stdin=side,
        stdout=side,
        stderr=side,
        env=variables,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(side)
    try:
        os.write(terminal, f"{begin}; echo be''gun\n".encode())
        see(terminal, "begun\r\n")
        for typed, whole in TYPED:
            os.write(terminal, f"{typed}\t".encode())
            see(terminal, whole)
            os.write(terminal, b"\x15")  # Ctrl-U: the line is deleted
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def see(terminal: int, words: str) -> None:
    """Wait until the terminal shows these words."""
    deadline, read = time.monotonic() + WAIT_S, ""
    while words not in read:
        assert time.monotonic() < deadline, f"{words!r} did not come, but:\n{read!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            more = os.read(terminal, 65536).decode(errors="replace")
            read += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\a", "", more)


def test_fish_asks_too(path: str, tmp_path: Path) -> None:
    """fish says itself what it would complete."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    lines = [f"complete -C '{typed}'" for typed, _ in TYPED]
    variables = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    script = "; ".join(["allosaur completion fish | source", *lines])
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    told = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert told == [whole.split()[-1] for _, whole in TYPED]
