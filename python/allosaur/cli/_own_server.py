"""A server that a command starts for itself, and why it does not start, in the words of the command."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allosaur.cli._errors import EXIT_SETUP, EXIT_USAGE, CommandError, brief

if TYPE_CHECKING:
    from allosaur.server import LocalServer

_HELP_OF_BINARY = re.compile(r" \(see allosaur-server[^)]*\)")


@contextlib.contextmanager
def started(server: LocalServer) -> Iterator[LocalServer]:
    """Run a server inside the block. Raises :class:`CommandError` when it does not start."""
    from allosaur import STLError
    from allosaur._errors import ServerStartError

    try:
        server.start()
    except ServerStartError as error:
        reason = _HELP_OF_BINARY.sub("", " ".join(error.reason.split()))
        # What the user wrote behind --local-ports is --ports of the server.
        reason = re.sub(r"^--ports\b", "--local-ports", reason)
        code = EXIT_USAGE if error.exit_code == EXIT_USAGE else EXIT_SETUP
        raise CommandError(f"the server of this run did not start: {reason}", code) from error
    except STLError as error:
        raise CommandError(brief(error)) from error
    try:
        yield server
    finally:
        server.stop()
