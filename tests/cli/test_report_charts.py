"""Axes, points and lines of charts: what must hold whatever was measured."""

from __future__ import annotations

import math
import re

import pytest
from allosaur.report import _latency, _numbers, _scale
from allosaur.report._chart import charts_html
from allosaur.report._counters import PortRates
from allosaur.report._flow_counters import FlowRates
from allosaur.report._model import Chart, ChartKind, Series
from allosaur.report._page import _section
from allosaur.report._readings import whole
from allosaur.report._scale import named_axis
from allosaur.report._streams import Direction, StreamLatency
from allosaur.run.streams import _over_time
from hypothesis import example, given
from hypothesis import strategies as st

SOME = st.floats(min_value=0, max_value=1e15)
ANY = st.floats(allow_nan=True, allow_infinity=True)
POINTS = st.lists(st.one_of(st.none(), SOME), max_size=300).map(
    lambda values: [(float(place), value) for place, value in enumerate(values)]
)


@given(ANY, st.integers(1, 10), st.booleans())
@example(0.0, 4, False)
@example(1.7e308, 4, False)
@example(5e-324, 4, True)
@example(100_000.0, 4, True)
def test_a_linear_axis_has_its_ticks_inside(highest: float, wanted: int, is_whole: bool) -> None:
    axis = _scale.linear_axis(highest, wanted, is_whole)
    values = [value for value, _ in axis.ticks]
    assert axis.low == values[0] == 0
    assert values == sorted(set(values))
    assert values[-1] == pytest.approx(axis.high)
    assert 2 <= len(values) <= wanted + 2
    if math.isfinite(highest) and 0 < highest < 1e199:
        assert axis.high > highest, "the line is not on the edge"
        assert 0 <= axis.place(highest) < 1
    if is_whole:
        assert all(value == round(value) for value in values if value < 1e15)


@given(st.floats(1e-6, 1e14))
def test_steps_of_a_linear_axis_are_round(highest: float) -> None:
    step = _scale.linear_axis(highest).ticks[1][0]
    digits = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(digits == pytest.approx(nice) for nice in (1, 2, 2.5, 5, 10))


@given(ANY, ANY)
def test_a_logarithmic_axis_goes_from_a_power_of_ten_to_one(lowest: float, highest: float) -> None:
    axis = _scale.log_axis(lowest, highest)
    assert axis.low < axis.high
    assert 2 <= len(axis.ticks) <= 8
    for value in (axis.low, axis.high):
        assert math.log10(value) == pytest.approx(round(math.log10(value)))
    assert axis.place(axis.low) == 0
    assert axis.place(axis.high) == 1
    assert axis.place(0.0) == 0, "zero has no logarithm, and stands at the end"


@given(ANY, st.integers(2, 10))
@example(0.3, 6)
@example(10.0, 6)
@example(1e9, 6)
def test_a_time_axis_ends_with_the_run(end_s: float, wanted: int) -> None:
    axis = _scale.time_axis(end_s, wanted)
    values = [value for value, _ in axis.ticks]
    assert values[0] == 0
    assert all(value <= axis.high * (1 + 1e-6) for value in values)
    assert len(values) <= wanted + 2
    if math.isfinite(end_s) and 1e-6 < end_s < 1e15:
        assert axis.high == end_s


@pytest.mark.parametrize(
    ("end_s", "labels"),
    [
        (10.0, ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]),
        (300.0, ["0 min", "1 min", "2 min", "3 min", "4 min", "5 min"]),
        (7200.0, ["0 min", "30 min", "60 min", "90 min", "120 min"]),
        (86_400.0, ["0 h", "6 h", "12 h", "18 h", "24 h"]),
    ],
)
def test_times_are_labelled_as_people_say_them(end_s: float, labels: list[str]) -> None:
    assert [label for _, label in _scale.time_axis(end_s).ticks] == labels


@given(st.floats(0, 1e12), ANY)
def test_a_place_is_always_on_the_axis(highest: float, value: float) -> None:
    for axis in (_scale.linear_axis(highest), _scale.log_axis(1, highest), _scale.time_axis(highest)):
        assert 0 <= axis.place(value) <= 1


@given(POINTS, st.integers(6, 200))
def test_thinned_points_keep_peaks_and_gaps(points: list[_scale.Point], limit: int) -> None:
    kept = _scale.thin(points, limit)
    assert len(kept) <= max(limit, 3)
    assert kept == sorted(kept, key=lambda point: point[0])
    assert set(kept) <= set(points)
    values = [value for _, value in _scale.known(points)]
    if values:
        after = [value for _, value in _scale.known(kept)]
        assert (min(after), max(after)) == (min(values), max(values))
    assert any(value is None for _, value in kept) == any(value is None for _, value in points)
    if len(points) <= limit:
        assert kept == points


