"""What is shown while loads run: live on a terminal, else a line of each now and then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from allosaur.cli._live import suited
from allosaur.run._drive import Show
from allosaur.run._load import Moment

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class _Shown:
    """The moments of all loads."""

    moments: Sequence[Moment]

    @property
    def elapsed_s(self) -> float:
        return max(one.elapsed_s for one in self.moments)


@contextlib.contextmanager
def progress(titles: Sequence[str], stream: TextIO | None = None) -> Iterator[Show]:
    """Show what the driver tells inside the block, of loads with these titles."""
    told: list[set[Any]] = [set() for _ in titles]

    def line(shown: _Shown) -> str:
        lines = [one.line(known) for one, known in zip(shown.moments, told, strict=True)]
        if len(lines) == 1:
            return lines[0]
        return "\n".join(f"{title}: {text}" for title, text in zip(titles, lines, strict=True))

    def view(shown: _Shown) -> RenderableType:
        from rich.console import Group

        return Group(*(one.view(title) for one, title in zip(shown.moments, titles, strict=True)))

    with suited(stream, view, line) as live:
        yield lambda moments: live.show(_Shown(moments))
