"""Loads that a user writes as a rate, in packets a second of one port."""

from __future__ import annotations

import re
from collections.abc import Mapping

from allosaur.cli._errors import bad_input

_SHAPE = re.compile(r"(?P<number>[\d.]+)(?P<prefix>[kmg]?)(?P<unit>pps|bpsl1|bps|%|)")
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_OF_PROFILE = {"bps": "max_bps_l2", "bpsl1": "max_bps_l1", "%": "max_line_util", "": ""}


def packet_rate(text: str, rate: Mapping[str, float]) -> float:
    """Return the packets a second that a multiplier means; `rate` is what the server says of the streams."""
    match = _SHAPE.fullmatch(text)
    assert match is not None, "the command line checked it"
    value = float(match["number"]) * _SCALES[match["prefix"]]
    unit = match["unit"]
    if unit == "pps":
        return value
    one = rate[_OF_PROFILE[unit]] if unit else 1.0
    if not one:
        raise bad_input(
            f"{text}: the server does not say what share of the line the streams take; give a rate in pps"
        )
    return value / one * rate["max_pps"]


def flow_factor(text: str, option: str) -> float:
    """Return the factor of a stateful profile that a multiplier means."""
    try:
        return float(text)
    except ValueError:
        raise bad_input(
            f"{option} {text}: a rate is for streams; a stateful profile takes a factor of its own rates, "
            f"such as {option} 1000"
        ) from None
