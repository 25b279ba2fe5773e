"""What came of one ping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class PingRecord(Mapping[str, Any]):
    """One ping: a mapping with ``status`` ("success", "timeout", "unreachable") and ``formatted_string``.

    On success also ``src_ip``, who answered, ``rtt`` in milliseconds, and ``ttl``, its hop limit. The
    same as attributes, by the names that scripts for IPv4 use: ``state`` (``SUCCESS``, ``TIMEOUT``,
    ``UNREACHABLE``), ``responder_ip``, ``rtt``, ``ttl``, ``pkt_size`` (bytes); "N/A" where there is none.
    """

    TIMEOUT, UNREACHABLE, SUCCESS = range(3)
    _STATUS = ("timeout", "unreachable", "success")

    def __init__(
        self,
        state: int = TIMEOUT,
        responder_ip: str = "N/A",
        ttl: int | str = "N/A",
        rtt: float | str = "N/A",
        pkt_size: int | str = "N/A",
    ) -> None:
        self.state = state
        self.responder_ip = responder_ip
        self.ttl = ttl
        self.rtt = rtt
        self.pkt_size = pkt_size

    def __str__(self) -> str:
        if self.state == self.SUCCESS:
            answered = f"bytes={self.pkt_size}, time={self.rtt:.2f}ms, TTL={self.ttl}"
            return f"Reply from {self.responder_ip}: {answered}"
        if self.state == self.UNREACHABLE:
            return f"Reply from {self.responder_ip}: Destination host unreachable"
        return "Request timed out."

    def __repr__(self) -> str:
        return f"PingRecord({dict(self)})"

    def __getitem__(self, name: str) -> Any:
        return self._fields()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"formatted_string": str(self), "status": self._STATUS[self.state]}
        if self.state == self.SUCCESS:
            fields |= {"src_ip": self.responder_ip, "rtt": self.rtt, "ttl": self.ttl}
        return fields
