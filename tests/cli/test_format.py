"""Numbers, tables and sparklines as people read them."""

from __future__ import annotations

import pytest
from allosaur.cli import _format


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 pps"),
        (0.5, "0.50 pps"),
        (7, "7.00 pps"),
        (99.94, "99.9 pps"),
        (999.4, "999 pps"),
        (999.9, "1.00 kpps"),
        (1_250_000, "1.25 Mpps"),
        (99_960_000, "100 Mpps"),
        (999_999, "1.00 Mpps"),
        (4e9, "4.00 Gpps"),
        (1.2e13, "12.0 Tpps"),
    ],
)
def test_rates(value: float, shown: str) -> None:
    assert _format.rate(value, "pps") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 s"),
        (12, "12.0 s"),
        (0.0015, "1.50 ms"),
        (20e-6, "20.0 µs"),
        (5e-9, "5.00 ns"),
        (0.99999, "1.00 s"),
    ],
)
def test_times(value: float, shown: str) -> None:
    assert _format.seconds(value) == shown


def test_counts_and_what_nobody_counted() -> None:
    assert [_format.count(value) for value in (0, 1234567, None)] == ["0", "1,234,567", "-"]


def test_a_table_is_aligned() -> None:
    assert _format.table(["port", "sent"], [["0", "1,000"], ["total", "7"]]).splitlines() == [
        "port    sent",
        "-----  -----",
        "0      1,000",
        "total      7",
    ]


def test_a_sparkline_is_relative_to_its_highest_value() -> None:
    assert _format.sparkline([0, 1, 4, 8], 10) == "▁▂▅█"
    assert _format.sparkline([9, 9, 1, 2], 2) == "▅█"
    assert _format.sparkline([0, 0], 5) == "▁▁"
    assert _format.sparkline([], 5) == ""
