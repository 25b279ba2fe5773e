"""The search for limits, against devices that are a function of load and duration, under virtual time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from allosaur.search import (
    ALGORITHMS,
    NDR,
    PDR,
    Goal,
    Journal,
    SearchPlan,
    Stopped,
    Trial,
    find,
    relevant_bounds,
    time_left_s,
)
from hypothesis import given, settings
from hypothesis import strategies as st

LIMIT_PPS = 1e6
LOSSY_ABOVE_PPS = 800e3
LOSS_RATIO = 1e-4
RFC2544_TRIAL_S = 60.0


@dataclass
class Device:
    """Carries `limit_pps`, and loses `loss_ratio` of what it carries above `lossy_above_pps`.

    With a seed the losses are drawn, packet by packet; without, there are as many as are expected.
    """

    limit_pps: float = LIMIT_PPS
    lossy_above_pps: float = LOSSY_ABOVE_PPS
    loss_ratio: float = LOSS_RATIO
    seed: int | None = None
    virtual_s: float = 0.0
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def __call__(self, load: float, duration_s: float) -> Trial:
        self.virtual_s += duration_s
        offered = int(load * duration_s)
        carried = min(offered, int(self.limit_pps * duration_s))
        lost = 0
        if load > self.lossy_above_pps:
            expected = carried * self.loss_ratio
            lost = round(expected) if self.seed is None else self._drawn(expected)
        return Trial(load, duration_s, offered, offered - carried + min(lost, carried))

    def _drawn(self, expected: float) -> int:
        """How many of very many rare events come: by Poisson, near enough by Gauss where there are many."""
        if expected > 50:
            return max(round(self.random.gauss(expected, math.sqrt(expected))), 0)
        threshold, product, count = math.exp(-expected), self.random.random(), 0
        while product > threshold:
            product *= self.random.random()
            count += 1
        return count


def plan(algorithm: str, load_max: float = 14.88e6, **more: object) -> SearchPlan:
    settings: dict[str, object] = {"trial_s": RFC2544_TRIAL_S, "algorithm": algorithm, **more}
    return SearchPlan(1000.0, load_max, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("load_max", [1.2e6, 14.88e6, 148.8e6])
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_limits_are_found_within_one_percent(algorithm: str, seed: int | None, load_max: float) -> None:
    (ndr, pdr), stopped = find(plan(algorithm, load_max), Journal(Device(seed=seed)))
    assert stopped == ""
    assert ndr.lower == pytest.approx(LOSSY_ABOVE_PPS, rel=0.01)
    assert ndr.lower <= LOSSY_ABOVE_PPS < ndr.upper
    # The highest load of which 0.5 % is lost is a little above what the device carries.
    assert pdr.throughput == pytest.approx(LIMIT_PPS, rel=0.01)
    assert pdr.lower == pytest.approx(LIMIT_PPS / (1 - PDR.loss_ratio), rel=0.01)
    for bounds in (ndr, pdr):
        assert bounds.width is not None
        assert bounds.width <= 0.005
        assert bounds.is_complete


@pytest.mark.parametrize("load_max", [1.2e6, 14.88e6, 148.8e6])
@pytest.mark.parametrize("seed", range(2))
def test_mlrsearch_needs_fewer_seconds_than_binary_search(seed: int, load_max: float) -> None:
    seconds = {}
    for algorithm in ("mlr", "binary"):
        device = Device(seed=seed)
        found, _ = find(plan(algorithm, load_max), Journal(device))
        assert all(one.width is not None and one.width <= 0.005 for one in found), algorithm
        seconds[algorithm] = device.virtual_s
    assert seconds["mlr"] < seconds["binary"] / 2, f"seed {seed}: {seconds}"


def test_the_guided_search_needs_no_more_than_the_binary_one() -> None:
    seconds = {}
    for algorithm in ("guided", "binary"):
        journal = Journal(Device())
        find(plan(algorithm), journal)
        seconds[algorithm] = journal.seconds
    assert seconds["guided"] <= seconds["binary"]


curves = st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 0.9)), min_size=1, max_size=6)


def loss_curve(steps: list[tuple[float, float]]) -> Callable[[float], float]:
    """A loss that grows in steps with the load, which is a share of the highest."""
    at, grown = sorted(share for share, _ in steps), sorted(loss for _, loss in steps)

    def loss(share: float) -> float:
        return max((grown[place] for place, start in enumerate(at) if share > start), default=0.0)

    return loss


@settings(max_examples=40, deadline=None)
@given(
    steps=curves,
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    precision=st.sampled_from([0.002, 0.01, 0.05]),
)
def test_bounds_enclose_the_limit_of_any_growing_loss(
    steps: list[tuple[float, float]], algorithm: str, precision: float
) -> None:
    loss_of, load_max = loss_curve(steps), 1e6

    def measure(load: float, duration_s: float) -> Trial:
        offered = int(load * duration_s)
        return Trial(load, duration_s, offered, math.ceil(offered * loss_of(load / load_max)))

    goals = (NDR, PDR, Goal("half", 0.5))
    wanted = SearchPlan(100.0, load_max, goals, algorithm, precision, 10.0, 1.0)
    journal = Journal(measure)
    found, stopped = find(wanted, journal)
    assert stopped == ""
    assert len(journal.trials) < 200
    for bounds in found:
        goal = bounds.goal
        if bounds.upper is None:
            assert bounds.lower == pytest.approx(load_max)
            assert measure(load_max, 10.0).passes(goal)
            continue
        assert any(
            trial.load == pytest.approx(bounds.upper) and not trial.passes(goal) for trial in journal.trials
        )
        # The lost packets are rounded up, which a short trial shows.
        assert loss_of(bounds.upper / load_max) >= goal.loss_ratio - 0.01
        if bounds.lower is not None:
            assert measure(bounds.lower, 10.0).passes(goal)
            assert bounds.width is not None
            assert 0 < bounds.width <= precision * 1.01
            assert bounds.throughput == pytest.approx(
                bounds.lower * (1 - loss_of(bounds.lower / load_max)), rel=0.01
            )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_device_that_carries_everything(algorithm: str) -> None:
    found, _ = find(plan(algorithm, 1e5), Journal(Device()))
    assert [(one.lower, one.upper) for one in found] == [(1e5, None), (1e5, None)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_device_that_carries_nothing(algorithm: str) -> None:
    found, stopped = find(plan(algorithm), Journal(Device(limit_pps=0.0)))
    assert stopped == ""
    assert [(one.lower, one.throughput) for one in found] == [(None, None), (None, None)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_criterion_beside_loss_is_a_limit_too(algorithm: str) -> None:
    def measure(load: float, duration_s: float) -> Trial:
        failures = ["latency.p99 was 2 ms, above 1 ms"] if load > 300e3 else []
        return Trial(load, duration_s, int(load * duration_s), 0, failures)

    found, _ = find(plan(algorithm), Journal(measure))
    for bounds in found:
        assert bounds.lower == pytest.approx(300e3, rel=0.01)
        assert bounds.lower <= 300e3


def test_trials_may_fail_now_and_then_where_it_is_allowed() -> None:
    chance = random.Random(7)

    def measure(load: float, duration_s: float) -> Trial:
        offered = int(load * duration_s)
        lost = 1 if chance.random() < 0.1 else 0
        return Trial(load, duration_s, offered, offered // 2 if load > 500e3 else lost)

    forgiving = plan("mlr", trial_s=1.0, duration_sum_s=21.0, exceed_ratio=0.5)
    (ndr, _), _ = find(forgiving, Journal(measure))
    assert ndr.lower == pytest.approx(500e3, rel=0.01)


def test_what_a_search_had_found_when_it_was_stopped() -> None:
    device = Device()

    def measure(load: float, duration_s: float) -> Trial:
        if len(journal.trials) == 5:
            raise Stopped("by a signal")
        return device(load, duration_s)

    journal = Journal(measure)
    (ndr, pdr), why = find(plan("mlr"), journal)
    assert why == "by a signal"
    assert not ndr.is_complete
    assert not pdr.is_complete
    assert ndr.lower is None or ndr.lower <= LOSSY_ABOVE_PPS
    assert ndr.upper is not None
    assert ndr.upper > LOSSY_ABOVE_PPS


def test_a_number_of_trials_ends_a_search() -> None:
    journal = Journal(Device(), trials_max=3)
    found, why = find(plan("binary"), journal)
    assert len(journal.trials) == 3
    assert why == "3 trials did not reach the precision"
    assert not any(one.is_complete for one in found)


def test_a_load_that_passes_above_one_that_failed_counts_for_nothing() -> None:
    trials = [Trial(load, 1.0, 100, lost) for load, lost in ((1.0, 0), (2.0, 0), (3.0, 5), (4.0, 0))]
    bounds = relevant_bounds(NDR, trials)
    assert (bounds.lower, bounds.upper) == (2.0, 3.0)


def test_of_trials_at_one_load_the_longest_count() -> None:
    trials = [
        Trial(1.0, 1.0, 100, 1),
        Trial(1.0, 10.0, 1000, 0),
        Trial(2.0, 10.0, 1000, 0),
        Trial(2.0, 10.0, 1000, 1),
    ]
    bounds = relevant_bounds(NDR, trials)
    assert (bounds.lower, bounds.upper) == (1.0, 2.0)


def test_a_trial_that_offers_nothing_passes_nothing() -> None:
    assert not Trial(1.0, 1.0, 0, 0).passes(PDR)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_time_left_comes_down_to_nothing(algorithm: str) -> None:
    wanted = plan(algorithm)
    left: list[float] = [time_left_s(wanted, [])]
    journal = Journal(Device(), observe=lambda _: left.append(time_left_s(wanted, journal.trials)))
    find(wanted, journal)
    assert left[0] > 0
    assert left[-1] == 0
    # It is a guess: of the whole search it may be wrong by a few times.
    assert 0.2 < left[0] / journal.seconds < 5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"load_min": 5.0, "load_max": 4.0}, "no range above zero"),
        ({"load_min": 0.0}, "no range above zero"),
        ({"precision": 0.0}, "precision of 0"),
        ({"first_trial_s": 99.0}, "first trials"),
        ({"goals": ()}, "goals must differ"),
        ({"goals": (NDR, Goal("again"))}, "goals must differ"),
        ({"exceed_ratio": 1.0}, "exceed ratio of 1"),
    ],
)
def test_plans_that_cannot_be(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SearchPlan(**{"load_min": 1.0, "load_max": 4.0, **wrong})  # type: ignore[arg-type]


def test_a_goal_is_a_share() -> None:
    with pytest.raises(ValueError, match="is not a share"):
        Goal("all", 1.0)
