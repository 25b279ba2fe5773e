"""What became of emulated clients, with what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from allosaur.cli import _format
from allosaur.report import Part
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run._verdict import Verdict
from allosaur.run.emulation import _report
from allosaur.run.emulation._counts import Counter, EmulationCounts

_COUNTERS_SHOWN = 20
"""More would only scroll away; the document has all."""


@dataclass(frozen=True)
class EmulationResult(EmulationCounts):
    """What became of emulated clients."""

    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        return list(self._reasons(thresholds))

    def _reasons(self, thresholds: Thresholds) -> Iterator[str]:
        clients = self.clients
        gone = clients.asked - clients.there
        if gone > 0 and not thresholds.decide("clients"):
            yield f"{gone:,} of {_clients(clients.asked)} were not there"
        waiting = {} if thresholds.decide("ready") else clients.waiting
        for what, count in waiting.items():
            yield f"{count:,} of {_clients(clients.asked)} waited for {what}"
        counted = [one for one in self.errors if not thresholds.decide(one.full_name)]
        if counted and not thresholds.decide("errors"):
            yield f"errors were counted: {'; '.join(map(_told, counted))}"

    def praise(self) -> str:
        return f"{_clients(self.clients.asked)} were there and ready, and no errors were counted"

    def tables(self) -> list[str]:
        clients = self.clients
        rows = [
            ["asked for", _format.count(clients.asked)],
            ["there", _format.count(clients.there)],
            ["ready", _format.count(clients.ready)],
            *([f"wait for {what}", _format.count(count)] for what, count in clients.waiting.items()),
            ["namespaces", _format.count(clients.namespaces)],
        ]
        found = [_format.table(["emulated clients", ""], rows)]
        shown = self._shown()
        if shown:
            lines = [
                [
                    f"{'! ' if one.is_error else '  '}{one.full_name}",
                    _format.count(one.value),
                    one.help,
                ]
                for one in shown
            ]
            found.append(_format.table(["  counter", "value", "meaning"], lines, texts=("meaning",)))
        return found

    def alarms(self) -> list[str]:
        return [f"! {one.full_name} {_format.count(one.value)}: {one.help}" for one in self.errors]

    def ended(self) -> str:
        took = "" if self.ready_s is None else f"; all were ready after {_format.seconds(self.ready_s)}"
        return f"Ran {_format.seconds(self.elapsed_s)}{took}."

    def brief(self) -> tuple[str, str]:
        clients = self.clients
        errors = sum(one.value for one in self.errors)
        not_ready = max(clients.asked - clients.ready, 0)
        return _clients(
            clients.there
        ), f"not ready {_format.count(not_ready)}, errors {_format.count(errors)}"

    def fields(self) -> dict[str, Any]:
        return {
            "clients": asdict(self.clients),
            "ready_s": None if self.ready_s is None else round(self.ready_s, 3),
            "counters": {one.full_name: one.value for one in self.counters},
            "errors": [asdict(one) for one in self.errors],
        }

    @property
    def asked(self) -> str:
        return _clients(self.clients.asked)

    def part(self, verdict: Verdict) -> Part:
        return _report.part(self, verdict)

    def _shown(self) -> list[Counter]:
        return [*self.errors, *(one for one in self.counters if not one.is_error)][:_COUNTERS_SHOWN]


def _told(one: Counter) -> str:
    return f"{one.help or one.name}: {one.value:,} ({one.full_name})"


def _clients(count: int) -> str:
    return f"{_format.count(count)} client{'' if count == 1 else 's'}"
