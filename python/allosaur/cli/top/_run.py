"""The dashboard as programs use it: drawn on a terminal, printed once, or as objects of JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable

from allosaur.cli._errors import EXIT_OK, EXIT_SETUP, CommandError
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.top import _document, _screen
from allosaur.cli.top._reader import EVERYTHING
from allosaur.cli.top._screen import HEIGHT_MIN, WIDTH_MIN
from allosaur.cli.top._snapshot import Snapshot
from allosaur.cli.top._source import Lost, Source
from allosaur.cli.top._state import State

_DUMB = ("", "dumb", "unknown")
INSTEAD = "--once prints all of it once, --json an object for each reading"


def check_terminal(instead: str = INSTEAD) -> None:
    """Refuse a terminal on which it cannot be drawn. Raises :class:`CommandError`."""
    _check_streams(instead)
    try:
        import textual  # noqa: F401
    except ModuleNotFoundError as error:
        raise CommandError(
            f"textual is not installed, which draws the dashboard: `pip install textual`, or {instead}"
        ) from error


def on_terminal(
    source: Source, state: State, interval_s: float, command: Callable[[str], str] | None = None
) -> int:
    """Draw until a key ends it; return the exit code."""
    from allosaur.cli.top._app import Dashboard, run

    variables = dict(os.environ)
    try:
        return run(Dashboard(source, state, interval_s, command))
    finally:
        os.environ.update(variables)  # Textual takes NO_COLOR out


def once(source: Source, state: State) -> int:
    """Print all of it as text, once. Raises :class:`CommandError`."""
    state.take(_first(source))
    print(_screen.plain(state, max(shutil.get_terminal_size().columns, _screen.WIDTH_MIN)))
    return EXIT_OK


def one_document(source: Source) -> int:
    """Print one object. Raises :class:`CommandError`."""
    print(json.dumps(_document.document(_first(source), 0.0), indent=2))
    return EXIT_OK


def documents(source: Source, address: str, interval_s: float) -> int:
    """Print an object in each line until a signal comes; return its exit code. A server may go and come."""
    since_s = 0.0
    with Interrupt() as interrupt:
        while not interrupt:
            began_s = time.monotonic()
            try:
                snapshot = source.read(EVERYTHING)
                document = _document.document(snapshot, since_s)
                since_s = snapshot.clock_s
            except Lost as lost:
                document = _document.failure(address, str(lost), EXIT_SETUP)
            print(json.dumps(document), flush=True)
            interrupt.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))
    return interrupt.exit_code or EXIT_OK


def _first(source: Source) -> Snapshot:
    try:
        return source.read(EVERYTHING)
    except Lost as lost:
        raise CommandError(str(lost)) from lost


def _check_streams(instead: str) -> None:
    """Refuse what is no terminal, cannot move its cursor, or is too small. Raises :class:`CommandError`."""
    # Textual reads keys from the standard input and draws on the error stream.
    streams = (("input", sys.__stdin__), ("output", sys.__stdout__), ("error", sys.__stderr__))
    for name, stream in streams:
        if stream is None or not stream.isatty():
            raise CommandError(f"the standard {name} is not a terminal, which the dashboard needs: {instead}")
    term = os.environ.get("TERM", "")
    if term in _DUMB:
        raise CommandError(f"the terminal cannot move its cursor (TERM is '{term}'): {instead}")
    width, height = shutil.get_terminal_size()
    if width < WIDTH_MIN or height < HEIGHT_MIN:
        raise CommandError(
            f"the terminal has {width} columns and {height} lines, the dashboard needs {WIDTH_MIN} and "
            f"{HEIGHT_MIN}: enlarge it, or {instead}"
        )
