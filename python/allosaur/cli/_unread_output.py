"""Output that nobody reads any more, as in `allosaur help | head -1`: no error, and no words about it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

from allosaur.cli._errors import EXIT_OK

Parameters = ParamSpec("Parameters")


def is_no_error(main: Callable[Parameters, int]) -> Callable[Parameters, int]:
    """Let a program end quietly when whoever read its output went away.

    What it printed may still lie in a buffer when it returns: Python would tell of that when it ends.
    """

    @functools.wraps(main)
    def run(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> int:
        try:
            try:
                exit_code = main(*arguments, **keywords)
            except SystemExit:  # --help of argparse ends this way
                _flush()
                raise
            _flush()
        except BrokenPipeError:
            _throw_away()
            return EXIT_OK
        return exit_code

    return run


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _throw_away() -> None:
    """Let what is still in the buffers go nowhere."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 # a name of the system, not a path
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                with contextlib.suppress(OSError, ValueError):  # a stream that is no file
                    os.dup2(nowhere.fileno(), stream.fileno())
