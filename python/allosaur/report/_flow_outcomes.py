"""How flows ended: each end of ours in one way, and what clients got and how long it took.

Only `completed` is as it should be. A server of TRex's does not tell: there are no outcomes then, and nobody
may read that as zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from allosaur.report import _fields
from allosaur.report._fields import counter, plus

FAILED = ("reset", "closed_early", "timed_out", "refused", "cut_off", "aborted")
"""The ways in which a flow ends before its program did."""
HTTP_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")
"""What clients got for requests of HTTP/1: the class of its status, or something without a status line."""
TIMES = {"connect": "connect", "first_byte": "first byte", "program": "whole program"}
"""The times of clients' flows, by the server's names, with what a table calls them."""
Times = Mapping[str, Mapping[str, float]]
"""Of `connect`, `first_byte` and `program`: `count`, and where that is not 0 `min_us`, `p50_us` and so on."""


@dataclass(frozen=True)
class SideOutcomes:
    """How the flows of one side ended."""

    completed: int = counter(label="completed flows")
    reset: int = counter(label="reset by the peer")
    closed_early: int = counter(label="closed early by the peer")
    timed_out: int = counter(label="timed out")
    refused: int = counter(label="refused")
    cut_off: int = counter(label="cut off by the end")
    aborted: int = counter(label="given up here")
    unanswered: int = counter(label="got no data")
    """Flows that waited for data and ended without any, in whichever way."""
    http_1xx: int = counter(label="HTTP 1xx responses")
    http_2xx: int = counter(label="HTTP 2xx responses")
    http_3xx: int = counter(label="HTTP 3xx responses")
    http_4xx: int = counter(label="HTTP 4xx responses")
    http_5xx: int = counter(label="HTTP 5xx responses")
    http_other: int = counter(label="HTTP other responses")

    @classmethod
    def from_reply(cls, side: Mapping[str, int]) -> SideOutcomes:
        """Take one side of what a server tells; what it does not know is 0."""
        return cls(**{one.name: int(side.get(one.name, 0)) for one in fields(cls)})

    @property
    def responses(self) -> int:
        """What clients got for requests of HTTP/1, of whatever class."""
        return sum(self.count(f"http_{name}") for name in HTTP_CLASSES)

    def count(self, name: str) -> int:
        """Return one of the counts by its name."""
        return int(getattr(self, name))

    def failed(self) -> int:
        """Count the flows that ended before their program did."""
        return sum(self.count(name) for name in FAILED)

    def to_json(self) -> dict[str, int]:
        """Return the counts as plain data."""
        return _fields.plain(self)


FAILED_LABELS = frozenset(one.metadata["label"] for one in fields(SideOutcomes) if one.name in FAILED)
"""What tables call those ways."""


@dataclass(frozen=True)
class Outcomes:
    """How the flows of both sides ended."""

    client: SideOutcomes = SideOutcomes()
    server: SideOutcomes = SideOutcomes()
    times: Times = field(default_factory=dict)

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Outcomes:
        """Take what a server tells of a profile, or of one of its template groups, which has no times."""
        client, server = (SideOutcomes.from_reply(reply[side]) for side in ("client", "server"))
        return cls(client, server, reply.get("times", {}))

    def side(self, name: str) -> SideOutcomes:
        """Return those of `client` or `server`."""
        return self.client if name == "client" else self.server

    def plus(self, other: Outcomes) -> Outcomes:
        """Add those of another profile. Percentiles do not add up: of two with times, none are left."""
        times = [one.times for one in (self, other) if any(was_timed(time) for time in one.times.values())]
        client, server = plus(self.client, other.client), plus(self.server, other.server)
        return Outcomes(client, server, times[0] if len(times) == 1 else {})

    def rows(self) -> Iterator[tuple[str, list[int]]]:
        """Return what a table of totals shows of both sides: `completed`, and what is not 0."""
        for name, label, values in _fields.rows((self.client, self.server)):
            if any(values) or name == "completed":
                yield label, values

    def timed(self) -> Iterator[tuple[str, int, Mapping[str, float]]]:
        """Return what a table calls each time of clients' flows that was measured, of how many, and it."""
        for name, label in TIMES.items():
            if was_timed(times := self.times.get(name, {})):
                yield label, int(times["count"]), times

    def failures(self) -> list[tuple[str, str, int]]:
        """Return how many flows ended before their program did, as (side, outcome, how many)."""
        found = [
            (side, name, self.side(side).count(name)) for side in ("client", "server") for name in FAILED
        ]
        return [one for one in found if one[2]]

    def to_json(self) -> dict[str, Any]:
        """Return the counts of both sides as plain data, without the times."""
        return {"client": self.client.to_json(), "server": self.server.to_json()}


def was_timed(times: Mapping[str, float]) -> bool:
    """Whether something happened whose time is told."""
    return bool(times.get("count"))
