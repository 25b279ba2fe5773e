"""The server binary, or an error that says how to get it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from allosaur.cli._errors import EXIT_SETUP, EXIT_USAGE, CommandError, brief


def server_binary() -> str:
    """Return the path of `allosaur-server`. Raises :class:`CommandError` when there is none."""
    from allosaur import STLError
    from allosaur.server import find_binary

    try:
        return str(find_binary())
    except STLError as error:
        raise CommandError(brief(error)) from error


def become_server_binary(words: Sequence[str]) -> NoReturn:
    """Let the server binary take this process over, with these words. Comes back only with an error."""
    binary = server_binary()
    sys.stdout.flush()
    try:
        os.execv(binary, [binary, *words])
    except OSError as error:
        raise CommandError(f"cannot start {binary}: {error.strerror}") from error


def exit_code_of(returncode: int) -> int:
    """Return our exit code for a binary that was refused its input, or that did not work."""
    return EXIT_USAGE if returncode == EXIT_USAGE else EXIT_SETUP


def last_words(text: str) -> str:
    """Return the server's own error, without the `error:` that ours begins with anyway."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    message = (errors or lines or ["the simulator failed without a word"])[-1]
    return message.removeprefix("error:").removeprefix("Error:").strip()
