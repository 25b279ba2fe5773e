"""The server's log has colors on a terminal, unless NO_COLOR says that nobody wants them."""

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


def written_on_a_terminal(no_color: str | None) -> bytes:
    """What a server that starts and ends writes on its error stream, which is a terminal."""
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    if no_color is not None:
        environment["NO_COLOR"] = no_color
    environment.pop("ALLOSAUR_LOG", None)
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
