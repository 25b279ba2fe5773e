"""What was counted of emulated clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Counter:
    """A counter of a plugin, summed over namespaces and their clients."""

    plugin: str
    name: str
    value: int
    unit: str = ""
    help: str = ""
    is_error: bool = False

    @property
    def full_name(self) -> str:
        """Its name with that of its plugin."""
        return f"{self.plugin}.{self.name}"


@dataclass(frozen=True)
class Clients:
    """Emulated clients at a time."""

    asked: int = 0
    """As many as the profile has."""
    there: int = 0
    ready: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    """How many of the others wait for what."""
    namespaces: int = 0
