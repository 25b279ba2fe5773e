"""A new kind of traffic is a load and a result: driver, verdict, thresholds, text, document, JUnit and report
take it as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._errors import CommandError
from allosaur.cli._interrupt import Interrupt
from allosaur.report._model import Headline, Report, Section
from allosaur.report._page import write_report
from allosaur.report._readings import Readings
from allosaur.run import (
    Load,
    Moment,
    Phase,
    Ran,
    Result,
    _drive,
    _junit,
    _summary,
    _thresholds,
    drive,
    judge,
    judge_by,
)
from allosaur.run._metrics import COUNT, Metric
from allosaur.run._progress import progress
from allosaur.run._thresholds import NONE, Thresholds
from allosaur.run._verdict import joined


@dataclass(frozen=True)
class Pings(Result):
    """So many pings were answered of those that were sent."""

    noun = "pings"
    sent: int
    answered: int

    @property
    def asked(self) -> str:
        return "pings"

    def reasons(self, thresholds: Thresholds = NONE) -> list[str]:
        lost = self.sent - self.answered
        return [f"{lost} pings were not answered"] if lost and not thresholds.decide("answers") else []

    def praise(self) -> str:
        return "all pings were answered"

    def tables(self) -> list[str]:
        return [f"sent {self.sent}"]

    def brief(self) -> tuple[str, str]:
        return f"{self.sent} pings", f"lost {self.sent - self.answered}"

    def fields(self) -> dict[str, Any]:
        return {"sent": self.sent, "answered": self.answered}

    def headlines(self) -> list[Headline]:
        return [Headline("sent", str(self.sent))]

    def sections(self) -> list[Section]:
        return []


class PingMoment(Moment):
    def said(self) -> str:
        return "pings"

    def blocks(self) -> list[str]:
        return []


class PingLoad(Load[Pings]):
    """Three looks long."""

    kind = "pings"
    metrics = (Metric("answers", COUNT, "answers", "answered", decides="answers"),)

    def __init__(self, name: str, answered: int = 3, starts: bool = True) -> None:
        self.name, self.profile, self.duration_s = name, f"{name}.py", 1.0
        self.answered, self.starts = answered, starts
        self.calls: list[str] = []

    def open(self) -> None:
        counted = iter(range(1, 10_000))
        self.readings = Readings(lambda: next(counted), 0, time.monotonic)

    def start(self) -> None:
        self.calls.append("start")
        if not self.starts:
            from allosaur import STLError

            raise STLError("the bell is broken")

    def phase(self, now_s: float) -> Phase:
        self.calls.append("phase")
        return Phase.OVER if self.calls.count("phase") > 3 else Phase.RUNNING

    def moment(self, now_s: float, phase: Phase) -> PingMoment:
        return PingMoment(now_s, self.duration_s)

    def stop(self) -> None:
        self.calls.append("stop")

    def result(self, ran: Ran) -> Pings:
        return Pings(sent=3, answered=self.answered, **vars(ran))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_drive, "_POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(_drive, "SAMPLE_INTERVAL_S", 0.0)
    yield


def driven(*loads: PingLoad) -> list[Pings]:
    with Interrupt() as interrupt, progress([one.name for one in loads]) as show:
        return drive(loads, interrupt, show)  # type: ignore[return-value]


def test_a_kind_goes_through_driver_verdict_thresholds_text_document_junit_and_report(tmp_path: Path) -> None:
    load = PingLoad("one", answered=2)
    (result,) = driven(load)
    assert (load.calls[0], load.calls[-1]) == ("start", "stop")
    assert judge(result).summary == "1 pings were not answered"
    held = judge_by(_thresholds.read(["answers<2"], PingLoad.metrics), result, _summary.document(result))
    assert held.summary == (
        "1 pings were not answered, which the thresholds allow; the threshold holds: answers is 2"
    )
    crossed = judge_by(_thresholds.read(["answers<3"], PingLoad.metrics), result, _summary.document(result))
    assert not crossed.ok
    assert "sent 3" in _summary.text(result, crossed)
    document = _summary.document(result, crossed)
    assert (document["answered"], document["ok"]) == (2, False)
    heading = {"profile": "one.py", "tool": {"version": "1"}, "started": "2026-01-01T00:00:00", "host": "h"}
    _junit.write_result(tmp_path / "j.xml", {**heading, **document})
    assert "answers is 2, and may not be &lt; 3" in (tmp_path / "j.xml").read_text(encoding="utf-8")
    write_report(tmp_path / "r.html", Report("pings", crossed.summary, False, {}, [result.part(crossed)]))
    assert "answers is 2" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_several_are_one_verdict_by_name() -> None:
    results = dict(zip(("one", "two"), driven(PingLoad("one"), PingLoad("two", answered=0)), strict=True))
    verdicts = {name: judge(one) for name, one in results.items()}
    verdict = joined(verdicts)
    assert verdict.reasons == ["two: 3 pings were not answered"]
    text = _summary.text_of_several(results, verdicts, verdict)
    assert "one   3 pings  lost 0" in text
    assert text.endswith("FAILED: two: 3 pings were not answered.")


def test_when_one_does_not_start_all_stop_and_it_is_named() -> None:
    first, second, third = PingLoad("one"), PingLoad("two", starts=False), PingLoad("three")
    with pytest.raises(CommandError, match=r"^two: the traffic did not start: the bell is broken$"):
        driven(first, second, third)
    assert first.calls == ["start", "stop"]
    assert second.calls == ["start", "stop"]
    assert third.calls == [], "it was not started"
