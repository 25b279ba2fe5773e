"""The words of the command line: what each option's text means, and why a text is refused.

Each function takes the text and returns the value, or raises `argparse.ArgumentTypeError` with a message
that says what to write instead.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Tunable = int | float | bool | str

DEFAULT_RPC_PORT = 4501
EMULATION_PORT = 4510
#: Where requests to BIRD are taken.
BIRD_PORT = 4509
"""Where requests to emulated clients are taken."""
FOREVER = -1.0
"""The duration that means: until it is stopped."""

_LOAD_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_MULTIPLIER = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[kmg]?pps|[kmg]?bpsl1|[kmg]?bps|%|)", re.IGNORECASE
)
_TARGET = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<prefix>[kmg]?)(?P<unit>cps|pps|bpsl1|bps)", re.IGNORECASE
)
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>ms|s|m|h|)", re.IGNORECASE)
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_SECONDS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class ServerAddress:
    """Where a server answers: a host, and its RPC port."""

    host: str = "localhost"
    rpc_port: int = DEFAULT_RPC_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.rpc_port}"


@dataclass(frozen=True)
class Target:
    """A load to plan for: so many flows, packets or bits a second."""

    value: float
    unit: str
    """`cps`, `pps`, `bps` (layer 2) or `bpsl1`."""


def target(text: str) -> Target:
    """Read a target such as `100gbps`, `40gbpsl1`, `200kcps` or `3mpps`."""
    match = _TARGET.fullmatch(text.strip())
    if match is None or float(match["number"]) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a load above zero; write bits (100gbps, 40gbpsl1), flows (200kcps) or packets "
            "(3mpps) a second"
        )
    return Target(float(match["number"]) * _SCALES[match["prefix"].lower()], match["unit"].lower())


@dataclass(frozen=True)
class OfLoad:
    """A value for one of several loads: `http=2,3`."""

    name: str
    value: Any


def of_load(read: Callable[[str], Any], sign: str = "=") -> Callable[[str], Any]:
    """Return what reads a value, or one for a load: its name, the sign, the value."""

    def named(text: str) -> Any:
        name, found, value = text.partition(sign)
        # The sign may be in the value itself, as in size=64 of a tunable.
        if not found or not _LOAD_NAME.fullmatch(name.strip()):
            return read(text)
        return OfLoad(name.strip(), read(value))

    return named


def multiplier(text: str) -> str:
    """Check a multiplier such as `2`, `5mpps`, `1.5gbps`, `10gbpsl1` or `40%`; return it in lower case."""
    match = _MULTIPLIER.fullmatch(text.strip())
    if match is None and text.strip().lower().endswith("cps"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a rate; write a factor: a stateful profile has connections a second of its "
            "own, and `-m 100` makes them a hundred times as many"
        )
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a rate; write a factor of the profile's own rate (2), or, of streams, a rate "
            "such as 10kpps, 5mpps, 1gbps, 1gbpsl1 or 40%"
        )
    if float(match["number"]) == 0:
        raise argparse.ArgumentTypeError(
            f"a rate of {text!r} sends nothing; give a rate above zero, such as 10kpps"
        )
    return re.sub(r"\s+", "", text.lower())


def rate_pps(text: str) -> float:
    """Read a rate in packets per second: `200kpps`, `1mpps`, or a plain number."""
    match = _MULTIPLIER.fullmatch(text.strip())
    unit = match["unit"].lower() if match else "?"
    if match is None or unit.removesuffix("pps") not in _SCALES or unit in ("k", "m", "g"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a packet rate; write one such as 200kpps or 1mpps")
    value = float(match["number"]) * _SCALES[unit.removesuffix("pps")]
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"a rate of {text!r} sends nothing; give a rate above zero, such as 10kpps"
        )
    return value


def duration_s(text: str) -> float:
    """Read a duration such as `10`, `500ms`, `2m`, `1h` or `forever`. Returns seconds; -1 is forever."""
    word = text.strip().lower()
    if word in ("forever", "inf"):
        return FOREVER
    match = _DURATION.fullmatch(word)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; write seconds (10), or 500ms, 2m, 1h, or forever"
        )
    value = float(match["number"]) * _SECONDS[match["unit"]]
    if value == 0:
        raise argparse.ArgumentTypeError("a duration of zero sends nothing; give one above zero, such as 10")
    return value


def plain_seconds(value: float) -> str:
    """Return seconds as `duration_s` and `seconds` read them: without an exponent, to the nanosecond."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def port_list(text: str) -> list[int]:
    """Read port numbers such as `0` or `0,1`; return them without doubles, in the order given."""
    numbers = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= 3 for word in numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of ports; write numbers with commas, such as 0,1"
        )
    return list(dict.fromkeys(int(word) for word in numbers))


