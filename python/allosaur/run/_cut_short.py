"""A run that cannot go on: somebody took its ports over, or its server is gone.

It ends with what was measured until then, and says who or what ended it and when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from allosaur.cli._errors import CommandError, brief

UNTIL_THEN = "what is shown was counted until then"


class CutShort:
    """Watches over a load: `reason` says why it cannot go on, and is empty while it can."""

    def __init__(self, why_lost: Callable[[], str | None]) -> None:
        self.reason = ""
        self._why_lost = why_lost

    def check(self) -> None:
        """Raise `STLError` when the load cannot go on; for use inside of `noticed`."""
        from allosaur import STLError

        if why := self._why_lost():
            raise STLError(why)

    @contextmanager
    def noticed(self, doing: str) -> Iterator[None]:
        """End the block where the load is cut short, with the reason; other errors are raised.

        Raises :class:`CommandError`, which says what was done when it happened.
        """
        from allosaur import STLConnectionError, STLError

        try:
            yield
            self.check()
        except STLError as error:
            self.reason = self._why_lost() or ""
            if not self.reason and isinstance(error, STLConnectionError):
                self.reason = f"the server stopped answering at {time.strftime('%H:%M:%S')}"
            if not self.reason:
                raise CommandError(f"{doing}: {brief(error)}") from error
