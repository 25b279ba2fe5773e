"""How a command ends: its exit codes, and the error that carries one.

Not here: printing. `_main.main` prints every error in one place.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXIT_OK = 0
EXIT_FAILED = 1
"""The run lost packets, did not reach its load, or failed on the way."""
EXIT_USAGE = 2
"""The command line, or a file it names, is wrong. Nothing was sent."""
EXIT_INTERRUPTED = 130
"""Ctrl-C, as a shell counts it: 128 + SIGINT."""
EXIT_TERMINATED = 143
"""SIGTERM, as a shell counts it: 128 + SIGTERM."""


class CommandError(Exception):
    """A command cannot go on. The message says what, in what, and what to do.

    `exit_code` is what the process ends with.
    """

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bad_input(message: str) -> CommandError:
    """Return the error for a wrong command line or a wrong file."""
    return CommandError(message, EXIT_USAGE)


def brief(error: BaseException) -> str:
    """Return an exception's message as one paragraph, without its class where it speaks for itself."""
    message = str(getattr(error, "msg", None) or error).strip()
    if not message:
        return type(error).__name__
    return " ".join(line.strip() for line in message.splitlines() if line.strip())


@contextmanager
def explained(doing: str, exit_code: int = EXIT_FAILED) -> Iterator[None]:
    """Turn the client's errors inside the block into a :class:`CommandError` that says what was done."""
    from allosaur import STLError

    try:
        yield
    except STLError as error:
        raise CommandError(f"{doing}: {brief(error)}", exit_code) from error


def profile_failure(path: Path, error: BaseException) -> CommandError:
    """Return the error for a profile whose own code failed, with the line in the profile that did."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename or path}, line {error.lineno}"
        return bad_input(f"{where}: {error.msg}; correct the profile and run again")
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if _same(frame.filename, path)
    ]
    where = f"{path}, line {lines[-1]}" if lines else str(path)
    return bad_input(f"{where}: {type(error).__name__}: {brief(error)}; correct the profile and run again")


def _same(filename: str, path: Path) -> bool:
    return Path(filename).name == path.name and Path(filename).exists() and Path(filename).samefile(path)
