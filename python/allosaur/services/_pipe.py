"""What a service sends into and receives from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ._schedule import Arrival, Sending, Wait


class ServicePipe:
    """One end of the wire, for one service: yield what these methods return."""

    def __init__(self, clock: Callable[[], float], send: Callable[[Any], Sending]) -> None:
        self._clock = clock
        self._send = send
        self._inbox: deque[dict[str, Any]] = deque()

    def now_s(self) -> float:
        """The time of this side in seconds, from some beginning."""
        return self._clock()

    def async_wait(self, time_sec: float) -> Wait:
        """Wait this long in seconds."""
        return Wait(self._clock() + time_sec)

    def async_wait_for_pkt(self, time_sec: float | None = None, limit: int | None = None) -> Wait:
        """Wait for packets: gives a list of them, each ``{"pkt": bytes, "ts": seconds}``.

        ``ts`` is when it arrived, the server's time. After ``time_sec`` without any the list is
        empty; 0 is not to wait, None is to wait forever. ``limit`` is how many at most: further
        packets are kept for the next call.
        """
        due_s = None if time_sec is None else self._clock() + time_sec
        return Arrival(self._inbox, due_s, limit)

    def async_tx_pkt(self, tx_pkt: Any) -> Wait:
        """Send a packet: Scapy, bytes, or a ``PacketBuffer``, as for ``push_packets``.

        It is sent whether the service yields or not; the ``yield`` gives ``{"ts": seconds}``, the
        server's time when it left.
        """
        return self._send(tx_pkt)

    def deliver(self, pkt: bytes, ts: float) -> None:
        """A packet came for the service (the context calls it)."""
        self._inbox.append({"pkt": pkt, "ts": ts})
