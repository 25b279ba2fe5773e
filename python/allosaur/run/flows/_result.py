"""What a run of flows did, with what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allosaur.cli import _format
from allosaur.report._model import Check, Headline, Section
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run.flows import _report, _tables, _verdict
from allosaur.run.flows._counts import FlowCounts
from allosaur.run.flows._hints import error_lines, hint


@dataclass(frozen=True)
class FlowResult(FlowCounts):
    """What a run of flows did."""

    noun = "flows"

    @property
    def asked(self) -> str:
        return f"{self.plan.multiplier:g} times the profile's flows"

    @property
    def ran(self) -> str:
        return f"{self.elapsed_s:.2f} s, and {self.closing_s:.2f} s more until flows were closed"

    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        return _verdict.reasons(self, thresholds)

    def praise(self) -> str:
        return _verdict.praise(self)

    def tables(self) -> list[str]:
        return _tables.tables(self)

    def alarms(self) -> list[str]:
        return error_lines(self.trouble)

    def ended(self) -> str:
        closing = f", closed flows for {_format.seconds(self.closing_s)}" if self.closing_s >= 0.1 else ""
        missed = _format.count(self.counters.missed_flows)
        return f"Ran {_format.seconds(self.elapsed_s)}{closing}; missed {missed}."

    def brief(self) -> tuple[str, str]:
        client, server = self.counters.client, self.counters.server
        flows = server.begun_flows if self.plan.servers_only else client.begun_flows
        missed = _format.count(self.counters.missed_flows)
        failed = _format.count(_verdict.failed_flows(self))
        return f"{_format.count(flows)} flows", f"failed {failed}, missed {missed}"

    def fields(self) -> dict[str, Any]:
        return _tables.fields(self)

    def headlines(self) -> Iterator[Headline]:
        return _report.headlines(self)

    def sections(self) -> list[Section]:
        return _report.sections(self)

    def checks(self, thresholds: Thresholds = NONE) -> list[Check]:
        return _report.checks(self, thresholds)

    @property
    def remedies(self) -> list[str]:
        """What to do about the first kinds of trouble."""
        found = dict.fromkeys(remedy for _, name, _ in self.trouble if (remedy := hint(name)))
        return list(found)[:3]
