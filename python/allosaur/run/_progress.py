"""What is shown while loads run: live on a terminal, else a line of each now and then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from allosaur.cli._live import showing
from allosaur.run._drive import Show
from allosaur.run._load import Moment

if TYPE_CHECKING:
    from rich.console import RenderableType


@contextlib.contextmanager
def progress(titles: Sequence[str], stream: TextIO | None = None) -> Iterator[Show]:
    """Show what the driver tells inside the block, of loads with these titles."""
    told: list[set[Any]] = [set() for _ in titles]

    def line(moments: Sequence[Moment]) -> str:
        lines = [one.line(known) for one, known in zip(moments, told, strict=True)]
        if len(lines) == 1:
            return lines[0]
        return "\n".join(f"{title}: {text}" for title, text in zip(titles, lines, strict=True))

    def view(moments: Sequence[Moment]) -> RenderableType:
        from rich.console import Group

        return Group(*(one.view(title) for one, title in zip(moments, titles, strict=True)))

    with showing(stream, view, line) as show:
        yield lambda moments: show(max(one.elapsed_s for one in moments), moments)
