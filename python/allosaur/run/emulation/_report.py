"""What the report of a run shows of its emulated clients: how many were ready when, and what was counted."""

from __future__ import annotations

from allosaur.report import Chart, Headline, Part, Section, Series, Table, count, number, share, text
from allosaur.run._part import errors_headline, part_of
from allosaur.run._verdict import Verdict
from allosaur.run.emulation._counts import EmulationCounts

_NOTE = "Ready: a client that has its address and knows its gateway, as far as its profile asks for them."


def part(outcome: EmulationCounts, verdict: Verdict) -> Part:
    """Return the part of the report."""
    return part_of("emulated clients", outcome, verdict, headlines(outcome), sections(outcome))


def headlines(outcome: EmulationCounts) -> list[Headline]:
    """Return the numbers that stand first."""
    clients = outcome.clients
    asked, ready = clients.asked, clients.ready
    found = [
        Headline("Clients", count(clients.there), f"of {count(asked)}", clients.there < asked),
        Headline("Clients ready", count(ready), f"{share(ready, asked)} of them", ready < asked),
        errors_headline(sum(one.value for one in outcome.errors)),
    ]
    if outcome.ready_s is not None:
        found.append(Headline("All were ready after", f"{outcome.ready_s:.3g} s"))
    return found


def sections(outcome: EmulationCounts) -> list[Section]:
    """Return the charts and tables."""
    waiting = [(what, count(clients)) for what, clients in outcome.clients.waiting.items()]
    rows = [(one.full_name, one.help, count(one.value)) for one in outcome.counters if not one.is_error]
    errors = [(one.full_name, one.help, count(one.value)) for one in outcome.errors]
    columns = [text("counter"), text("meaning"), number("value")]
    return [
        Section("Clients over time", [_clients_chart(outcome)], note=_NOTE),
        Section(
            "Clients that are not ready",
            tables=[Table("What they wait for at the end", [text("waits for"), number("clients")], waiting)],
        ),
        Section("Errors of plugins", tables=[Table("Counters that should be zero", columns, errors)]),
        Section("Counters of plugins", tables=[Table("What was counted of all clients", columns, rows)]),
    ]


def _clients_chart(outcome: EmulationCounts) -> Chart:
    clients = outcome.clients
    series = [
        Series("there", [(at_s, float(one.there)) for at_s, one in outcome.over_time], is_filled=True),
        Series("ready", [(at_s, float(one.ready)) for at_s, one in outcome.over_time]),
    ]
    said = f"Of {count(clients.asked)} clients {count(clients.there)} were there at the end"
    return Chart(
        *("Emulated clients", "at a time", series),
        sentence=f"{said}, {count(clients.ready)} were ready.",
        name="clients",
        is_whole=True,
    )
