"""What was counted of emulated clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allosaur.cli._options import FOREVER
from allosaur.run._result import Result


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


@dataclass(frozen=True)
class EmulationCounts(Result):
    """What became of emulated clients."""

    clients: Clients
    counters: Sequence[Counter] = ()
    """Those that are not zero."""
    ready_s: float | None = None
    """How long it took from their beginning until all were ready, as far as that was seen."""
    over_time: Sequence[tuple[float, Clients]] = ()
    duration_s: float = FOREVER

    @property
    def duration_asked_s(self) -> float:
        return self.duration_s

    @property
    def errors(self) -> list[Counter]:
        """Counters that stay zero where nothing goes wrong."""
        return [one for one in self.counters if one.is_error]
