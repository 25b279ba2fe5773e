"""A service context: runs services over one port, many at once.

The loop is our own and not a simulation library's: services only see the pipe, the loop must ask the
server for packets between their turns, and a clock that a test moves makes timeouts testable.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .._errors import STLArgumentError, STLConnectionError, STLError
from ..packets._buffer import CapturedPacket
from ..packets._offline import offline
from ._client import ServiceClient, ServicePort
from ._pipe import ServicePipe
from ._schedule import Schedule, Sending
from ._service import STLService, STLServiceFilter

#: Captures are asked soon after something happened, then ever more rarely.
_POLL_S_MIN = 0.001
_POLL_S_MAX = 0.05
_BATCH_PACKETS_MAX = 100
_CAPTURE_PACKETS_MIN = 10_000
_FETCH_PACKETS = 1_000


class ServiceContext:
    """Where services of one port run; ``STLClient.create_service_ctx`` makes it.

    ``clock`` and ``sleep`` are for tests.
    """

    def __init__(
        self,
        client: ServiceClient,
        port: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.port = port
        self._clock = clock
        self._sleep = sleep

    @property
    def port_obj(self) -> ServicePort:
        """What is known of the port."""
        return self.client.get_port(self.port)

    def get_port_id(self) -> int:
        """The number of the port."""
        return self.port

    def get_src_ipv4(self) -> str | None:
        """The port's IPv4 address; None when it has none."""
        return self.port_obj.src_ipv4

    def get_src_mac(self) -> str:
        """The port's MAC address."""
        return self.port_obj.src_mac

    def run(self, services: STLService | list[Any] | tuple[Any, ...], pps: int = 1000) -> None:
        """Run services side by side until all have ended.

        ``pps`` is how many packets a second they may send together. The port must be ours and in
        service mode. What a service raises ends the run. Raises ``STLError``.
        """
        chosen = list(services) if isinstance(services, (list, tuple)) else [services]
        if not chosen or not all(isinstance(service, STLService) for service in chosen):
            raise STLArgumentError("services", services, "a service, or a list of them")
        if isinstance(pps, bool) or not isinstance(pps, int) or pps < 1:
            raise STLArgumentError("pps", pps, "packets a second, 1 or more")
        self.client._service_ports([self.port])
        switched = self._switch_on(chosen)
        try:
            with offline():
                _Run(self, chosen, pps, self._clock, self._sleep).run()
        finally:
            with contextlib.suppress(STLConnectionError):
                self._set(switched, False)

    def _switch_on(self, services: list[STLService]) -> list[str]:
        """Make the port promiscuous, or let it hear multicast, where a service needs it."""
        port, needed = self.port_obj, []
        if any(service.is_prom_required() for service in services) and not port.has("promiscuous"):
            if not port.info.get("is_prom_supported"):
                raise STLError(f"port {self.port} cannot be promiscuous, which these services need")
            needed.append("promiscuous")
        if any(service.is_mult_required() for service in services) and not port.has("multicast"):
            needed.append("multicast")
        if needed:
            self._set(needed, True)
        return needed

    def _set(self, attributes: list[str], value: bool) -> None:
        switched: dict[str, Any] = dict.fromkeys(attributes, value)
        self.client.set_port_attr([self.port], **switched)


