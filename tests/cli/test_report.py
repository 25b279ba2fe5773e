"""Counters over time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from allosaur.report._counters import PortCounters, PortRates, Sampler, total
from allosaur.report._fields import difference
from allosaur.report._readings import SAMPLES_MAX


class Clock:
    """A clock that goes on by one second whenever it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def counters_of(port: int, packets: int) -> PortCounters:
    return PortCounters(
        tx_packets=packets,
        tx_bytes=64 * packets,
        rx_packets=packets // 2,
        rx_bytes=32 * packets,
        missed_packets=port,
        tx_by_size={"64": packets},
    )


def test_counters_come_from_the_clients_statistics() -> None:
    stats = {
        "opackets": 5,
        "obytes": 320,
        "ipackets": 4,
        "ibytes": 256,
        "missed_packets": 1,
        "tx_by_size": {"64": 5},
    }
    counters = PortCounters.from_stats(stats)
    assert (counters.tx_packets, counters.tx_bytes, counters.rx_packets, counters.rx_bytes) == (
        5,
        320,
        4,
        256,
    )
    assert counters.offered_packets == 6
    assert counters.queue_full is None, "what the server does not count is not a zero"
    assert counters.to_json()["tx_by_size"] == {"64": 5}


def test_differences_and_sums() -> None:
    early, late = counters_of(1, 10), counters_of(1, 30)
    assert difference(late, early).tx_packets == 20
    assert difference(late, early).tx_by_size == {"64": 20}
    assert total([early, late]).tx_bytes == 64 * 40
    assert total([early, late]).queue_full is None
    assert total([PortCounters(queue_full=3), PortCounters()]).queue_full == 3
    assert total([]) == PortCounters()


def test_a_sampler_counts_from_its_first_reading() -> None:
    clock = Clock()
    readings: Iterator[int] = iter([1000, 1000, 3000, 3500])
    sampler = Sampler(lambda: {0: counters_of(0, next(readings))}, clock)
    for step_s in (1.0, 1.0, 0.5):
        clock.now += step_s
        sampler.sample()
    assert [sample.time_s for sample in sampler.samples] == [0.0, 1.0, 2.0, 2.5]
    assert sampler.counters[0].tx_packets == 2500
    rates = sampler.rates(0)
    assert [(point.time_s, point.tx_pps, point.rx_pps) for point in rates] == [
        (1.0, 0.0, 0.0),
        (2.0, 2000.0, 1000.0),
        (2.5, 1000.0, 500.0),
    ]
    assert rates[1].tx_bps == 2000 * 64 * 8
    assert sampler.recent(1.0)[0].tx_pps == pytest.approx(2500 / 1.5)


def test_two_readings_at_the_same_time_are_no_rate() -> None:
    clock = Clock()
    sampler = Sampler(lambda: {0: PortCounters()}, clock)
    sampler.sample()
    assert sampler.rates(0) == []
    assert sampler.recent()[0] == PortRates(0.0)


def test_samples_in_quick_succession_are_one_rate() -> None:
    clock = Clock()
    readings = iter([0, 100, 110, 200])
    sampler = Sampler(lambda: {0: PortCounters(tx_packets=next(readings))}, clock)
    for step_s in (1.0, 0.01, 0.99):
        clock.now += step_s
        sampler.sample()
    assert [round(point.tx_pps, 6) for point in sampler.rates(0)] == [100.0, 100.0]


def test_an_interval_that_the_traffic_filled_in_part_is_no_rate() -> None:
    clock = Clock()
    readings = iter([0, 60, 160, 260, 340, 340])
    sampler = Sampler(lambda: {0: PortCounters(tx_packets=next(readings))}, clock)
    for _ in range(5):
        clock.now += 1.0
        sampler.sample()
    assert [point.tx_pps for point in sampler.rates(0)] == [60, 100, 100, 80, 0]
    assert [point.tx_pps for point in sampler.rates(0, 3.8)] == [100, 100]


def test_an_interval_whose_traffic_ended_before_that_was_noticed_is_no_rate() -> None:
    clock = Clock()
    readings = iter([0, 100, 200, 300, 340, 340])
    sampler = Sampler(lambda: {0: PortCounters(tx_packets=next(readings))}, clock)
    for _ in range(5):
        clock.now += 0.25
        sampler.sample()
    # It ended after 0.85 s, and that was noticed 0.2 s later: then it still seemed to run.
    assert [point.tx_pps for point in sampler.rates(0, 1.05)] == [400, 400, 400]
    # A fall that lies longer back is one.
    assert [point.tx_pps for point in sampler.rates(0, 1.6)] == [400, 400, 400, 160, 0]


def test_a_burst_at_the_start_is_shown() -> None:
    clock = Clock()
    readings = iter([0, 500, 500, 500])
    sampler = Sampler(lambda: {0: PortCounters(tx_packets=next(readings))}, clock)
    for _ in range(3):
        clock.now += 1.0
        sampler.sample()
    assert [point.tx_pps for point in sampler.rates(0, 0.1)] == [500, 0, 0]


def test_a_long_run_keeps_its_ends_and_a_limit() -> None:
    clock = Clock()
    sampler = Sampler(lambda: {0: PortCounters(tx_packets=int(clock.now))}, clock)
    for _ in range(3 * SAMPLES_MAX):
        clock.now += 1
        sampler.sample()
    assert len(sampler.samples) <= SAMPLES_MAX
    assert (sampler.samples[0].time_s, sampler.samples[-1].time_s) == (0.0, 3.0 * SAMPLES_MAX)
    assert all(point.tx_pps == pytest.approx(1.0) for point in sampler.rates(0))