def test_a_gap_parts_a_line() -> None:
    points: list[_scale.Point] = [(0, 1.0), (1, None), (2, 3.0), (3, float("nan")), (4, 5.0), (5, 6.0)]
    assert _scale.runs(points) == [[(0, 1.0)], [(2, 3.0)], [(4, 5.0), (5, 6.0)]]
    assert _scale.runs([(0, None)]) == []


def paths(html: str) -> list[str]:
    return re.findall(r'<path class="line[^>]*vector-effect[^>]* d="([^"]*)"', html)


def chart(*series: Series) -> str:
    return charts_html([Chart("Title", "unit", series, sentence="Says.", name="a")])


def test_nothing_to_draw_is_no_chart() -> None:
    assert chart() == ""
    assert chart(Series("a", [])) == ""
    assert chart(Series("a", [(0.0, None)])) == ""
    assert charts_html([]) == ""


def test_one_point_is_a_dot() -> None:
    (path,) = paths(chart(Series("a", [(1.0, 5.0)])))
    assert re.fullmatch(r"M2000 \d+h0", path)


def test_lines_are_where_their_values_are() -> None:
    html = chart(
        Series("a", [(0.0, 0.0), (5.0, 49.0), (10.0, None), (10.0, 0.0)]), Series("b", [(0.0, 98.0)])
    )
    first, second = paths(html)
    # The axis goes to 100; places go down from the top, in thousandths.
    assert first == "M0 1000L1000 510M2000 1000h0"
    assert second == "M0 20h0"
    assert "5.00 s: a 49" in html


@given(st.lists(POINTS, max_size=4))
def test_any_points_are_drawn_inside(lines: list[list[_scale.Point]]) -> None:
    html = chart(*(Series(f"line {place}", points) for place, points in enumerate(lines)))
    for path in paths(html):
        numbers = [int(one) for one in re.findall(r"\d+", path.replace("h0", ""))]
        assert all(0 <= x <= 2000 for x in numbers[::2])
        assert all(0 <= y <= 1000 for y in numbers[1::2])
    assert "nan" not in html
    assert "inf" not in html


def bars(kind: ChartKind, *series: Series) -> list[list[tuple[int, int, int]]]:
    """Left edge, top and width of each bar, by series."""
    drawing = Chart("Title", "unit", series, kind, x=named_axis(["a", "b"]), name="a")
    found = re.findall(r'<path class="bars[^>]* d="(M\d+ 1000V[^"]*)"/>', charts_html([drawing]))
    cut = [re.findall(r"M(\d+) 1000V(\d+)h(\d+)V1000Z", path) for path in found]
    return [[(int(left), int(top), int(width)) for left, top, width in of] for of in cut]


def test_bars_stand_side_by_side_and_a_histogram_has_no_gaps() -> None:
    values = Series("a", [(0.5, 98.0), (1.5, 49.0)])
    (first, second) = bars("bars", values, Series("b", [(0.5, 0.0), (1.5, None)]))
    assert first == [(250, 20, 250), (1250, 510, 250)]
    assert second == [(500, 1000, 250)], "beside the first, of no height; what was not measured is no bar"
    (ranges,) = bars("histogram", values)
    assert ranges == [(0, 20, 1000), (1000, 510, 1000)]


def test_a_chart_without_a_sentence_says_how_high_it_comes() -> None:
    made = Chart("Clients", "at a time", [Series("ready", [(0.0, 0.0), (1.0, 50.0)])], name="a")
    assert "ready: 50 at the most." in charts_html([made])


def test_huge_values_are_drawn() -> None:
    html = chart(Series("a", [(0.0, 1e308), (1e308, float("inf")), (1.0, 0.0)]))
    assert "inf" not in html
    assert "nan" not in html


# Intervals that are not whole.


def test_the_first_and_the_last_interval_are_not_drawn() -> None:
    series = [PortRates(0.25 * (1 + place)) for place in range(8)] + [PortRates(2.1), PortRates(2.4)]
    assert [one.time_s for one in whole(series, 2.0)] == [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
    assert whole([], 2.0) == []
    assert whole([PortRates(0.2)], 0.2) == []
    uneven = [PortRates(time_s) for time_s in (0.1, 0.2, 0.3, 1.1, 1.9)]
    assert [one.time_s for one in whole(uneven, 2.0)] == [0.2, 0.3, 1.1], "each has its own width"
    flows = [FlowRates(one.time_s) for one in series]
    assert [one.time_s for one in whole(flows, 2.0)] == [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=50))
