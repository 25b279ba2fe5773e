"""The server binary, or an error that says how to get it."""

from __future__ import annotations

from allosaur.cli._errors import CommandError, brief


def server_binary() -> str:
    """Return the path of `allosaur-server`. Raises :class:`CommandError` when there is none."""
    from allosaur import STLError
    from allosaur.server import find_binary

    try:
        return str(find_binary())
    except STLError as error:
        raise CommandError(brief(error)) from error
