"""A widget of lines that writes to the terminal only what changed, for slow links.

Textual writes a line of a widget from the widget's left edge up to the last cell that changed. So lines are
shown by stripes, each a widget of a few columns: what changes at the right rewrites nothing at the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from allosaur.cli.top._table import Line, Look

# The terminal's own colours: short to write, and right on a dark background and on a light one.
_STYLES = {
    Look.PLAIN: Style(),
    Look.DIM: Style(dim=True),
    Look.TITLE: Style(bold=True),
    Look.CHOSEN: Style(reverse=True),
    Look.KEY: Style(bold=True, color="cyan"),
    Look.GOOD: Style(color="green"),
    Look.BAD: Style(bold=True, color="red"),
    Look.BARS: Style(color="cyan"),
}
STRIPE = 8
"""How many columns a stripe has: to move the cursor takes about as many bytes."""

Letter = tuple[str, Look]
_BLANK: Letter = (" ", Look.PLAIN)


class Lines(Widget):
    """As many lines as it is high; `draw` puts others in their place."""

    DEFAULT_CSS = "Lines { layout: horizontal; height: 1fr; width: 1fr; overflow: hidden; }"

    def __init__(self) -> None:
        super().__init__()
        self._stripes: list[Stripe] = []

    def draw(self, lines: Sequence[Line], width: int) -> None:
        """Show these, on so many columns."""
        missing = -(-width // STRIPE) - len(self._stripes)
        if missing > 0:
            new = [Stripe() for _ in range(missing)]
            self._stripes += new
            self.mount(*new)
        letters = [[(letter, cell.look) for cell in line for letter in cell.text] for line in lines]
        for number, stripe in enumerate(self._stripes):
            first = number * STRIPE
            stripe.draw([line[first : first + STRIPE] for line in letters])


class Stripe(Widget):
    """A few columns of all lines."""

    DEFAULT_CSS = f"Stripe {{ width: {STRIPE}; height: 1fr; }}"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[list[Letter]] = []

    def draw(self, lines: Sequence[Sequence[Letter]]) -> None:
        """Show these."""
        new = [[*line, *([_BLANK] * (STRIPE - len(line)))] for line in lines]
        old, self._lines = self._lines, new
        if len(old) != len(new):
            self.refresh()
        elif changed := list(changes(old, new)):
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """Return a line as Textual wants it."""
        if y >= len(self._lines):
            return Strip.blank(STRIPE)
        parts = groupby(self._lines[y], key=lambda letter: letter[1])
        return Strip(
            [Segment("".join(text for text, _ in part), _STYLES[look]) for look, part in parts], STRIPE
        )


def changes(old: Sequence[Sequence[Letter]], new: Sequence[Sequence[Letter]]) -> Iterator[Region]:
    """Return where lines of the same number and width differ: of each the part that has all that changed."""
    for y, (before, after) in enumerate(zip(old, new, strict=True)):
        different = [x for x, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
        if different:
            yield Region(different[0], y, different[-1] + 1 - different[0], 1)
