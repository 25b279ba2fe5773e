"""How a command shows what goes on: a live table on a terminal, a plain line every 2 s elsewhere.

All of it goes to the error stream, so that the standard output stays for the result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_INTERVAL_S = 2.0
SPARKLINE_WIDTH = 40


class _Timed(Protocol):
    """A moment of a run."""

    @property
    def elapsed_s(self) -> float:
        """Since the start."""
        ...


Shown = TypeVar("Shown", bound=_Timed)
_Shown = TypeVar("_Shown", bound=_Timed, contravariant=True)


class Progress(Protocol[_Shown]):
    """Something that shows moments between its `__enter__` and its `__exit__`."""

    def __enter__(self) -> Progress[_Shown]:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        ...

    def show(self, moment: _Shown) -> None:
        """Show this moment in place of the one before."""
        ...


def suited(
    stream: TextIO | None, view: Callable[[Shown], RenderableType], line: Callable[[Shown], str]
) -> Progress[Shown]:
    """Return what suits the stream, the error stream by default: `view` live on a terminal, else a `line`."""
    stream = stream or sys.stderr
    return LiveTable(view, stream) if stream.isatty() else PlainLines(line, stream)


class PlainLines(Generic[Shown]):
    """What `line` says of a moment, every `PLAIN_INTERVAL_S`, for logs."""

    def __init__(self, line: Callable[[Shown], str], stream: TextIO) -> None:
        self._line = line
        self._stream = stream
        self._next_s = PLAIN_INTERVAL_S

    def __enter__(self) -> PlainLines[Shown]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, moment: Shown) -> None:
        """Write a line, if the last one is old enough."""
        if moment.elapsed_s < self._next_s:
            return
        self._next_s = PLAIN_INTERVAL_S * (moment.elapsed_s // PLAIN_INTERVAL_S + 1)
        print(self._line(moment), file=self._stream, flush=True)


class LiveTable(Generic[Shown]):
    """What `view` makes of a moment, at most 80 columns wide; it is redrawn in place."""

    def __init__(self, view: Callable[[Shown], RenderableType], stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._view = view
        self._live = Live(console=Console(file=stream), auto_refresh=False, transient=True)

    def __enter__(self) -> LiveTable[Shown]:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, moment: Shown) -> None:
        """Redraw."""
        self._live.update(self._view(moment), refresh=True)
