"""What a run says of its losses while packets are under way."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from allosaur.report._streams import Direction
from allosaur.run.streams._live_loss import LiveLoss

RATE_PPS = 100_000


def told(
    delay_s: float,
    lost_of: Callable[[float], float],
    rate_pps: float = RATE_PPS,
    duration_s: float = 10.0,
    seed: int = 1,
) -> list[tuple[float, int, int | None]]:
    """Return the time of each sample, what is truly lost of all that was sent, and what is said."""
    drawn, losses, found = random.Random(seed), LiveLoss(), []
    now_s = 0.0
    while now_s < duration_s:
        now_s += 0.25 + drawn.random() * 0.02
        sent = round(now_s * rate_pps)
        there_s = max(now_s - delay_s, 0.0)
        received = round(there_s * rate_pps - lost_of(there_s))
        direction = Direction(0, sent, received, lost_packets=sent - received)
        found.append((now_s, round(lost_of(now_s)), losses.take(now_s, direction)))
    return found


@pytest.mark.parametrize("delay_s", [0.0, 0.0002, 0.03, 0.6])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.0001])
def test_a_steady_loss_is_told_while_the_traffic_runs(delay_s: float, share: float) -> None:
    for now_s, lost, said in told(delay_s, lambda at_s: share * RATE_PPS * at_s):
        assert said is None or said <= lost, now_s
        if now_s > 3.0:
            assert said is not None
            assert said >= 0.3 * lost - 1, (now_s, said, lost)


@pytest.mark.parametrize("delay_s", [0.0, 0.0002, 0.03, 0.6, 0.9])
def test_what_is_under_way_is_no_loss(delay_s: float) -> None:
    for seed in range(10):
        for now_s, _, said in told(delay_s, lambda _: 0.0, seed=seed):
            assert not said, (seed, now_s, said)


def test_a_loss_that_begins_late_is_told_at_once() -> None:
    samples = told(0.01, lambda at_s: 0.5 * RATE_PPS * max(at_s - 5.0, 0.0))
    assert all(not said for now_s, _, said in samples if now_s < 5.0)
    for now_s, lost, said in samples:
        if now_s > 6.0:
            assert said is not None
            assert 0.6 * lost <= said <= lost, (now_s, said, lost)


def test_all_that_is_lost_from_the_start_is_told() -> None:
    *_, (_, lost, said) = told(0.0, lambda at_s: RATE_PPS * at_s)
    assert said is not None
    assert 0.85 * lost <= said <= lost


def test_a_burst_that_is_over_leaves_its_losses() -> None:
    losses = LiveLoss()
    for quarter in range(1, 13):
        said = losses.take(quarter / 4, Direction(0, 100, 99, lost_packets=1))
    assert said == 1


def test_nobody_knows_without_a_receiver_and_in_the_first_second() -> None:
    losses = LiveLoss()
    assert losses.take(0.5, Direction(0, 100, 0, lost_packets=100)) is None
    assert losses.take(2.0, Direction(0, 100, 0, lost_packets=None)) is None
