"""What a run of streams did, with what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allosaur.cli import _format
from allosaur.report._model import Headline, Section
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run.streams import _report, _tables, _verdict
from allosaur.run.streams._counts import StreamOutcome


@dataclass(frozen=True)
class StreamResult(StreamOutcome):
    """What a run of streams did."""

    noun = "streams"

    @property
    def asked(self) -> str:
        return f"{self.plan.multiplier} from port {','.join(map(str, self.plan.ports))}"

    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        return _verdict.reasons(self, thresholds)

    def praise(self) -> str:
        return _verdict.praise(self)

    def tables(self) -> list[str]:
        return _tables.tables(self)

    def ended(self) -> str:
        return f"Ran {_format.seconds(self.elapsed_s)}; {self.brief()[1]}."

    def brief(self) -> tuple[str, str]:
        lost, missed = _format.count(self.lost_packets), _format.count(self.missed_packets)
        return f"sent {_format.count(self.total.tx_packets)} packets", f"lost {lost}, missed {missed}"

    def fields(self) -> dict[str, Any]:
        return _tables.fields(self)

    def headlines(self) -> Iterator[Headline]:
        return _report.headlines(self)

    def sections(self) -> list[Section]:
        return _report.sections(self)
