"""Numbers, tables and sparklines as people read them."""

from __future__ import annotations

import re

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
        "────────────",
        "0      1,000",
        "total      7",
    ]


def test_a_wide_table_is_cut_into_blocks_of_columns() -> None:
    header = ["", *(f"port {port}" for port in range(32))]
    text = _format.table(header, [["sent packets", *["1,000,000,000"] * 32]], width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert [word for line in text.splitlines() for word in line.split() if word.isdigit()] == [
        str(port) for port in range(32)
    ]
    assert text.count("sent packets") == 8


def test_many_ports_are_rows_and_few_are_columns() -> None:
    def shown(ports: int) -> list[list[str]]:
        names = [*(f"port {port}" for port in range(ports)), "total"]
        rows = [["sent", *(str(100 + n) for n in range(ports + 1))], ["rate", *(["1 pps"] * (ports + 1))]]
        rows.append(["", *(["2 bps"] * (ports + 1))])
        lines = _format.by_port(names, rows, width=80).splitlines()
        return [re.split(r" {2,}", line.strip()) for line in lines if line.strip("─ ")]

    few = shown(4)
    assert few[0] == ["port 0", "port 1", "port 2", "port 3", "total"]
    assert few[1] == ["sent", "100", "101", "102", "103", "104"]
    many = shown(5)
    assert many[0] == ["sent", "rate", "rate"]
    assert many[1] == ["port 0", "100", "1 pps", "2 bps"]
    assert many[-1] == ["total", "105", "1 pps", "2 bps"]
    # Thirty-two ports fit a terminal.
    assert max(map(len, _format.by_port([f"port {n}" for n in range(32)], [["sent", *"0" * 32]], 80))) <= 80


def test_a_verdict_is_in_colour_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert _format.verdict(False, "3 are lost.") == "FAILED: 3 are lost."
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert _format.verdict(False, "3 are lost.") == "\x1b[1;31mFAILED:\x1b[0m 3 are lost."
    assert _format.verdict(True, "none is.") == "\x1b[1;32mOK:\x1b[0m none is."
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in _format.verdict(False, "3 are lost.")


def test_a_sparkline_is_relative_to_its_highest_value() -> None:
    assert _format.sparkline([0, 1, 4, 8], 10) == "▁▂▅█"
    assert _format.sparkline([9, 9, 1, 2], 2) == "▅█"
    assert _format.sparkline([0, 0], 5) == "▁▁"
    assert _format.sparkline([], 5) == ""
