"""What a kind of traffic is in a run: how it is set up, started, watched and stopped.

In a run these are called in order, each for all loads before the next: `connect`, `claims`, `check` (nothing
is sent), `put` (all is on the server), and by the driver `open`, `start`, `phase` and `sample` until it is
over, `stop`, `settle`, `result`; then `clear`. A load that is driven alone may be set up by its constructor.
"""

from __future__ import annotations

import argparse
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from allosaur.cli import _format
from allosaur.cli._fitted import Cell, FittedLine
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._live import SPARKLINE_WIDTH
from allosaur.cli._options import FOREVER, Tunable
from allosaur.run._metrics import Metric
from allosaur.run._result import Ran, Result
from allosaur.run._thresholds import Threshold

if TYPE_CHECKING:
    from rich.console import RenderableType

    from allosaur.report._readings import Readings

ResultT_co = TypeVar("ResultT_co", bound=Result, covariant=True)
ClientT = TypeVar("ClientT")


class Phase(Enum):
    """How far a load is."""

    RUNNING = auto()
    CLOSING = auto()
    """Nothing new begins; what began may end."""
    OVER = auto()


class Server(Protocol):
    """Where a run's loads are: gives clients of it."""

    def client(self, kind: type[ClientT]) -> AbstractContextManager[ClientT]:
        """Connect a client of this class; disconnect it at the end."""
        ...


@dataclass(frozen=True)
class Asked:
    """A profile of a run, as the command line names it."""

    options: argparse.Namespace
    path: Path
    name: str
    ports: Sequence[int] | None
    """Those that it should have, where somebody said so, or where several share a server."""
    multiplier: str
    tunables: Sequence[Mapping[str, Tunable]] = ()
    is_one_of_several: bool = False
    has_own_ports: bool = False
    """Whether the user named ports for just this one."""


@dataclass(frozen=True)
class Moment(ABC):
    """What is known while a load runs: shown as progress."""

    elapsed_s: float
    duration_s: float
    """Seconds that it should run, or `FOREVER`."""

    @property
    def clock(self) -> str:
        """How long the load has run, and of how long."""
        if self.duration_s == FOREVER:
            return f"{self.elapsed_s:.1f} s"
        return f"{self.elapsed_s:.1f} of {self.duration_s:g} s"

    @abstractmethod
    def said(self) -> str:
        """Return it in a few words."""

    def line(self, told: set[Any]) -> str:
        """Return it as a line of a log; `told` keeps what need not be said again."""
        return f"{self.clock}: {self.said()}"

    @abstractmethod
    def blocks(self) -> Sequence[RenderableType]:
        """Return what a terminal shows of it: lines and tables that fit any width."""

    def view(self, title: str) -> RenderableType:
        """Return it as a live table."""
        from rich.console import Group

        return Group(FittedLine(title, f"  {self.clock}  (Ctrl-C stops)"), *self.blocks())


def sparkline(name: str, history: Sequence[float], unit: str) -> FittedLine:
    """Return a line that shows the last values of a rate."""
    now = _format.rate(history[-1] if history else 0.0, unit)
    return FittedLine(f"{name}  {_format.sparkline(history, SPARKLINE_WIDTH)}", f"  {now}")


def alarm(value: int | None) -> Cell:
    """Return a cell with a count that should be zero."""
    return _format.count(value), "bold red" if value else ""


