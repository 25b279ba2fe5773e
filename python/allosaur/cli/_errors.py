"""How a command ends: its exit codes, and the error that carries one.

Not here: printing. `_main.main` prints every error in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    from allosaur import STLConnectionError, STLError

    try:
        yield
    except STLConnectionError as error:
        # Whoever is to blame for a server that went away: it is not the command line.
        raise CommandError(f"{doing}: {brief(error)}", EXIT_FAILED) from error
    except STLError as error:
        raise CommandError(f"{doing}: {brief(error)}", exit_code) from error
