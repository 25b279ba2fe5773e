"""How fast and how long: "5mpps", "10%", "2m" to what the protocol wants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .._errors import STLArgumentError

_SHAPE = re.compile(
    r"\s*(?P<value>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z%]\w*|%)?\s*(?P<sign>[+-])?\s*", re.IGNORECASE
)
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_KINDS = {"bps": "bps", "bpsl1": "bpsl1", "pps": "pps"}
_OPERATIONS = {None: "abs", "+": "add", "-": "sub"}
_FORMS = (
    "a number (a factor for the profile's rates), or a number with pps, kpps, mpps, gpps, "
    "bps, kbps, mbps, gbps, bpsl1, kbpsl1, mbpsl1, gbpsl1 or %, like '5mpps'"
)


def parse_multiplier(text: str | float, divide_count: int = 1, allow_update: bool = False) -> dict[str, Any]:
    """The ``mul`` object of the protocol.

    ``divide_count`` shares the rate among that many ports (``total=True``). ``allow_update``
    permits a trailing + or - (more or less than now). Raises ``STLArgumentError``.
    """
    shape = _SHAPE.fullmatch(str(text))
    if shape is None or (shape["sign"] and not allow_update):
        raise STLArgumentError("mult", text, _FORMS)
    value = float(shape["value"])
    unit = (shape["unit"] or "").lower()
    kind, scale = _unit(text, unit)
    if value <= 0:
        raise STLArgumentError("mult", text, "a rate above zero")
    return {"type": kind, "value": value * scale / divide_count, "op": _OPERATIONS[shape["sign"]]}


def parse_duration(text: str | float | None) -> float:
    """Seconds; -1 is forever. Takes a number, or text like '10', '2m', '1h'."""
    if text is None:
        return -1
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = text
    else:
        shape = re.fullmatch(r"\s*(-?\d+(?:\.\d*)?)\s*([smh]?)\s*", str(text))
        if shape is None:
            raise STLArgumentError("duration", text, "seconds, or a number with s, m or h; -1 is forever")
        seconds = float(shape[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[shape[2]]
    if seconds != -1 and not 0 < seconds < float("inf"):
        raise STLArgumentError("duration", text, "more than 0 seconds, or -1 for no end")
    return seconds


def core_masks(core_mask: Any, ports: Sequence[int]) -> list[int]:
    """The data cores of each port as a bit mask: split, pin, single, one mask, or a list of masks."""
    everything = (1 << 64) - 1
    if core_mask is None or core_mask == SPLIT:
        return [everything] * len(ports)
    if core_mask == PIN:
        # Both ports of a pair share their cores: pinned, each takes every other one.
        halves = (0x5555555555555555, 0xAAAAAAAAAAAAAAAA)
        return [halves[port % 2] if port ^ 1 in ports else everything for port in ports]
    if core_mask == SINGLE:
        return [1] * len(ports)
    if isinstance(core_mask, (list, tuple)):
        if len(core_mask) != len(ports):
            raise STLArgumentError("core_mask", core_mask, f"{len(ports)} masks, one for each port")
        return [int(mask) for mask in core_mask]
    raise STLArgumentError(
        "core_mask",
        core_mask,
        "CORE_MASK_SPLIT, CORE_MASK_PIN, CORE_MASK_SINGLE or a list with a mask for each port",
    )


SPLIT, PIN, SINGLE = 1, 2, 3


def _unit(text: object, unit: str) -> tuple[str, float]:
    if unit == "":
        return "raw", 1.0
    if unit == "%":
        return "percentage", 1.0
    for prefix, scale in _SCALES.items():
        if unit.startswith(prefix) and unit[len(prefix) :] in _KINDS:
            return _KINDS[unit[len(prefix) :]], scale
    raise STLArgumentError("mult", text, _FORMS)
