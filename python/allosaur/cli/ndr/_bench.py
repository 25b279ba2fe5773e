"""What a search is made with, of streams or of flows: the profile on the server, and trials of a load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from allosaur.cli import _format
from allosaur.search import Trial

Show = Callable[[float], None]
"""Is told now and then how many seconds the traffic of a trial has run."""


@dataclass(frozen=True)
class Case:
    """One profile with its tunables: what gets a limit of its own."""

    name: str
    path: Path
    tunables: Mapping[str, Any] = field(default_factory=dict)
    frame_bytes: int | None = None
    """The frame size that was asked for, with FCS."""


@dataclass(frozen=True)
class Scale:
    """What loads of a case are in other units. A load of streams is packets a second of each port."""

    unit: str
    """`pps`, or `times` for a factor of a stateful profile's flows."""
    load_max: float
    load_min: float
    bps_l1: float | None = None
    """Bits a second at layer 1 that a load of one is."""
    bps_l2: float | None = None
    line_percent: float | None = None
    """Percent of the line rate that a load of one is."""
    flows_per_second: float | None = None

    def said(self, load: float) -> str:
        """Return a load as people read it."""
        if self.unit == "pps":
            return _format.rate(load, "pps")
        return f"{load:,.4g} times"

    def rates(self, load: float | None) -> dict[str, float] | None:
        """Return a load in all units that there are, as plain data."""
        if load is None:
            return None
        factors = {
            "bps_l1": self.bps_l1,
            "bps_l2": self.bps_l2,
            "line_percent": self.line_percent,
            "flows_per_second": self.flows_per_second,
        }
        known = {name: round(load * one, 6) for name, one in factors.items() if one is not None}
        return {"load": load, **known}


class Bench(Protocol):
    """Makes trials on a server whose ports this program owns."""

    mode: str
    """`stateless` or `stateful`."""
    ports: Sequence[int]
    """The ports that send, or whose clients open flows."""
    server_counters: Mapping[str, Any]
    """What the server counted of itself while the last trial ran, where a plug-in asks for it."""
    exit_code: int | None
    """What to exit with, when a signal or somebody else ended the trials."""

    def put(self, case: Case) -> Scale:
        """Put the profile of a case onto the server. Raises :class:`CommandError`."""
        ...

    def trial(self, load: float, duration_s: float, show: Show) -> Trial:
        """Send a load and count. Raises :class:`CommandError`, and `Stopped` when no more can follow."""
        ...
