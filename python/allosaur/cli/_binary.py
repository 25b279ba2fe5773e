"""The server binary, or an error that says how to get it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from allosaur.cli._errors import CommandError, brief


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
