"""What the dashboard shows and knows: which view, which ports, what was read last. No client, no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from allosaur.cli.top._history import History
from allosaur.cli.top._reader import Wanted
from allosaur.cli.top._snapshot import Latency, Note, Port, Snapshot


class View(Enum):
    """What the middle of the screen shows; the value is its key."""

    DASHBOARD = "d"
    STREAMS = "s"
    LATENCY = "l"
    FLOWS = "t"
    EMULATION = "E"
    UTILIZATION = "u"
    INFO = "i"
    EVENTS = "e"
    KEYS = "?"


class Page(Enum):
    """What the view of utilization shows."""

    CORES = "cores"
    POOLS = "packet memory"
    DRIVERS = "drivers' counters"


class Change(Enum):
    """What a key asks of the server."""

    CLEAR = "clear"
    PAUSE = "pause"
    RESUME = "resume"
    FASTER = "faster"
    SLOWER = "slower"
    ACQUIRE = "acquire"
    RELEASE = "release"


@dataclass(frozen=True)
class Action:
    """A change, and the ports that it is about."""

    change: Change
    ports: tuple[int, ...]


@dataclass
class State:
    """A dashboard: what it was told, and what its keys made of it."""

    readonly: bool = False
    has_console: bool = False
    """Whether ESC opens a line for commands."""
    ports: list[int] | None = None
    """The ports that are shown; `None` until the first snapshot, then those that are ours, or all."""
    snapshot: Snapshot | None = None
    history: History = field(default_factory=History)
    lost: str | None = None
    """Why the server does not answer; `None` while it does."""
    message: Note | None = None
    """What the last key came to."""
    view: View = View.DASHBOARD
    page: Page = Page.CORES
    is_histogram: bool = False
    is_dynamic: bool = False
    chosen: int = 0
    """Which of several things the view is about: a latency stream, a template group, the first port."""
    scrolled: int = 0
    """How many rows are above the first that is shown."""
    rows_hidden: int = 0
    """How many rows below the last that is shown there are, as it was last drawn."""

    def take(self, snapshot: Snapshot) -> None:
        """Show this from now on."""
        if self.lost is not None:
            self.history.interrupt()
        self.snapshot, self.lost = snapshot, None
        self.history.add(snapshot)
        everything = [port.number for port in snapshot.ports]
        if self.ports is None:
            self.ports = snapshot.ours or everything
        self.ports = [number for number in self.ports if number in everything]

    def lose(self, reason: str) -> None:
        """Say that the server is away; what was read last stays on the screen."""
        self.lost = reason

    def tell(self, text: str, at_s: float, is_warning: bool = False) -> None:
        """Say what a key came to."""
        self.message = Note(at_s, text, is_warning)

    def show(self, view: View) -> None:
        """Show another view, from its top."""
        if view is not self.view:
            self.view, self.chosen, self.scrolled, self.is_dynamic = view, 0, 0, False

    def scroll(self, by: int) -> None:
        """Move the rows, as far as some are hidden."""
        self.scrolled = max(0, self.scrolled + min(by, self.rows_hidden))

    def choose(self, by: int) -> None:
        """Go to the next or the one before, and stay at the ends."""
        self.chosen = max(0, min(self.chosen + by, len(self.choices) - 1))
        self.scrolled = 0

    @property
    def choices(self) -> Sequence[object]:
        """What left and right choose from."""
        if self.snapshot is None:
            return ()
        if self.view is View.LATENCY:
            return self.latency if self.is_histogram else ()
        if self.view is View.FLOWS:
            return (None, *(self.snapshot.flows.choices if self.snapshot.flows is not None else ()))
        return self.shown_ports if self.view is View.INFO else ()

    @property
    def shown_ports(self) -> list[Port]:
        """The ports that are shown."""
        found = [] if self.snapshot is None else self.snapshot.ports
        return [port for port in found if port.number in (self.ports or ())]

    @property
    def latency(self) -> tuple[Latency, ...]:
        """What is measured."""
        return () if self.snapshot is None else self.snapshot.latency

    @property
    def wanted(self) -> Wanted:
        """What shall be read for the screen."""
        has_choice = self.view is View.FLOWS and 0 < self.chosen < len(self.choices)
        return Wanted(
            flows=True,
            flows_of=self.choices[self.chosen] if has_choice else None,  # type: ignore[arg-type]
            dynamic=self.view is View.FLOWS and self.is_dynamic,
            cores=True,
            attributes=self.view is View.INFO,
            driver_counters=self.view is View.UTILIZATION and self.page is Page.DRIVERS,
        )
