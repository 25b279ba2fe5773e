"""How a stream is sent: continuously, one burst, or many bursts, and at what rate."""

from __future__ import annotations

from typing import Any

from .._errors import STLArgumentError, STLError

_RATE_DEFAULT_PPS = 1.0


class STLTXMode:
    """The rate of a stream: at most one of the four; one packet a second without any.

    ``pps`` packets a second, ``bps_L1`` bits a second on the wire (with preamble and gap),
    ``bps_L2`` bits a second of frames (with FCS), ``percentage`` of the port's line rate.
    """

    kind = ""

    def __init__(
        self,
        pps: float | None = None,
        bps_L1: float | None = None,  # noqa: N803 (the name of the protocol)
        bps_L2: float | None = None,  # noqa: N803 (the name of the protocol)
        percentage: float | None = None,
    ) -> None:
        given = {"pps": pps, "bps_L1": bps_L1, "bps_L2": bps_L2, "percentage": percentage}
        rates = {name: value for name, value in given.items() if value is not None}
        if len(rates) > 1:
            raise STLError(
                f"a stream has one rate, but {', '.join(rates)} were given: keep exactly one parameter"
            )
        name, value = next(iter(rates.items()), ("pps", _RATE_DEFAULT_PPS))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise STLArgumentError(name, value, "a number")
        if not 0 < value < float("inf"):
            raise STLArgumentError(name, value, "a rate above zero")
        self.fields: dict[str, Any] = {"rate": {"type": name, "value": value}, "type": self.kind}

    @property
    def rate(self) -> dict[str, Any]:
        """The rate as the protocol has it: ``{"type": "pps", "value": 10}``."""
        rate: dict[str, Any] = self.fields["rate"]
        return rate

    def to_json(self) -> dict[str, Any]:
        """The ``mode`` object of the protocol."""
        return {**self.fields, "rate": dict(self.rate)}


class STLTXCont(STLTXMode):
    """Send for as long as the run lasts."""

    kind = "continuous"

    def __str__(self) -> str:
        return "Continuous"


class STLTXSingleBurst(STLTXMode):
    """Send ``total_pkts`` packets, then stop or go on with the next stream."""

    kind = "single_burst"

    def __init__(self, total_pkts: int = 1, **rate: Any) -> None:
        super().__init__(**rate)
        self.fields["total_pkts"] = _count("total_pkts", total_pkts)

    def __str__(self) -> str:
        return "Single Burst"


class STLTXMultiBurst(STLTXMode):
    """Send ``count`` bursts of ``pkts_per_burst`` packets with ``ibg`` microseconds in between."""

    kind = "multi_burst"

    def __init__(self, pkts_per_burst: int = 1, ibg: float = 0.0, count: int = 1, **rate: Any) -> None:
        super().__init__(**rate)
        if isinstance(ibg, bool) or not isinstance(ibg, (int, float)) or not 0 <= ibg < float("inf"):
            raise STLArgumentError("ibg", ibg, "the gap between bursts in microseconds, zero or more")
        self.fields["pkts_per_burst"] = _count("pkts_per_burst", pkts_per_burst)
        self.fields["ibg"] = ibg
        self.fields["count"] = _count("count", count)

    def __str__(self) -> str:
        return "Multi Burst"


def mode_from_json(fields: dict[str, Any]) -> STLTXMode:
    """A mode from the ``mode`` object of the protocol. Raises ``STLError``."""
    rate = fields.get("rate") or {}
    arguments = {str(rate.get("type")): rate.get("value")}
    names = {
        "continuous": (STLTXCont, ()),
        "single_burst": (STLTXSingleBurst, ("total_pkts",)),
        "multi_burst": (STLTXMultiBurst, ("pkts_per_burst", "ibg", "count")),
    }
    try:
        make, own = names[fields["type"]]
        mode: STLTXMode = make(**{name: fields[name] for name in own}, **arguments)
        return mode
    except (KeyError, TypeError) as error:
        raise STLError(f"the mode {fields} is not one of {', '.join(names)} with a rate ({error})") from error


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise STLArgumentError(name, value, "a whole number, 1 or more")
    return value