class Load(ABC, Generic[ResultT_co]):
    """A kind of traffic in a run: what it needs, what it does, and what came of it."""

    kind: ClassVar[str]
    """Its word in documents."""
    metrics: ClassVar[Sequence[Metric]] = ()
    """What thresholds may be about."""
    name: str = ""
    """What it is called in a run of several."""
    profile: str = ""
    """The file that it is of."""
    duration_s: float = FOREVER
    """Seconds in which it makes its load, or `FOREVER`."""
    shown_metrics: ClassVar[tuple[str, ...]] = ()
    """How families of the server's registry begin that its result shows already."""
    order: ClassVar[int] = 0
    """Loads of a lower order are put onto the server first: others may need what they do."""
    linger_s: float = 0.0
    """What began may take so long after that."""
    readings: Readings[Any]
    """What is counted, over time; `open` makes it."""

    @classmethod
    def read(cls, asked: Asked) -> Load[Any]:
        """Read what a command line asks for. Raises :class:`CommandError`: it needs no server."""
        raise NotImplementedError(f"{cls.__name__} is not read from a profile")

    def metric(self, name: str) -> Metric | None:
        """Return a metric that is not among `metrics`, but is known by the form of its name."""
        return None

    def claims(self) -> Collection[int | str]:
        """Return what it needs for itself: ports by number, all else in words."""
        return ()

    @property
    def used_ports(self) -> Collection[int]:
        """The ports of which counters are of this load."""
        return [claim for claim in self.claims() if isinstance(claim, int)]

    @property
    def port_count(self) -> int:
        """How many ports a server of its own needs for it."""
        return 2

    def asked(self) -> dict[str, Any]:
        """Return what a document says of the request, beside what the result has."""
        return {}

    @contextlib.contextmanager
    def connect(self, server: Server) -> Iterator[None]:
        """Connect to the server, until the end of the block."""
        yield

    def check(self, thresholds: Sequence[Threshold]) -> None:
        """Refuse what cannot work before anything is sent. Raises :class:`CommandError`.

        Ports are owned from here on.
        """

    def put(self, interrupt: Interrupt) -> None:
        """Put onto the server what is to run, and wait for what it needs. Raises :class:`CommandError`."""

    @abstractmethod
    def open(self) -> None:
        """Read the counters from which this run counts, into `readings`."""

    @abstractmethod
    def start(self) -> None:
        """Start. Returns when the server has confirmed it."""

    @abstractmethod
    def phase(self, now_s: float) -> Phase:
        """Return how far it is, so many seconds after its start."""

    def sample(self) -> None:
        """Read the counters."""
        self.readings.sample()

    @abstractmethod
    def moment(self, now_s: float, phase: Phase) -> Moment:
        """Return what the last reading says."""

    @abstractmethod
    def stop(self) -> None:
        """Stop what may still run."""

    def settle(self, elapsed_s: float) -> None:
        """Read the counters for the last time, when what is still under way has arrived."""
        self.sample()

    @abstractmethod
    def result(self, ran: Ran) -> ResultT_co:
        """Return what came of it."""

    def clear(self) -> None:
        """Take from the server what this put there."""

    @property
    def host(self) -> str:
        """The machine of its server; empty where nobody knows."""
        return ""

    @property
    def has_missed(self) -> bool:
        """Whether load was missed, so that it is worth a word who took the CPU time."""
        return False

    def why_lost(self) -> str | None:
        """Return why it cannot go on: somebody took its ports, or the server is gone; `None` while it can."""
        return None


class PortLoad(Load[ResultT_co]):
    """A load on ports that a client of the server owns."""

    client: Any
    profile_warnings: Sequence[str] = ()
    """What its profile was warned of when it was read."""
    _owned: Sequence[int] = ()

    @property
    def host(self) -> str:
        return str(self.client.get_connection_info()["server"])

    def why_lost(self) -> str | None:
        lost: str | None = self.client.why_lost(self._owned)
        return lost

    def warnings(self, impossible: Iterable[tuple[str, int]], *more: str) -> list[str]:
        """Return what the server warns of, and of packets that by the clocks arrived before they were sent.

        `impossible` are the names of what was measured, and how many of its packets have no time.
        """
        return [
            *map(str, self.client.get_warnings()),
            *more,
            *(
                f"{name}: {packets:,} packets arrived, by the clocks, before they were sent: their times are "
                "in no number of latency; see that nothing sets the system's clock while you measure"
                for name, packets in impossible
                if packets
            ),
        ]
