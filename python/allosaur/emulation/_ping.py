"""Pings of a client, the same for IPv4 and IPv6. As in TRex's client a refusal is returned, not raised."""

from __future__ import annotations

from typing import Any, ClassVar

from .._errors import STLError
from ._plugin import NamespacePlugin
from ._profile import EMUClientKey
from ._values import EMUType

Outcome = tuple[Any, STLError | None]
"""The result and None, or None and why there is none."""


class PingPlugin(NamespacePlugin):
    """A plugin whose clients can ping, one address at a time each."""

    START: ClassVar[str]
    STATS: ClassVar[str]
    STOP: ClassVar[str]

    def get_ping_stats(self, c_key: EMUClientKey, zero: bool = True) -> Outcome:
        """What the last ping of a client counts, under "icmp_ping_stats"; latencies are in microseconds."""
        return self._outcome(self.STATS, c_key, zero=zero)

    def stop_ping(self, c_key: EMUClientKey) -> Outcome:
        """Stop the ping of a client."""
        return self._outcome(self.STOP, c_key)

    def _outcome(self, method: str, c_key: EMUClientKey, **params: Any) -> Outcome:
        try:
            return self._to_client(method, c_key, **params), None
        except STLError as error:
            return None, error


def as_bytes(kind: type[EMUType], address: object) -> list[int] | None:
    """An address of any form as the server wants it."""
    return None if address is None else kind(address).V()
