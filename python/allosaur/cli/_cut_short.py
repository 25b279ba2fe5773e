"""A run that cannot go on: somebody took its ports over, or its server is gone.

It ends with what was measured until then, and says who or what ended it and when.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, EXIT_SETUP, CommandError, brief

if TYPE_CHECKING:
    from allosaur import STLClient

UNTIL_THEN = "what is shown was counted until then"


class CutShort:
    """Watches over a run: `reason` says why it cannot go on, and is empty while it can."""

    def __init__(self, client: STLClient) -> None:
        self.reason = ""
        self._client = client
        self._ports = client.get_acquired_ports()

    def check(self) -> None:
        """Raise `STLError` when the run cannot go on; for use inside of `noticed`."""
        from allosaur import STLError

        if why := self._client.why_lost(self._ports):
            raise STLError(why)

    @contextmanager
    def noticed(self, doing: str) -> Iterator[None]:
        """End the block where the run is cut short, with the reason; other errors are raised.

        Raises :class:`CommandError`, which says what was done when it happened.
        """
        from allosaur import STLConnectionError, STLError

        try:
            yield
            self.check()
        except STLError as error:
            self.reason = self._client.why_lost(self._ports) or ""
            if not self.reason and isinstance(error, STLConnectionError):
                self.reason = f"the server stopped answering at {time.strftime('%H:%M:%S')}"
            if not self.reason:
                raise CommandError(f"{doing}: {brief(error)}") from error


class _Ended(Protocol):
    """What a run did."""

    @property
    def exit_code(self) -> int | None:
        """Set when a signal ended it."""
        ...

    @property
    def cut_short(self) -> str:
        """Why it could not go on."""
        ...


def exit_code(outcome: _Ended, ok: bool) -> int:
    """Return what a run exits with."""
    if outcome.exit_code is not None:
        return outcome.exit_code
    if outcome.cut_short:
        return EXIT_SETUP
    return EXIT_OK if ok else EXIT_FAILED
