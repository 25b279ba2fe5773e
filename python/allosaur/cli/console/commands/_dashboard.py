"""`tui`: the dashboard of `allosaur top`, over the client of the console, whose commands it takes too."""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from allosaur.cli._answer import Answer
from allosaur.cli._errors import CommandError, bad_input
from allosaur.cli._modes import STATEFUL, STATELESS
from allosaur.cli.console import _line
from allosaur.cli.console._command import ConsoleCommand, done
from allosaur.cli.console._session import Session

if TYPE_CHECKING:
    from allosaur.cli.top._reader import Clients

INTERVAL_S = 1.0
_NOT_INSIDE = ("tui", "shell", "debug", "mode", "wait", "history", "h")
"""They want the whole terminal, or the server for a long time."""


class Tui(ConsoleCommand):
    """`tui`."""

    name = "tui"
    summary = "show the dashboard; q returns, escape opens a line for commands in it"
    group = "Console"
    example = "tui"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("-x", "--xterm", action="store_true", help="in a window of its own, which only looks")
        add("-l", "--locked", action="store_true", help="keys only: no line for commands")

    def answer(self, session: Session, options: argparse.Namespace) -> Answer:
        if options.xterm:
            return _in_window(session)
        from allosaur.cli.top import _run
        from allosaur.cli.top._source import Source
        from allosaur.cli.top._state import State

        _run.check_terminal("`stats` shows the same figures")
        with contextlib.ExitStack() as connections:
            source = Source(str(session.target), lambda: _clients(session, connections))
            source.open()
            state = State(readonly=session.settings.readonly, has_console=not options.locked)
            _run.on_terminal(source, state, INTERVAL_S, None if options.locked else _lines_of(session))
        return Answer("")


def _lines_of(session: Session) -> Callable[[str], str]:
    """Return what does a line, and gives the last line that it printed."""

    def do(text: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for part in _line.parts(text):
                if part.split()[0] in _NOT_INSIDE:
                    raise bad_input(f"{part.split()[0]}: not within the dashboard; q returns to the console")
                if _line.do(part, session) or session.is_over:
                    break
        told = [line.strip() for line in printed.getvalue().splitlines() if line.strip()]
        return told[-1] if told else "done"

    return do


def _clients(session: Session, connections: contextlib.ExitStack) -> Clients:
    """Return the console's client, and one of the other mode beside it where the server has both."""
    from allosaur import ASTFClient, STLError
    from allosaur.cli.top._reader import Clients

    connections.close()
    if not session.is_connected:
        session.connect()
        if not session.settings.readonly:
            with contextlib.suppress(STLError):  # whoever has the ports now is on the screen
                session.acquire(session.settings.ports, session.settings.force)
    own, other = session.client, None
    if own.has_both_modes():
        other = session.another_client(STATELESS if session.mode == STATEFUL else STATEFUL)
        other.connect()
        connections.callback(other.disconnect, stop_traffic=False)
    pair = [one for one in (own, other) if one is not None]
    return Clients(
        streams=next((one for one in pair if not isinstance(one, ASTFClient)), None),
        flows=next((one for one in pair if isinstance(one, ASTFClient)), None),
    )


def _in_window(session: Session) -> Answer:
    xterm = shutil.which("xterm")
    if xterm is None:
        raise CommandError("tui -x: xterm is not installed; `tui` shows the dashboard here")
    target = session.target
    command = [sys.executable, "-m", "allosaur.cli", "top", "--readonly", "--server", str(target)]
    subprocess.Popen(
        [
            xterm,
            "-geometry",
            "120x45",
            "-T",
            f"allosaur top {target}",
            "-e",
            *command,
            "--pub-port",
            str(target.pub_port),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return done("Opening the dashboard in a window:")