class _Run:
    """One call of ``run``."""

    def __init__(
        self,
        context: ServiceContext,
        services: list[STLService],
        pps: int,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._outbox = _Outbox(context.client, context.port, pps)
        self._receiver = _Receiver(context.client, context.port, max(pps * 5, _CAPTURE_PACKETS_MIN))
        self._schedule = Schedule()
        for service in services:
            pipe = ServicePipe(clock, self._outbox.put)
            self._receiver.add(service, pipe)
            work = service.run(pipe)
            if work is not None:
                self._schedule.add(work)

    def run(self) -> None:
        try:
            self._receiver.open()
            while not self._schedule.is_done:
                self._turn()
            while not self._outbox.is_empty:
                self._nap(self._outbox.next_s)
                self._outbox.send(self._clock())
        finally:
            self._schedule.close()
            self._receiver.close()

    def _turn(self) -> None:
        now_s = self._clock()
        if self._receiver.is_due(now_s) or self._schedule.expects_packets(now_s):
            self._receiver.receive(now_s)
        moved = self._schedule.step(now_s)
        if self._outbox.send(self._clock()):
            self._receiver.wake(self._clock())
        elif not moved:
            self._nap(self._receiver.next_s, self._outbox.next_s, self._schedule.next_due_s())

    def _nap(self, *until_s: float | None) -> None:
        """Sleep until the first of these times."""
        times = [one for one in until_s if one is not None]
        self._sleep(max(0.0, min(times) - self._clock()) if times else _POLL_S_MAX)


class _Outbox:
    """Packets that wait to be sent, in order, at a rate."""

    def __init__(self, client: ServiceClient, port: int, pps: int) -> None:
        self._client = client
        self._port = port
        self._gap_s = 1 / pps
        # The server takes at most a second of packets at once.
        self._batch = min(_BATCH_PACKETS_MAX, pps)
        self._queue: deque[tuple[Any, Sending]] = deque()
        self._free_s = float("-inf")

    @property
    def is_empty(self) -> bool:
        return not self._queue

    @property
    def next_s(self) -> float | None:
        """When the next packets may leave; None when none wait."""
        return self._free_s if self._queue else None

    def put(self, packet: Any) -> Sending:
        sending = Sending()
        self._queue.append((packet, sending))
        return sending

    def send(self, now_s: float) -> bool:
        """Send what may leave now; say whether anything did."""
        if self.is_empty or now_s < self._free_s:
            return False
        batch = [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]
        (answer,) = self._client.push_packets(
            [packet for packet, _ in batch],
            ports=[self._port],
            force=True,
            ipg_usec=int(self._gap_s * 1e6),
        )
        for number, (_, sending) in enumerate(batch):
            sending.has_left(answer["ts"] + number * self._gap_s)
        self._free_s = now_s + len(batch) * self._gap_s
        return True


class _Receiver:
    """A capture for each filter, and who gets its packets."""

    def __init__(self, client: ServiceClient, port: int, limit: int) -> None:
        self._client = client
        self._port = port
        self._limit = limit
        self._filters: dict[type[STLServiceFilter], STLServiceFilter] = {}
        self._pipes: dict[int, ServicePipe] = {}
        self._captures: dict[int, STLServiceFilter] = {}
        self._interval_s = _POLL_S_MIN
        self.next_s = float("-inf")

    def add(self, service: STLService, pipe: ServicePipe) -> None:
        kind = service.get_filter_type()
        if kind not in self._filters:
            self._filters[kind] = kind()
        self._filters[kind].add(service)
        self._pipes[id(service)] = pipe

    def open(self) -> None:
        for one in self._filters.values():
            capture = self._client.start_capture(
                rx_ports=[self._port], bpf_filter=one.get_bpf_filter(), limit=self._limit
            )
            self._captures[capture["id"]] = one

    def close(self) -> None:
        """End the captures. A server that is gone needs no word of it: why is known already."""
        with contextlib.suppress(STLConnectionError):
            for number in self._captures:
                self._client.stop_capture(number)
        self._captures.clear()

    def is_due(self, now_s: float) -> bool:
        return now_s >= self.next_s

    def wake(self, now_s: float) -> None:
        """Something was sent: an answer may come soon."""
        self._interval_s = _POLL_S_MIN
        self.next_s = now_s + self._interval_s

    def receive(self, now_s: float) -> None:
        """Fetch what came, and hand it out."""
        packets: list[CapturedPacket] = []
        for number, one in self._captures.items():
            fetched: list[CapturedPacket] = []
            self._client.fetch_capture_packets(number, fetched, pkt_count=_FETCH_PACKETS)
            packets += fetched
            for packet in fetched:
                for service in one.lookup(packet["binary"]):
                    self._pipes[id(service)].deliver(packet["binary"], packet["ts"])
        self._interval_s = _POLL_S_MIN if packets else min(2 * self._interval_s, _POLL_S_MAX)
        self.next_s = now_s + self._interval_s
