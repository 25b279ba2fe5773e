"""What a search says of itself: a limit that did not hold again, all its trials, and the time left."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli import main
from allosaur.cli.ndr import _text
from allosaur.cli.ndr._bench import Case, Scale
from allosaur.cli.ndr._progress import SearchProgress
from allosaur.cli.ndr._result import CaseResult
from allosaur.search import NDR, PDR, Bounds, Journal, SearchPlan, Trial


def found(lost: int, share: float = 1.0, **plan: Any) -> CaseResult:
    """A search whose limit is 1,000 pps, and which was measured again there."""
    result = CaseResult(Case("case", Path("p.py")), Scale("pps", 2_000, 10), SearchPlan(10, 2_000, **plan))
    result.bounds = [Bounds(goal, 1_000.0, 1_004.0, 1_000.0) for goal in (NDR, PDR)]
    result.points = [(0.5, Trial(500, 10, 5_000, 0)), (share, Trial(1_000 * share, 10, 10_000, lost))]
    return result


def test_a_limit_that_does_not_hold_when_it_is_measured_again_is_no_success() -> None:
    told = _text.problem(found(lost=53))
    assert told is not None
    assert "the ndr that was found did not hold" in told
    assert "100 % of it: 1.00 kpps lost 0.53 %" in told
    assert "50 %" not in told


def test_a_limit_that_holds_is_found() -> None:
    assert _text.problem(found(lost=0)) is None
    assert _text.problem(found(lost=53, share=1.1)) is None, "above the limit there may be loss"
    assert _text.problem(found(lost=53, exceed_ratio=0.5)) is None, "some trials may fail"


def test_a_point_that_fails_a_criterion_does_not_hold_either() -> None:
    result = found(lost=0)
    result.points = [(0.5, Trial(500, 10, 5_000, 0, ["latency.p99>1ms: 2 ms"]))]
    assert "latency.p99>1ms" in (_text.problem(result) or "")


@pytest.mark.usefixtures("binary")
def test_all_trials_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = ("-d", "200ms", "--first-trial", "100ms", "--max", "2kpps", "--precision", "50%")
    more = ("--points", "50%", "--warm-up", "100ms", "--tests", "frame-loss")
    code = main(["ndr", "constant_stream", "--local", *quick, *more])
    ended = capsys.readouterr()
    assert code == 0, ended
    counted = re.search(r"^(\d+) trials of .* together, (\d+) of them to search;", ended.out, re.MULTILINE)
    assert counted is not None, ended.out
    trials, searched = map(int, counted.groups())
    # One to warm up, one at half the limit, and two of frame loss.
    assert trials == searched + 4
    assert max(map(int, re.findall(r"trial (\d+),", ended.err)), default=trials) <= trials


def test_what_is_left_has_the_trial_that_runs_and_those_after_the_search() -> None:
    plan = SearchPlan(10, 1_000, [NDR], trial_s=26.0, first_trial_s=26.0)
    scale = Scale("pps", 1_000, 10)
    journal = Journal(lambda load, duration_s: Trial(load, duration_s, 1_000, 0))
    shown: list[Any] = []
    progress = SearchProgress(shown.append)
    progress.case("case", 3 * 26.0)
    journal(1_000, 26.0)
    progress.ends(plan, journal, scale)
    progress.begins("the next", 26.0)
    assert shown[-1].left_s == 78, "the search is over, and three trials follow"
    progress.remains(26.0)
    progress.begins("100 % of ndr", 26.0)
    progress.runs(6.0)
    assert shown[-1].left == "about 20 s left"
    progress.remains(0.0)
    progress.begins("longer than was thought", 26.0)
    assert shown[-1].left == "about 26 s left"
    progress.remains(None)
    progress.begins("frame loss", 26.0)
    assert shown[-1].left == ""
