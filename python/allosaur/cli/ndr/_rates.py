"""Loads that a user writes as a rate, in packets a second of one port."""

from __future__ import annotations

from collections.abc import Mapping

from allosaur.cli._errors import bad_input

_OF_PROFILE = {"bps": "max_bps_l2", "bpsl1": "max_bps_l1", "percentage": "max_line_util"}


def packet_rate(text: str, rate: Mapping[str, float]) -> float:
    """Return the packets a second that a multiplier means; `rate` is what the server says of the streams."""
    from allosaur.streams._multiplier import parse_multiplier

    multiplier = parse_multiplier(text)
    kind, value = multiplier["type"], float(multiplier["value"])
    if kind == "pps":
        return value
    one: float = 1.0 if kind == "raw" else rate[_OF_PROFILE[kind]]
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
