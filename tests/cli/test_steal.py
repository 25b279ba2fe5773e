"""Steal time is told to who missed load, and the demo measures again."""

from __future__ import annotations

from pathlib import Path

import pytest
from allosaur.cli._steal import StealTime
from allosaur.cli.demo import _run

IDLE = 100_000


def counters(folder: Path, used: int, stolen: int) -> Path:
    """A file as /proc/stat, with the sum of all CPUs first."""
    path = folder / "stat"
    path.write_text(
        f"cpu  {used} 0 0 {IDLE} 0 0 0 {stolen} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n", encoding="ascii"
    )
    return path


def test_the_share_is_of_what_was_wanted(tmp_path: Path) -> None:
    steal = StealTime(counters(tmp_path, used=1000, stolen=500))
    counters(tmp_path, used=1075, stolen=525)
    assert steal.share() == pytest.approx(0.25)
    (told,) = steal.told()
    assert "took away 25 % of the CPU time" in told


def test_next_to_nothing_is_not_told(tmp_path: Path) -> None:
    steal = StealTime(counters(tmp_path, used=1000, stolen=500))
    assert steal.told() == []
    counters(tmp_path, used=2000, stolen=505)
    assert 0 < steal.share() < 0.01
    assert steal.told() == []


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8"])
def test_a_kernel_that_counts_otherwise_is_no_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stat"
    path.write_text(text, encoding="ascii")
    assert StealTime(path).told() == StealTime(tmp_path / "nothing").told() == []


def test_only_a_server_here_shares_this_machine() -> None:
    here = StealTime.of_server("127.0.0.1")
    assert here._before is not None
    assert StealTime.of_server("localhost")._before is not None
    assert StealTime.of_server("::1")._before is not None
    assert StealTime.of_server("192.0.2.7")._before is None
    assert StealTime.of_server("server.example")._before is None


class Steals:
    """A host that takes something away while the first few measurements are done."""

    def __init__(self, times: int) -> None:
        self.times = times

    def told(self) -> list[str]:
        self.times -= 1
        return ["stolen"] if self.times >= 0 else []


@pytest.mark.parametrize(
    ("disturbed", "outcomes", "given", "done"),
    [
        (0, [True, False], True, 1),
        (1, [True, False], False, 2),
        (2, [True, True, False], False, 3),
        (9, [True, True, True, False], True, 3),
        (9, [False], False, 1),
    ],
)
def test_the_demo_measures_again(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    disturbed: int,
    outcomes: list[bool],
    given: bool,
    done: int,
) -> None:
    steals = Steals(disturbed)
    monkeypatch.setattr(_run, "StealTime", lambda: steals)
    left = list(outcomes)
    assert _run.undisturbed(lambda: left.pop(0), lambda missed: missed) is given
    assert len(outcomes) - len(left) == done
    said = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(said) == done - 1
    assert all("Load was missed: stolen. Once more" in line for line in said)
