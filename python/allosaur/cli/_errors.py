"""How a command ends: its exit codes, and the error that carries one.

`_main.main` prints every error in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from allosaur.cli import _remedies

EXIT_OK = 0
EXIT_FAILED = 1
"""The device under test failed: packets were lost, the load was not reached, or nobody answered."""
EXIT_USAGE = 2
"""The input is wrong: an option, a profile, a file. Nothing was sent."""
EXIT_SETUP = 3
"""The test could not be made: no server, a port that somebody else owns, a missing privilege."""
EXIT_INTERRUPTED = 130
"""Ctrl-C, as a shell counts it: 128 + SIGINT."""
EXIT_HUNG_UP = 129
"""The terminal was closed, as a shell counts it: 128 + SIGHUP."""
EXIT_TERMINATED = 143
"""SIGTERM, as a shell counts it: 128 + SIGTERM."""


class CommandError(Exception):
    """A command cannot go on. The message says what, in what, and what to do.

    `exit_code` is what the process ends with.
    """

    def __init__(self, message: str, exit_code: int = EXIT_SETUP) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bad_input(message: str) -> CommandError:
    """Return the error for a wrong command line or a wrong file."""
    return CommandError(message, EXIT_USAGE)


def brief(error: BaseException) -> str:
    """Return an exception's message as one paragraph, without its class where it speaks for itself.

    Remedies are in the words of whoever types commands.
    """
    message = str(getattr(error, "msg", None) or error).strip()
    if not message:
        return type(error).__name__
    return _remedies.told(" ".join(line.strip() for line in message.splitlines() if line.strip()))


@contextmanager
def explained(doing: str, exit_code: int = EXIT_SETUP) -> Iterator[None]:
    """Turn the client's errors inside the block into a :class:`CommandError` that says what was done.

    `exit_code` is for what the server refuses; for its absence it is always that of the set-up.
    """
    from allosaur import STLConnectionError, STLError

    try:
        yield
    except STLConnectionError as error:
        raise CommandError(f"{doing}: {brief(error)}", _of_connection(error)) from error
    except STLError as error:
        raise CommandError(f"{doing}: {brief(error)}", exit_code) from error


def refusal(error: BaseException) -> CommandError | None:
    """Return an error that no command expected as one for the user, or `None` when it is a defect."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, OSError) and error.filename is not None:
        return CommandError(f"{error.filename}: {error.strerror or brief(error)}")
    from allosaur import STLConnectionError, STLError
    from allosaur._errors import STLArgumentError, STLPacketError, STLProfileError, STLTypeError

    if isinstance(error, STLConnectionError):
        return CommandError(brief(error), _of_connection(error))
    if isinstance(error, (STLArgumentError, STLPacketError, STLProfileError, STLTypeError)):
        return bad_input(brief(error))
    return CommandError(brief(error)) if isinstance(error, STLError) else None


def _of_connection(error: BaseException) -> int:
    """Return the exit code for a server that is not there, unless it says that its input is wrong."""
    return EXIT_USAGE if getattr(error, "exit_code", None) == EXIT_USAGE else EXIT_SETUP
