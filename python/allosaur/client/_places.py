"""Where something happens: ports, and the named profiles that a port can hold side by side."""

from __future__ import annotations

import re
from typing import Any

from .._errors import STLArgumentError

#: The profile that is always there.
DEFAULT_PROFILE = "_"
#: What stands for all profiles of a port.
ALL_PROFILES = "*"

#: What a method takes as ``ports``: a number, "0", "0.name", a PortProfileID, or several of them.
Ports = Any

_SHAPE = re.compile(r"\s*(\d+)(?:\.([\w*-]+))?\s*")


class PortProfileID:
    """A port and one of its profiles, written "0.name"; "0" is the port's default profile, "0.*" all."""

    def __init__(self, port_profile_id: str | int) -> None:
        shape = _SHAPE.fullmatch(str(port_profile_id))
        if shape is None:
            raise STLArgumentError("ports", port_profile_id, "a port number, or '0.name'")
        self.port_id = int(shape[1])
        self.profile_id = shape[2] or DEFAULT_PROFILE

    @property
    def profile_name(self) -> str:
        """The port and the profile, "0.name"."""
        return str(self)

    def __str__(self) -> str:
        return f"{self.port_id}.{self.profile_id}"

    def __repr__(self) -> str:
        return f"PortProfileID('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PortProfileID) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def place(port_id: int, profile_id: str = DEFAULT_PROFILE) -> PortProfileID:
    """A profile of a port."""
    return PortProfileID(f"{port_id}.{profile_id}")


def places(ports: Ports) -> list[PortProfileID]:
    """What a ``ports`` argument names, each once. Raises ``STLArgumentError``."""
    items = _items(ports)
    if not items:
        raise STLArgumentError("ports", ports, "at least one port")
    named = [item if isinstance(item, PortProfileID) else PortProfileID(item) for item in items]
    return list(dict.fromkeys(named))


def numbers(ports: Ports) -> list[int]:
    """The ports of a ``ports`` argument where profiles play no part. Raises ``STLArgumentError``."""
    for named in places(ports):
        if named.profile_id not in (DEFAULT_PROFILE, ALL_PROFILES):
            raise STLArgumentError(
                "ports", str(named), f"'{named.port_id}'", "this is about a port, not one of its profiles"
            )
    return list(dict.fromkeys(named.port_id for named in places(ports)))


def without_profile(ports: Ports) -> list[int]:
    """The ports that are given as a number only, so that all of their profiles can be meant."""
    items = [item for item in _items(ports) if not isinstance(item, PortProfileID) and "." not in str(item)]
    return [PortProfileID(item).port_id for item in items]


def _items(ports: Ports) -> list[Any]:
    if isinstance(ports, (int, str, PortProfileID)) and not isinstance(ports, bool):
        return [ports]
    if not isinstance(ports, (list, tuple, set, range)):
        raise STLArgumentError("ports", ports, "a port number, '0.name', or a list of them")
    return list(ports)
