"""The standard output and error: what stands for characters that they lack, and what to say when they fail.

An output may have an encoding without the dashes and bars of our tables (`PYTHONIOENCODING=latin-1`, an old
terminal); it may be closed, or on a file system that is full. That nobody reads it any more, as in
`allosaur help | head -1`, is no error.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from allosaur.cli._errors import EXIT_OK, CommandError

_TAKES_NOTHING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_HANDLER = "allosaur.plain"
_PLAIN = {
    **dict.fromkeys("\u2500\u2501\u2550\u2574\u2576\u2578\u257a", "-"),
    **dict.fromkeys("\u2502\u2503\u2551", "|"),
    **dict.fromkeys("\u250c\u2510\u2514\u2518\u251c\u2524\u252c\u2534\u253c", "+"),
    **dict.fromkeys("\u2581\u2582\u2583", "."),
    **dict.fromkeys("\u2584\u2585\u2586", "o"),
    **dict.fromkeys("\u2587\u2588", "#"),
    "\u00b5": "u",
    "\u00d7": "x",
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
    "\u2190": "<-",
    "\u2192": "->",
    "\u2264": "<=",
    "\u2265": ">=",
}
"""What stands for a character where the encoding lacks it; `?` for all others."""


def prepare() -> None:
    """Have both streams write what their encoding has, instead of failing in the middle of a result."""
    codecs.register_error(_HANDLER, _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started us (`>&-`): what is printed goes nowhere.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def named(error: BaseException) -> BaseException:
    """Return an error of an output that takes nothing any more as one that says so, others as they are."""
    if not isinstance(error, OSError) or error.errno not in _TAKES_NOTHING or error.filename is not None:
        return error
    give_up()
    return CommandError(f"what is printed cannot be written: {error.strerror}; make room, or write elsewhere")


def give_up() -> None:
    """Let what is printed from now on go nowhere, and what could not be written so far."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """Print on the standard error, as far as that is possible."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end]
    plain = "".join(_PLAIN.get(character, "?") for character in wanted)
    return plain, error.end


Parameters = ParamSpec("Parameters")


def unread_is_no_error(main: Callable[Parameters, int]) -> Callable[Parameters, int]:
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
            _drop_rest()
            return EXIT_OK
        return exit_code

    return run


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _drop_rest() -> None:
    """Let what is still in the buffers go nowhere."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 # a name of the system, not a path
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                with contextlib.suppress(OSError, ValueError):  # a stream that is no file
                    os.dup2(nowhere.fileno(), stream.fileno())
