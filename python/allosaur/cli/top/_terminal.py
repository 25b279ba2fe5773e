"""Whether a dashboard can be drawn here, and what to do where it cannot."""

from __future__ import annotations

import os
import shutil
import sys

from allosaur.cli._errors import CommandError
from allosaur.cli.top._screen import HEIGHT_MIN, WIDTH_MIN

_DUMB = ("", "dumb", "unknown")
INSTEAD = "--once prints all of it once, --json an object for each reading"


def check(instead: str) -> None:
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
