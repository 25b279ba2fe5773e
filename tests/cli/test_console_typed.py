"""The console as somebody types into it, on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60


def _take_terminal() -> None:
    """Make Ctrl-C a signal, as a shell does for what it starts."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Typed:
    """A console on a terminal; `see` waits for words."""

    def __init__(
        self,
        server: LocalServer,
        folder: Path,
        *more: str,
        terminal: str = "xterm",
        command: str = "console",
        size: tuple[int, int] = (200, 24),
    ) -> None:
        self._terminal, side = pty.openpty()
        words = [sys.executable, "-m", "allosaur.cli", command, "--server"]
        words += [f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port), *more]
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TERM": terminal,
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(folder),
            "COLUMNS": str(size[0]),
            "LINES": str(size[1]),
        }
        self.process = subprocess.Popen(
            words,
            stdin=side,
            stdout=side,
            stderr=side,
            env=variables,
            cwd=folder,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(side)
        self._read = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def see(self, words: str) -> None:
        """Wait until the terminal has shown these words, after what was seen before."""
        deadline = time.monotonic() + WAIT_S
        while words not in self._read:
            assert time.monotonic() < deadline, f"{words!r} did not come, but:\n{self._read}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    more = os.read(self._terminal, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    assert words in self._read, f"it ended without {words!r}:\n{self._read}"
                    return
                self._read += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r", "", more)
        self._read = self._read.partition(words)[2]

    def end(self) -> int:
        """Wait for its end, reading on, so that it can write; return the exit code."""
        deadline = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 0.05)[0]:
                try:
                    os.read(self._terminal, 65536)
                except OSError:
                    break
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def typed(server: LocalServer, tmp_path: Path) -> Iterator[Typed]:
    console = Typed(server, tmp_path)
    yield console
    console.close()


def test_prompt_completion_history_and_ctrl_c(typed: Typed) -> None:
    typed.see("Server mode:      Stateless")
    typed.see("allosaur(stateless, all ports)>")
    typed.type("porta\t")
    typed.see("ttr")
    typed.type("\r")
    typed.see("Port Status")
    typed.see(")>")
    typed.type("start -f imix -p 0 -m 1kpps\r")
    typed.see("[SUCCESS]")
    typed.see("0 sending)>")
    typed.type("nonsense\r")
    typed.see("there is no command 'nonsense'")
    typed.see(")>")
    typed.type("ping; wait\r")
    typed.see("[SUCCESS]")  # by now Ctrl-C is a signal, not a key of the line editor
    typed.type("\x03")
    typed.see("interrupted")
    typed.see(")>")
    typed.type("reset\r")
    typed.see("Reset ports 0, 1")
    typed.see("all ports)>")
    typed.type("\x12porta")
    typed.see("portattr")
    typed.type("\r\r")
    typed.see("Port Status")
    typed.see(")>")
    typed.type("half a line\x03")
    typed.type("history\r")
    typed.see("portattr")
    typed.see(")>")
    typed.type("quit\r")
    assert typed.end() == 0


def test_the_end_of_the_input_and_ctrl_c_on_an_empty_line_leave(server: LocalServer, tmp_path: Path) -> None:
    for ends_it in ("\x04", "\x03"):
        console = Typed(server, tmp_path, "--readonly")
        try:
            console.see("allosaur(stateless, read-only)>")
            console.type(ends_it)
            assert console.end() == 0
        finally:
            console.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_the_ports_are_free(
    number: signal.Signals, code: int, typed: Typed, server: LocalServer
) -> None:
    typed.see("all ports)>")
    typed.process.send_signal(number)
    assert typed.end() == code
    with server.client(username="another") as client:
        client.acquire()


def test_two_consoles_that_force_each_other(typed: Typed, server: LocalServer, tmp_path: Path) -> None:
    typed.see("all ports)>")
    other = Typed(server, tmp_path, "--force")
    try:
        other.see("all ports)>")
        typed.type("start -f imix -p 0\r")
        typed.see("port 0 is not ours")
        typed.see("`acquire -p 0 --force` takes it")
        typed.type("acquire --force\r")
        typed.see("Acquired ports 0, 1")
        other.type("ping\r")
        other.see("read-only)>")
    finally:
        other.close()


def test_a_dumb_terminal_has_a_console_too(server: LocalServer, tmp_path: Path) -> None:
    console = Typed(server, tmp_path, terminal="dumb")
    try:
        console.see("all ports)>")
        console.type("ping\r")
        console.see("[SUCCESS]")
        console.type("quit\r")
        assert console.end() == 0
    finally:
        console.close()


def test_the_dashboard_shows_and_returns_to_the_prompt(typed: Typed) -> None:
    typed.see("all ports)>")
    typed.type("tui\r")
    typed.see("allosaur top")
    typed.see("ours")
    typed.type("s")
    typed.see("Streams, by packet group")
    typed.type("\x1b")
    typed.see("a command of the console")
    typed.type("start -f imix -p 0 -m 100pps\r")
    typed.see("[SUCCESS]")
    typed.type("mode stateful\r")
    typed.see("mode: not within the dashboard")
    typed.type("\x1b")
    typed.see(" quit")  # else escape and the next letter were one key
    typed.type("d")
    typed.see("sends")
    typed.type("q")
    typed.see("0 sending)>")
    typed.type("quit\r")
    assert typed.end() == 0


@pytest.mark.parametrize(
    ("ends_it", "code"), [("q", 0), ("\x04", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_dashboard_ends_and_leaves_the_terminal_as_it_was(
    ends_it: str | signal.Signals, code: int, server: LocalServer, tmp_path: Path
) -> None:
    dashboard = Typed(server, tmp_path, command="top", size=(80, 24))
    try:
        dashboard.see("nobody")
        if isinstance(ends_it, str):
            dashboard.type(ends_it)
        else:
            dashboard.process.send_signal(ends_it)
        assert dashboard.end() == code
    finally:
        dashboard.close()


@pytest.mark.parametrize(
    ("size", "terminal", "words"),
    [
        ((79, 24), "xterm", "the terminal has 79 columns and 24 lines, the dashboard needs 80 and 24"),
        ((80, 24), "dumb", "cannot move its cursor (TERM is 'dumb')"),
    ],
)
def test_a_terminal_that_does_not_do_is_refused(
    size: tuple[int, int], terminal: str, words: str, server: LocalServer, tmp_path: Path
) -> None:
    dashboard = Typed(server, tmp_path, command="top", size=size, terminal=terminal)
    try:
        dashboard.see(words)
        dashboard.see("--once prints all of it once")
        assert dashboard.end() == 3
    finally:
        dashboard.close()


def test_a_dashboard_ends_when_its_terminal_is_closed(server: LocalServer, tmp_path: Path) -> None:
    dashboard = Typed(server, tmp_path, command="top", size=(80, 24))
    try:
        dashboard.see("nobody")
        os.close(dashboard._terminal)
        assert dashboard.process.wait(WAIT_S) == 129
    finally:
        dashboard.process.kill()
