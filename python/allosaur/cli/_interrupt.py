"""Signals while traffic runs: noticed between two calls to the server, never in one.

They are Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed.

An exception in the middle of a call would leave the socket waiting for an answer, and then the traffic
could not be stopped. So the signal only sets a flag here; the loop that drives the traffic looks at it.
A second Ctrl-C means it: it raises `KeyboardInterrupt` where the program stands.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Any

from allosaur.cli._errors import EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED

_EXIT_CODES = {
    signal.SIGINT: EXIT_INTERRUPTED,
    signal.SIGTERM: EXIT_TERMINATED,
    signal.SIGHUP: EXIT_HUNG_UP,
}
_NAP_S = 0.05


class Interrupt:
    """Catches Ctrl-C, SIGTERM and SIGHUP inside a `with` block. A SIGHUP that `nohup` ignores stays so."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        """What to exit with, once a signal came; `None` before."""
        self._before: dict[int, Any] = {}
        self._terminals: list[Any] = []

    def __enter__(self) -> Interrupt:
        self._terminals = [stream for stream in (sys.stdout, sys.stderr) if _is_terminal(stream)]
        for number in _EXIT_CODES:
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
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
        if number == signal.SIGHUP:
            # More of them come when a session ends. What cannot be written must not stop the tidying.
            _leave_closed(self._terminals)
            self.exit_code = self.exit_code or EXIT_HUNG_UP
            return
        if self.exit_code is not None:
            raise KeyboardInterrupt
        self.exit_code = _EXIT_CODES[signal.Signals(number)]


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # closed, or none at all
        return False


def _leave_closed(terminals: list[Any]) -> None:
    """Let what is written to a terminal that is gone go nowhere: writing to it would be an error."""
    for stream in terminals:
        if not _is_terminal(stream):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
