"""What a run of flows was to do, and what was counted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allosaur.cli._options import FOREVER
from allosaur.report._flow_counters import FlowCounters, FlowRates
from allosaur.run._result import Result

ALL_CLIENTS = 0xFFFFFFFF


@dataclass(frozen=True)
class FlowPlan:
    """What to do: which profile, how much of it and how long."""

    profile_id: str = "_"
    multiplier: float = 1.0
    duration_s: float = FOREVER
    """Seconds in which flows begin, or `FOREVER`."""
    latency_pps: int = 0
    ipv6: bool = False
    no_close: bool = False
    """End at once: leave open flows as they are."""
    client_mask: int = ALL_CLIENTS
    """The client ports whose clients begin flows, bit by bit."""
    establish_s: float = 0.0
    close_s: float = 0.0
    resetting: frozenset[str] = frozenset()
    """The sides ("client", "server") whose programs end connections with a reset: it may overtake bytes."""

    @property
    def servers_only(self) -> bool:
        """Whether no client begins anything: somebody else asks."""
        return self.client_mask == 0


@dataclass(frozen=True)
class FlowCounts(Result):
    """What clients and servers counted."""

    plan: FlowPlan
    counters: FlowCounters
    rates: Sequence[FlowRates] = ()
    latency: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Of each client port: `min_us`, `average_us`, `max_us`, `jitter_us`, `sent`, `received`."""
    groups: Mapping[str, FlowCounters] = field(default_factory=dict)
    """The counters of template groups, by name."""

    @property
    def is_cut_off_asked(self) -> bool:
        """Whether the user wanted flows to end with the test: he said when, or stopped it."""
        return self.plan.no_close or self.plan.close_s > 0 or self.exit_code is not None

    @property
    def trouble(self) -> list[tuple[str, str, int]]:
        """What went wrong, as (side, name, how often), but what was asked for."""
        return [one for one in self.counters.trouble() if not (one[1] == "cut_off" and self.is_cut_off_asked)]

    @property
    def is_comparable(self) -> bool:
        """Whether each flow ended as it should, so that what was sent must have arrived.

        Of others some bytes were under way; they failed already, or were asked for.
        """
        outcomes = self.counters.outcomes
        failed = 0 if outcomes is None else outcomes.client.failed() + outcomes.server.failed()
        return self.is_over and not self.plan.no_close and not failed
