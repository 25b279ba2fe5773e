"""Ctrl-C and SIGTERM while traffic runs: noticed between two calls to the server, never in one.

An exception in the middle of a call would leave the socket waiting for an answer, and then the traffic
could not be stopped. So the signal only sets a flag here; the loop that drives the traffic looks at it.
A second Ctrl-C means it: it raises `KeyboardInterrupt` where the program stands.
"""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any

from allosaur.cli._errors import EXIT_INTERRUPTED, EXIT_TERMINATED

_EXIT_CODES = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}
_NAP_S = 0.05


class Interrupt:
    """Catches Ctrl-C and SIGTERM inside a `with` block."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        """What to exit with, once a signal came; `None` before."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        for number in _EXIT_CODES:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        """Say whether a signal came."""
        return self.exit_code is not None

    def sleep(self, duration_s: float) -> None:
        """Sleep, but not past a signal."""
        end = time.monotonic() + duration_s
        while not self and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _NAP_S))

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.exit_code is not None:
            raise KeyboardInterrupt
        self.exit_code = _EXIT_CODES[signal.Signals(number)]
