"""What became of emulated clients, with what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from allosaur.cli import _format
from allosaur.report._model import Chart, Headline, Section, Series, Table, number, text
from allosaur.report._numbers import count, share
from allosaur.run._result import Result, errors_headline
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run.emulation._counts import Clients, Counter

_COUNTERS_SHOWN = 20
"""More would only scroll away; the document has all."""
_NOTE = "Ready: a client that has its address and knows its gateway, as far as its profile asks for them."


@dataclass(frozen=True)
class EmulationResult(Result):
    """What became of emulated clients."""

    noun = "emulated clients"
    clients: Clients
    counters: Sequence[Counter] = ()
    """Those that are not zero."""
    ready_s: float | None = None
    """How long it took from their beginning until all were ready, as far as that was seen."""
    over_time: Sequence[tuple[float, Clients]] = ()

    @property
    def errors(self) -> list[Counter]:
        """Counters that stay zero where nothing goes wrong."""
        return [one for one in self.counters if one.is_error]

    @property
    def _others(self) -> list[Counter]:
        return [one for one in self.counters if not one.is_error]

    @property
    def asked(self) -> str:
        return _clients(self.clients.asked)

    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        return list(self._reasons(thresholds))

    def _reasons(self, thresholds: Thresholds) -> Iterator[str]:
        gone = self.clients.asked - self.clients.there
        if gone > 0 and not thresholds.decide("clients"):
            yield f"{gone:,} of {self.asked} were not there"
        waiting = {} if thresholds.decide("ready") else self.clients.waiting
        for what, waiters in waiting.items():
            yield f"{waiters:,} of {self.asked} waited for {what}"
        counted = [one for one in self.errors if not thresholds.decide(one.full_name)]
        if counted and not thresholds.decide("errors"):
            told = (f"{one.help or one.name}: {one.value:,} ({one.full_name})" for one in counted)
            yield f"errors were counted: {'; '.join(told)}"

    def praise(self) -> str:
        return f"{self.asked} were there and ready, and no errors were counted"

    def tables(self) -> list[str]:
        clients = self.clients
        rows = {
            "asked for": clients.asked,
            "there": clients.there,
            "ready": clients.ready,
            **{f"wait for {what}": waiters for what, waiters in clients.waiting.items()},
            "namespaces": clients.namespaces,
        }
        found = [
            _format.table(["emulated clients", ""], [[name, count(value)] for name, value in rows.items()])
        ]
        if self.counters:
            lines = [
                [f"{'! ' if one.is_error else '  '}{one.full_name}", count(one.value), one.help]
                for one in [*self.errors, *self._others][:_COUNTERS_SHOWN]
            ]
            found.append(_format.table(["  counter", "value", "meaning"], lines, texts=("meaning",)))
        return found

    def alarms(self) -> list[str]:
        return [f"! {one.full_name} {count(one.value)}: {one.help}" for one in self.errors]

    def ended(self) -> str:
        took = "" if self.ready_s is None else f"; all were ready after {_format.seconds(self.ready_s)}"
        return f"Ran {_format.seconds(self.elapsed_s)}{took}."

    def brief(self) -> tuple[str, str]:
        not_ready = max(self.clients.asked - self.clients.ready, 0)
        errors = sum(one.value for one in self.errors)
        return _clients(self.clients.there), f"not ready {count(not_ready)}, errors {count(errors)}"

    def fields(self) -> dict[str, Any]:
        return {
            "clients": asdict(self.clients),
            "ready_s": None if self.ready_s is None else round(self.ready_s, 3),
            "counters": {one.full_name: one.value for one in self.counters},
            "errors": [asdict(one) for one in self.errors],
        }

    def sections(self) -> list[Section]:
        waiting = [(what, count(waiters)) for what, waiters in self.clients.waiting.items()]
        waits = [text("waits for"), number("clients")]
        return [
            Section("Clients over time", [self._chart()], note=_NOTE),
            Section(
                "Clients that are not ready", tables=[Table("What they wait for at the end", waits, waiting)]
            ),
            Section("Errors of plugins", tables=[_table("Counters that should be zero", self.errors)]),
            Section("Counters of plugins", tables=[_table("What was counted of all clients", self._others)]),
        ]

    def headlines(self) -> Iterator[Headline]:
        asked, there, ready = self.clients.asked, self.clients.there, self.clients.ready
        yield Headline("Clients", count(there), f"of {count(asked)}", there < asked)
        yield Headline("Clients ready", count(ready), f"{share(ready, asked)} of them", ready < asked)
        yield errors_headline(sum(one.value for one in self.errors))
        if self.ready_s is not None:
            yield Headline("All were ready after", f"{self.ready_s:.3g} s")

    def _chart(self) -> Chart:
        series = [
            Series("there", [(at_s, float(one.there)) for at_s, one in self.over_time], is_filled=True),
            Series("ready", [(at_s, float(one.ready)) for at_s, one in self.over_time]),
        ]
        asked, there, ready = map(count, (self.clients.asked, self.clients.there, self.clients.ready))
        sentence = f"Of {asked} clients {there} were there at the end, {ready} were ready."
        return Chart(
            "Emulated clients", "at a time", series, sentence=sentence, name="clients", is_whole=True
        )


def _table(title: str, counters: Sequence[Counter]) -> Table:
    rows = [(one.full_name, one.help, count(one.value)) for one in counters]
    return Table(title, [text("counter"), text("meaning"), number("value")], rows)


def _clients(clients: int) -> str:
    return f"{count(clients)} client{'' if clients == 1 else 's'}"
