"""Counters over time, and the page that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from allosaur.report import Check, PortCounters, PortRates, Report, Sampler, difference, total, write_report
from allosaur.report._sampling import SAMPLES_MAX


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
    assert sampler.counted()[0].tx_packets == 2500
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


class Page(HTMLParser):
    """Collects what a reader of the page meets: elements, their attributes and the text in them."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style") and data.strip():
            self.text.append(data.strip())


@pytest.fixture
def source(tmp_path: Path) -> str:
    ports = {port: counters_of(port, 1_234_567) for port in (0, 1)}
    report = Report(
        title="A <run>",
        verdict="nothing was lost",
        ok=True,
        facts={"Machine": "a & b"},
        counters=ports,
        rates={port: [PortRates(1.0, 10.0, 5120.0, 9.0, 4608.0)] for port in ports},
        checks=[Check("all received", True, "all 7"), Check("none missed", False, "3 missed")],
        reproduce=["allosaur demo"],
        profile="if a < b: pass </script>",
    )
    path = tmp_path / "report.html"
    write_report(path, report)
    return path.read_text(encoding="utf-8")


def test_the_report_needs_no_network(source: str) -> None:
    page = Page(source)
    loaded = [attrs for _, attrs in page.elements if "src" in attrs or attrs.get("rel") == "stylesheet"]
    assert loaded == []
    assert "Plotly.newPlot" in source
    assert len(source) > 1_000_000, "the plotting library is inside"
    assert len(source) < 8_000_000


def test_the_report_shows_its_numbers_as_text(source: str) -> None:
    text = Page(source).text
    for shown in (
        "A <run>",
        "a & b",
        "1,234,567",
        "all 7",
        "FAILED",
        "allosaur demo",
        "if a < b: pass </script>",
    ):
        assert any(shown in part for part in text), shown


def test_every_plot_has_a_description(source: str) -> None:
    page = Page(source)
    plots = [attrs for tag, attrs in page.elements if attrs.get("role") == "img"]
    assert [plot["id"] for plot in plots] == ["rate", "sizes"]
    identifiers = {attrs.get("id") for _, attrs in page.elements}
    assert all(plot["aria-labelledby"] in identifiers for plot in plots)


def test_sent_and_received_differ_by_more_than_colour(source: str) -> None:
    figures = figures_of(source)
    dashes = {trace["name"]: trace["line"]["dash"] for trace in figures["rate"]["data"]}
    assert dashes["port 0 sent"] != dashes["port 0 received"]
    assert figures["rate"]["data"][0]["y"] == [10.0]
    assert figures["sizes"]["data"][0]["x"] == ["64"]


def test_plotly_knows_every_word_of_the_plots(source: str) -> None:
    import plotly.graph_objects

    for figure in figures_of(source).values():
        plotly.graph_objects.Figure(figure)  # raises for what it does not know


def figures_of(source: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="figures">(.*?)</script>', source, re.DOTALL)
    assert match is not None
    figures: dict[str, Any] = json.loads(match[1])
    return figures
