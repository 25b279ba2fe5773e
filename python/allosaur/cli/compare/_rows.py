"""A value of two results, and what the difference is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from allosaur.cli import _format

SAME, BETTER, WORSE, MISSING = "same", "better", "worse", "missing"


@dataclass(frozen=True)
class Row:
    """A value of both results; `None` where one has none."""

    name: str
    before: float | None
    after: float | None
    tolerance: float
    """The share of a difference that says nothing."""
    shown: Callable[[float], str]
    more_is_better: bool = True

    @property
    def change(self) -> float | None:
        """The difference, as a share of what it was."""
        return None if not self.before or self.after is None else self.after / self.before - 1

    @property
    def word(self) -> str:
        """What the difference is worth."""
        if self.before is None or self.after is None:
            # What never was cannot become worse.
            return SAME if self.before is self.after else BETTER if self.before is None else MISSING
        if self.before == 0:
            grew = self.after > 0
            return SAME if not grew else BETTER if self.more_is_better else WORSE
        change = self.change or 0.0
        if abs(change) <= self.tolerance:
            return SAME
        return BETTER if (change > 0) == self.more_is_better else WORSE

    @property
    def is_worse(self) -> bool:
        """Whether the second result falls behind here."""
        return self.word in (WORSE, MISSING)

    @property
    def change_text(self) -> str:
        """The change as people read it."""
        return "-" if self.change is None else f"{100 * self.change:+.2f} %"


def table(rows: list[Row]) -> str:
    """Return the table of both results."""
    cells = [
        [row.name, _said(row, row.before), _said(row, row.after), row.change_text, row.word] for row in rows
    ]
    return _format.table(["", "before", "after", "change", ""], cells)


def _said(row: Row, value: float | None) -> str:
    return "-" if value is None else row.shown(value)
