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
TIMES = {
    "connect": "connect",
    "handshake": "handshake",
    "first_byte": "first byte",
    "program": "whole program",
    "response_begin": "first byte of response",
    "response": "whole response",
}
"""The times of clients' flows, by the server's names, with what a table calls them."""
Times = Mapping[str, Mapping[str, float]]
"""Of each of `TIMES`: `count`, and where that is not 0 `min_us`, `p50_us` and so on."""


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


@dataclass(frozen=True)
class ApplicationCount:
    """A counter of what programs run over, such as handshakes of TLS by their kind."""

    name: str
    """The server's name for it, with its label: `tls_handshakes.full`."""
    is_error: bool
    client: int
    server: int

    @classmethod
    def from_reply(cls, row: Mapping[str, Any]) -> ApplicationCount:
        """Take a row of what a server tells."""
        name = ".".join(filter(None, (row["name"], row.get("label"))))
        return cls(name, bool(row["is_error"]), int(row["client"]), int(row["server"]))

    @property
    def label(self) -> str:
        """What tables call it."""
        name, _, label = self.name.partition(".")
        return " ".join(
            filter(None, (name.replace("tls_", "TLS ").replace("http_", "HTTP ").replace("_", " "), label))
        )

    def plus(self, other: ApplicationCount) -> ApplicationCount:
        """Add that of another profile."""
        return ApplicationCount(
            self.name, self.is_error, self.client + other.client, self.server + other.server
        )


FAILED_LABELS = frozenset(one.metadata["label"] for one in fields(SideOutcomes) if one.name in FAILED)
"""What tables call those ways."""


@dataclass(frozen=True)
class Outcomes:
    """How the flows of both sides ended."""

    client: SideOutcomes = SideOutcomes()
    server: SideOutcomes = SideOutcomes()
    times: Times = field(default_factory=dict)
    applications: tuple[ApplicationCount, ...] = ()

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Outcomes:
        """Take what a server tells of a profile, or of one of its template groups, which has no times."""
        client, server = (SideOutcomes.from_reply(reply[side]) for side in ("client", "server"))
        applications = tuple(ApplicationCount.from_reply(row) for row in reply.get("applications", ()))
        return cls(client, server, reply.get("times", {}), applications)

    def side(self, name: str) -> SideOutcomes:
        """Return those of `client` or `server`."""
        return self.client if name == "client" else self.server

    def plus(self, other: Outcomes) -> Outcomes:
        """Add those of another profile. Percentiles do not add up: of two with times, none are left."""
        times = [one.times for one in (self, other) if any(was_timed(time) for time in one.times.values())]
        client, server = plus(self.client, other.client), plus(self.server, other.server)
        applications = {one.name: one for one in self.applications}
        for one in other.applications:
            applications[one.name] = applications[one.name].plus(one) if one.name in applications else one
        return Outcomes(client, server, times[0] if len(times) == 1 else {}, tuple(applications.values()))

    def errors(self, side: str) -> dict[str, int]:
        """Return what went wrong in what the programs of a side run over, by name."""
        found = (
            (one.name, one.client if side == "client" else one.server)
            for one in self.applications
            if one.is_error
        )
        return {name: count for name, count in found if count}

    def rows(self) -> Iterator[tuple[str, list[int]]]:
        """Return what a table of totals shows of both sides: `completed`, and what is not 0."""
        for name, label, values in _fields.rows((self.client, self.server)):
            if any(values) or name == "completed":
                yield label, values
        for one in self.applications:
            if one.client or one.server:
                yield one.label, [one.client, one.server]

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
        both = (self.client, self.server)
        client, server = (
            side.to_json() | {one.name: getattr(one, name) for one in self.applications}
            for side, name in zip(both, ("client", "server"), strict=True)
        )
        return {"client": client, "server": server}


def was_timed(times: Mapping[str, float]) -> bool:
    """Whether something happened whose time is told."""
    return bool(times.get("count"))
