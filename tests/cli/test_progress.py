"""What is shown while traffic runs."""

from __future__ import annotations

import io
import re

import pytest
from allosaur.cli._options import FOREVER
from allosaur.report._counters import PortCounters, PortRates
from allosaur.run._progress import progress
from allosaur.run.streams._progress import StreamMoment
from rich.console import Console


def moment(elapsed_s: float, duration_s: float = 10.0) -> StreamMoment:
    busy = PortRates(elapsed_s, 148_809_523.0, 99_999_999_999.0, 148_809_523.0, 99_999_999_999.0)
    counters = PortCounters(tx_packets=987_654_321_000, missed_packets=123_456_789)
    ports = {0: counters, 1: counters}
    lost = {0: 1_234_567, 1: None}
    return StreamMoment(elapsed_s, duration_s, ports, {0: busy, 1: busy}, [1.0, 5e6, 297e6] * 40, lost)


NUMBER = r"\d[\d.,]*(?: [kMGT]?(?:pps|bps|s)\b)?"


def drawn(shown: StreamMoment, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(shown.view("a profile with a long name.py"))
    return stream.getvalue()


def test_the_live_table_fits_80_columns() -> None:
    stream = io.StringIO()
    Console(file=stream, width=80).print(moment(3.25).view("a profile with quite a long name.py"))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for shown in ("3.2 of 10 s", "149 Mpps", "100 Gbps", "987,654,321,000", "123,456,789", "1,234,567", "█"):
        assert shown in text, shown


@pytest.mark.parametrize("width", range(12, 100))
def test_a_number_of_the_live_table_is_whole_or_not_there(width: int) -> None:
    given = moment(3.25)
    known = set(re.findall(NUMBER, drawn(given, 400)))
    text = drawn(given, width)
    assert max(map(len, text.splitlines())) <= width
    assert set(re.findall(NUMBER, text)) <= known
    assert "3.2 of 10 s" in text or width < 24


def test_plain_lines_come_every_two_seconds() -> None:
    stream = io.StringIO()
    with progress(["x"], stream) as show:
        for quarter in range(1, 21):
            show([moment(quarter * 0.25)])
    lines = stream.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["2.0 of 10 s", "4.0 of 10 s"]
    assert "sending 298 Mpps, 200 Gbps; receiving 298 Mpps; lost 1,234,567, missed 246,913,578" in lines[0]


def test_a_run_without_end_shows_only_the_time() -> None:
    stream = io.StringIO()
    with progress(["x"], stream) as show:
        show([moment(2.0, FOREVER)])
    assert stream.getvalue().startswith("2.0 s: ")


def test_a_terminal_gets_the_live_table() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with progress(["imix.py"], stream) as show:
        show([moment(1.0)])
    assert "imix.py" in stream.getvalue()
