"""Where the standard output of a command goes: to the terminal, into the file of `--json FILE`, or nowhere.

The commands print as ever; they only know whether they print JSON (`options.json`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from allosaur.cli import _output_file

STDOUT = "-"
"""Where `--json` alone writes."""


def prepare(options: argparse.Namespace) -> None:
    """Split `--json` into whether and where. Raises :class:`CommandError` when it cannot be there."""
    given = options.json
    options.json = given is not None
    options.json_file = None
    if given not in (None, STDOUT):
        options.json_file = _output_file.checked("--json", given)


@contextlib.contextmanager
def directed(options: argparse.Namespace, is_result: bool) -> Iterator[None]:
    """Have the standard output inside the block where the options want it.

    With `is_result` what the command prints is what it was asked for, which `--quiet` leaves alone.
    """
    if options.json_file is not None:
        with _into_file(options.json_file, options.quiet):
            yield
        return
    if not options.quiet:
        yield
        return
    is_wanted = is_result or options.json or getattr(options, "output", None) == STDOUT
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        if not is_wanted:
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        yield


def become_file(options: argparse.Namespace) -> None:
    """Have the standard output of the program that takes this process over in the file of `--json FILE`."""
    if options.json_file is not None:
        with options.json_file.open("wb") as file:
            os.dup2(file.fileno(), 1)


@contextlib.contextmanager
def _into_file(path: Path, quiet: bool) -> Iterator[None]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.ExitStack() as stack:
        if quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        yield
    _output_file.write("--json", path, printed.getvalue())
    if not quiet:
        print(_line(path, printed.getvalue()))
        sys.stdout.flush()


def _line(path: Path, text: str) -> str:
    """Return what to say beside the file: the verdict, where there is one."""
    try:
        result = json.loads(text)
    except ValueError:
        return f"Wrote {path}."
    word = "OK" if result.get("ok") else "FAILED"
    return f"{word}: {result['verdict']}. Wrote {path}." if "verdict" in result else f"Wrote {path}."
