"""The server's log: its levels are ALLOSAUR_LOG's, and it has colors on a terminal, unless NO_COLOR says that
nobody wants them."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from allosaur.server import find_binary

ESCAPE = b"\x1b["


@pytest.mark.parametrize(("no_color", "is_colored"), [(None, True), ("", True), ("1", False)])
def test_a_log_on_a_terminal(no_color: str | None, is_colored: bool) -> None:
    told = written_on_a_terminal(no_color)
    assert b"ended" in told
    assert (ESCAPE in told) == is_colored


@pytest.mark.parametrize(
    ("levels", "is_told"), [("info", True), ("warn", False), ("allosaur_server=info", True)]
)
def test_levels_are_of_the_whole_or_of_a_module(levels: str, is_told: bool) -> None:
    assert (b"ended" in written_on_a_terminal("1", levels)) == is_told


def test_levels_that_cannot_be_read_are_refused() -> None:
    environment = {**os.environ, "ALLOSAUR_LOG": "allosaur_server=loud"}
    command = [find_binary(), "ports"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=20, check=False)
    assert done.returncode == 2
    assert b"error: ALLOSAUR_LOG=allosaur_server=loud: " in done.stderr
    assert b"give a level (error, warn, info, debug, trace or off)" in done.stderr


def written_on_a_terminal(no_color: str | None, levels: str | None = None) -> bytes:
    """What a server that starts and ends writes on its error stream, which is a terminal."""
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    if no_color is not None:
        environment["NO_COLOR"] = no_color
    environment.pop("ALLOSAUR_LOG", None)
    if levels is not None:
        environment["ALLOSAUR_LOG"] = levels
    ours, its = pty.openpty()
    command = [str(find_binary()), "serve", "--rpc-port", "0", "--pub-port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its, env=environment)
    os.close(its)
    assert server.stdout is not None
    assert server.stdout.readline().startswith(b"ready ")
    server.terminate()
    told = bytearray()
    try:
        while part := os.read(ours, 4096):
            told += part
    except OSError:
        pass  # So a terminal ends when nobody has it open any more.
    os.close(ours)
    server.stdout.close()
    assert server.wait(timeout=20) == 0
    return bytes(told)
