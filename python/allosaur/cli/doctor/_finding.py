"""A finding about a machine, and how much it matters to who wants ports of some kinds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

OK = "ok"
IMPROVE = "improve"
MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """What was found in one place; good as it is, unless `why` says what it costs."""

    name: str
    found: str
    why: str = ""
    commands: tuple[str, ...] = ()
    """What to type, exactly; a line that begins with `#` is for the reader."""
    breaks: tuple[str, ...] = ()
    """The kinds of ports that do not work as it is."""
    breaks_all: bool = False
    """Whether no ports work as it is, of whatever kind."""

    def level(self, wanted: Collection[str]) -> str:
        """Return how it stands, for who wants these kinds of ports."""
        if not self.why:
            return OK
        is_missing = self.breaks_all or any(kind in wanted for kind in self.breaks)
        return MISSING if is_missing else IMPROVE
