"""The words of the command line: what is understood, and what is refused with which words."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest
from allosaur.cli import _options


@pytest.mark.parametrize(
    "text", ["1", "0.5", "2.", "5mpps", "10KPPS", "1.5gbps", "10gbpsl1", "40%", "3 kpps"]
)
def test_multipliers(text: str) -> None:
    assert _options.multiplier(text) == text.lower().replace(" ", "")


@pytest.mark.parametrize(
    "text", ["", "fast", "-1", "5xpps", "5 5", "5mpps+", "%", "1e3x", "5k", "nan", "inf"]
)
def test_multipliers_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a rate; write"):
        _options.multiplier(text)


def test_connections_a_second_are_a_factor() -> None:
    with pytest.raises(ArgumentTypeError, match="'1kcps' is not a rate; write a factor") as caught:
        _options.multiplier("1kcps")
    assert "kpps" not in str(caught.value)


@pytest.mark.parametrize("text", ["0", "0.0", "0mpps", "0%", "00.00gbps"])
def test_a_rate_of_zero_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="sends nothing; give a rate above zero"):
        _options.multiplier(text)


def test_durations() -> None:
    read = {text: _options.duration_s(text) for text in ("10", "10s", "1.5", "500ms", "2m", "1h")}
    assert read == {"10": 10, "10s": 10, "1.5": 1.5, "500ms": 0.5, "2m": 120, "1h": 3600}
    assert {_options.duration_s(text) for text in ("forever", "inf")} == {_options.FOREVER}


@pytest.mark.parametrize("text", ["", "-2", "soon", "1d", "10 20", "0", "0ms"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="duration"):
        _options.duration_s(text)


def test_ports() -> None:
    assert _options.port_list("0") == [0]
    assert _options.port_list("1, 0,1") == [1, 0]


@pytest.mark.parametrize("text", ["", "a", "-1", "0,", "0;1", "1.5", "9999"])
def test_ports_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a list of ports"):
        _options.port_list(text)


def test_servers() -> None:
    read = {
        text: _options.server_address(text)
        for text in ("lab", "lab:4600", "10.0.0.1:1", "[::1]:4501", "[::1]", ":4600")
    }
    assert [str(address) for address in read.values()] == [
        "lab:4501",
        "lab:4600",
        "10.0.0.1:1",
        "[::1]:4501",
        "[::1]:4501",
        "localhost:4600",
    ]
    assert read["[::1]"].host == "::1"


@pytest.mark.parametrize("text", ["", ":", ":0", "lab:", "lab:0", "lab:65536", "a b", "::1:1", "lab:x"])
def test_servers_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a server; write HOST or HOST:PORT"):
        _options.server_address(text)


def test_tunables_have_types() -> None:
    read = _options.tunables("size=128,rate=1.5,vm=cached,on=true,off=False,src=16.0.0.1,empty=")
    assert read == {
        "size": 128,
        "rate": 1.5,
        "vm": "cached",
        "on": True,
        "off": False,
        "src": "16.0.0.1",
        "empty": "",
    }
    assert [type(value) for value in read.values()] == [int, float, str, bool, bool, str, str]


@pytest.mark.parametrize("text", ["", "size", "=1", "a b=1", "size=1,", "1a=2"])
def test_tunables_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a tunable; write key=value"):
        _options.tunables(text)


def test_packet_rates() -> None:
    read = [_options.rate_pps(text) for text in ("200kpps", "1mpps", "5000", "2.5 kpps", "7pps", "1gpps")]
    assert read == [200_000, 1_000_000, 5000, 2500, 7, 1e9]


@pytest.mark.parametrize("text", ["", "1gbps", "40%", "5k", "fast", "0kpps"])
def test_packet_rates_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"packet rate|above zero"):
        _options.rate_pps(text)