def server_address(text: str, rpc_port: int = DEFAULT_RPC_PORT) -> ServerAddress:
    """Read `HOST`, `HOST:PORT`, `[IPV6]:PORT`, or `:PORT` of this machine; `rpc_port` unless one is given."""
    match = re.fullmatch(
        r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\s]+)|(?=:))(?::(?P<port>\d{1,5}))?", text.strip()
    )
    port = int(match["port"]) if match and match["port"] else rpc_port
    if match is None or not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a server; write HOST or HOST:PORT, such as localhost:{rpc_port}, "
            "with a port of 1 to 65535"
        )
    return ServerAddress(match["six"] or match["host"] or "localhost", port)


def emulation_server(text: str) -> ServerAddress:
    """Read a server of emulated clients, as `server_address` does."""
    return server_address(text, EMULATION_PORT)


def bird_server(text: str) -> ServerAddress:
    """Read the address of a server by its port for BIRD."""
    return server_address(text, BIRD_PORT)


def tcp_port(text: str) -> int:
    """Read a TCP port: 1 to 65535."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a TCP port; write a number of 1 to 65535")
    return int(text)


def whole_number(text: str) -> int:
    """Read a whole number of one or more."""
    if not text.strip().isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def number(text: str) -> int:
    """Read a whole number of zero or more."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def rate_bps(text: str) -> float:
    """Read a rate in bits per second: `10mbps`, `1.5gbps`."""
    match = _MULTIPLIER.fullmatch(text.strip())
    unit = match["unit"].lower() if match else ""
    if match is None or not unit.endswith("bps") or float(match["number"]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a bit rate; write one such as 10mbps or 1gbps")
    return float(match["number"]) * _SCALES[unit.removesuffix("bps")]


def share(text: str) -> float:
    """Read a share of 0 to 1: `1%` or `0.01`."""
    word = text.strip()
    try:
        value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write one such as 1% or 0.01")
    return value


def count(text: str) -> int:
    """Read how often: a whole number, or `forever`, which is 0."""
    return 0 if text.strip().lower() in ("forever", "inf") else whole_number(text)


def seconds(text: str) -> float:
    """Read a duration that ends: `1`, `200ms`, or 0."""
    if text.strip() == "0":
        return 0.0
    value = duration_s(text)
    if value == FOREVER:
        raise argparse.ArgumentTypeError(f"{text!r} does not end; give seconds, such as 1 or 200ms")
    return value


def microseconds(text: str) -> float:
    """Read a time of microseconds: a number of 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of microseconds; write one such as 100")
    return value


def factor(text: str) -> float:
    """Read a factor above zero, such as `2` or `0.5`."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor; write a number above zero, such as 2")
    return value


def vlan(text: str) -> list[int]:
    """Read one VLAN tag or two, the outer first: `100` or `100,200`."""
    tags = [word.strip() for word in text.split(",")]
    if len(tags) > 2 or not all(word.isdecimal() and 1 <= int(word) <= 4095 for word in tags):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no VLAN; write a tag of 1 to 4095, or two such as 100,200"
        )
    return [int(word) for word in tags]


def address(text: str) -> str:
    """Read an IPv4 or IPv6 address."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an IP address; write one such as 192.0.2.1 or 2001:db8::1"
        ) from None


def mac(text: str) -> str:
    """Read a MAC address."""
    from allosaur import Mac, STLError

    try:
        return Mac(text.strip()).S()
    except STLError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a MAC address; write one such as 00:00:00:70:00:01"
        ) from None


def threshold(text: str) -> str:
    """Check that a text may be a threshold, or name a file of such; what it means depends on the profile."""
    if not text.startswith("@") and not any(sign in text for sign in "<>="):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a threshold such as 'loss>0.01%'; PROFILE stands before --fail-if"
        )
    return text


def tunables(text: str) -> dict[str, Tunable]:
    """Read `key=value`, or several with commas: `size=128,rate=10`. Numbers and true/false become such."""
    values: dict[str, Tunable] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise argparse.ArgumentTypeError(f"{part!r} is not a tunable; write key=value, such as size=128")
        values[key.strip()] = _typed(value.strip())
    return values


def _typed(text: str) -> Tunable:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
