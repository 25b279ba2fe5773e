"""How a command shows what goes on: a live table on a terminal, a plain line every 2 s elsewhere.

All of it goes to the error stream, so that the standard output stays for the result.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

PLAIN_INTERVAL_S = 2.0
SPARKLINE_WIDTH = 40

Shown = TypeVar("Shown")


@contextlib.contextmanager
def showing(
    stream: TextIO | None, view: Callable[[Shown], RenderableType], line: Callable[[Shown], str]
) -> Iterator[Callable[[float, Shown], None]]:
    """Give what shows a moment, so many seconds after the start, in place of the one before.

    On a terminal it redraws what `view` makes of it, elsewhere it writes a `line`, if the last one is old
    enough. The stream is the error stream by default.
    """
    output = stream or sys.stderr
    if output.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(file=output), auto_refresh=False, transient=True) as live:
            yield lambda elapsed_s, moment: live.update(view(moment), refresh=True)
        return
    next_s = PLAIN_INTERVAL_S

    def write(elapsed_s: float, moment: Shown) -> None:
        nonlocal next_s
        if elapsed_s >= next_s:
            next_s = PLAIN_INTERVAL_S * (elapsed_s // PLAIN_INTERVAL_S + 1)
            print(line(moment), file=output, flush=True)

    yield write