def test_lost_packets_only_grow_and_those_under_way_are_not_lost(steps: list[tuple[int, int]]) -> None:
    sent = received = 0
    readings = []
    for more, arrived in steps:
        sent += more
        received = min(received + arrived, sent)
        readings.append((sent, received))
    lost = _over_time.lost_so_far([a for a, _ in readings], [b for _, b in readings])
    assert lost == sorted(lost)
    for so_far, (a, b) in zip(lost, readings, strict=True):
        assert so_far <= a - b
    if readings:
        assert lost[-1] == sent - received


def test_loss_is_drawn_only_where_ports_show_it_rightly() -> None:
    series = {
        0: [PortRates(1.0 * (1 + place), tx_pps=100.0) for place in range(10)],
        1: [PortRates(1.0 * (1 + place), rx_pps=90.0 if place < 5 else 100.0) for place in range(10)],
    }
    (rate, lost) = _over_time.charts(series, [Direction(0, 1000, 950, {1: 950}, 50)], 10.0)[0]
    assert (rate.name, lost.name) == ("rate-0", "lost")
    assert [value for _, value in lost.series[0].points] == [0, 10, 20, 30, 40, 50, 50, 50, 50, 50, 50]
    # The last interval was not whole, and was left out.
    short = {port: points[:-1] for port, points in series.items()}
    assert len(_over_time.charts(short, [Direction(0, 1000, 945, {1: 945}, 55)], 10.0)[0]) == 2
    # Of 100 that were lost, packets of others hide 50: then the ports would tell something else.
    hidden = _over_time.charts(series, [Direction(0, 1000, 900, {1: 900}, 100)], 10.0)[0]
    assert [one.name for one in hidden] == ["rate-0"]


def test_latency_is_drawn_by_powers_of_ten_when_it_is_wide() -> None:
    narrow = StreamLatency(10.0, 11.0, 15.0, 1.0, 11.0, 12.0, 13.0, 14.0)
    wide = StreamLatency(1.0, 11.0, 15_000.0, 1.0, 11.0, 12.0, 1300.0, 1400.0)
    none = StreamLatency(1.0, 2.0, 3.0, 1.0)
    for latency, word in ((narrow, "15 µs"), (wide, "logarithmic"), (none, "")):
        section = _latency.latency_section("Latency", "x", [_latency.LatencyRow("voice", 7, latency)])
        assert word in _section(section)
        assert ("<figure" in _section(section)) == (latency is not none), "three points are no curve"
    assert _section(_latency.latency_section("Latency", "x", [])) == ""


# Numbers.


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        *((0, 7, "0 %"), (7, 7, "100 %"), (1, 100, "1 %"), (300, 30_000, "1 %"), (1, 3, "33.3 %")),
        *((1, 1_000_000, "0.0001 %"), (1, 10**9, "< 0.0001 %"), (10**9 - 1, 10**9, "> 99.9999 %")),
        *((9996, 10_000, "99.96 %"), (99_999, 100_000, "99.999 %"), (5, 0, "0 %"), (14, 7, "200 %")),
    ],
)
def test_shares(part: int, whole: int, said: str) -> None:
    assert _numbers.share(part, whole) == said


@given(st.integers(1, 10**12), st.integers(2, 10**12))
def test_some_is_never_nothing_nor_all(part: int, whole: int) -> None:
    said = _numbers.share(part, whole)
    assert said != "0 %"
    if part < whole:
        assert said != "100 %"
        value = float(said.strip("<> %"))
        assert value == pytest.approx(100 * part / whole, rel=0.02, abs=1e-4)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0 pps"), (999.6, "1 kpps"), (10_000, "10 kpps"), (1_250_000, "1.25 Mpps"), (0.5, "0.5 pps")],
)
def test_rates(value: float, said: str) -> None:
    assert _numbers.short(value, "pps") == said


@given(st.floats(0, 1e18))
def test_a_short_number_is_near(value: float) -> None:
    said = _numbers.short(value)
    number, *prefix = said.split()
    factor = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}["".join(prefix)]
    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=0.006, abs=1e-3)


@pytest.mark.parametrize(
    ("value", "said"), [(0.0, "0 µs"), (12.34, "12.3 µs"), (1500, "1.5 ms"), (2e6, "2 s")]
)
def test_times(value: float, said: str) -> None:
    assert _numbers.microseconds(value) == said
