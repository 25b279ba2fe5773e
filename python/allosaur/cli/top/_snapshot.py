"""What was read of a server at one moment, in the words of the screen: no client, no terminal.

Rates are the server's own, over its last second; times of latency are microseconds, as in its counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allosaur.cli import _emulated
from allosaur.cli._modes import STATEFUL
from allosaur.report._flow_outcomes import FAILED_LABELS

if TYPE_CHECKING:
    from allosaur.metrics import Metrics

PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9"}


@dataclass(frozen=True)
class Server:
    """Who answers."""

    address: str
    version: str
    modes: tuple[str, ...]
    """STATELESS, STATEFUL or both."""
    uptime_s: float | None
    """`None` where the server does not tell, as TRex's."""
    core_count: int


@dataclass(frozen=True)
class Run:
    """Traffic of a profile that runs, on a port or, of flows, on the server."""

    port: int | None
    profile: str
    multiplier: float
    running_s: float
    duration_s: float | None


@dataclass(frozen=True)
class Port:
    """A port: who has it, what it does, and what it counts."""

    number: int
    kind: str
    mode: str
    owner: str
    is_ours: bool
    state: str
    """The server's word, such as TX."""
    is_up: bool
    speed_bps: float
    counters: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What it is, read only for the screen that shows it."""
    driver_counters: Mapping[str, int] = field(default_factory=dict)
    """Likewise."""

    @property
    def errors(self) -> int:
        """Frames that could not be sent or received as they should."""
        return int(self.counters.get("oerrors", 0)) + int(self.counters.get("ierrors", 0))


@dataclass(frozen=True)
class Group:
    """A packet group of streams."""

    number: int
    tx_pkts: int
    rx_pkts: int
    tx_bytes: int
    rx_bytes: int
    tx_pps: float
    rx_pps: float
    tx_bps: float
    rx_bps: float
    missed: int

    @property
    def lost(self) -> int:
        """Packets that were sent and not received: lost, or still on their way."""
        return self.tx_pkts - self.rx_pkts


@dataclass(frozen=True)
class Latency:
    """What a latency stream, or the echo requests of a port beside flows, measured."""

    name: str
    sent: int
    received: int
    times_usec: Mapping[str, float | None]
    """min, average, max, last_max, jitter, and the names of PERCENTILES; `None` where nobody counts it."""
    histogram: Mapping[int, int]
    """Packets by the lower bound of a bucket."""
    errors: Mapping[str, int]


@dataclass(frozen=True)
class Flows:
    """What flows count: those of all profiles, of one, or of a template group of it."""

    of: str
    client: Mapping[str, float]
    server: Mapping[str, float]
    errors: Mapping[str, str]
    """The counters that must be zero and are not, and what they mean."""
    outcomes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How flows of clients and of servers ended, in words: `completed flows`, and what is not zero."""
    choices: tuple[tuple[str, str | None], ...] = ()
    """Profiles, and their template groups (`None`: all of the profile)."""

    @property
    def failed(self) -> int:
        """Flows that ended before their program did, as the side counts that knows of more."""
        sides = zip(*(self.outcomes[label] for label in self.outcomes if label in FAILED_LABELS), strict=True)
        return max(map(sum, sides), default=0)


@dataclass(frozen=True)
class Core:
    """A data thread: how busy it was, in percent, newest first."""

    ports: tuple[int, ...]
    history: tuple[float, ...]


@dataclass(frozen=True)
class Pool:
    """A pool of packet memory."""

    socket: str
    size: str
    total: int
    used: int


@dataclass(frozen=True)
class Note:
    """An event: when, by the clock of this machine, what, and whether it is a warning."""

    at_s: float
    text: str
    is_warning: bool


@dataclass(frozen=True)
class Snapshot:
    """All that was read at once."""

    at_s: float
    """By a clock that only goes on."""
    clock_s: float
    """By the clock of this machine."""
    server: Server
    totals: Mapping[str, float]
    ports: tuple[Port, ...]
    groups: tuple[Group, ...] = ()
    latency: tuple[Latency, ...] = ()
    flows: Flows | None = None
    cores: tuple[Core, ...] = ()
    pools: tuple[Pool, ...] = ()
    runs: tuple[Run, ...] = ()
    notes: tuple[Note, ...] = ()
    metrics: Metrics | None = None
    """Of the server's registry what is shown of it; `None` where it has none, as TRex's."""

    def port(self, number: int) -> Port | None:
        """Return a port by its number."""
        return next((one for one in self.ports if one.number == number), None)

    @property
    def ours(self) -> list[int]:
        """The ports that this program owns."""
        return [one.number for one in self.ports if one.is_ours]

    @property
    def emulated(self) -> int:
        """How many clients are emulated."""
        return 0 if self.metrics is None else _emulated.count(self.metrics)

    @property
    def has_flows(self) -> bool:
        """Whether the server is for flows, perhaps among others."""
        return STATEFUL in self.server.modes
