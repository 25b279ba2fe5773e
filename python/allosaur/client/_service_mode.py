"""What a client does with service mode: the mode itself, receive queues, capture ports.

In service mode the server shows the client what a port receives, beside counting it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import STLArgumentError
from ..packets._buffer import CapturedPacket, decoded
from ._connection import Connection
from ._places import Ports

#: What filtered service mode lets through, by the names that scripts use; they can be added up.
NO_MASK, NO_TCP_UDP_MASK, BGP_MASK, DHCP_MASK, TRANSPORT_MASK, MDNS_MASK, ALL_MASK = 0, 1, 2, 4, 8, 16, 255
_ENDPOINT_CHARS_MIN = 5


class ServiceMode:
    """Service mode, and what ports receive in it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set_service_mode(
        self,
        ports: Ports = None,
        enabled: bool = True,
        filtered: bool = False,
        mask: int | None = None,
    ) -> None:
        """Switch service mode of ports; without ``ports`` of all that are ours.

        In service mode a port answers ARP and ping, and its packets can be captured and queued.
        ``filtered`` is the mode for busy ports: only the protocols of ``mask`` are shown, the rest is
        counted as fast as ever. ``mask`` is the sum of: 1 all but TCP and UDP, 2 BGP, 4 DHCP, 8 what
        a transport stack of the client has open, 16 mDNS; 255 is all. Raises ``STLError``.
        """
        for name, value in (("enabled", enabled), ("filtered", filtered)):
            if not isinstance(value, bool):
                raise STLArgumentError(name, value, [True, False])
        if filtered and mask is None:
            raise STLArgumentError("mask", mask, "what is let through when filtered, such as 1 or 255")
        if mask is not None and not filtered:
            raise STLArgumentError("mask", mask, "no mask, or filtered=True with it")
        fields: dict[str, Any] = {"enabled": enabled and not filtered, "filtered": filtered}
        if mask is not None:
            if isinstance(mask, bool) or not isinstance(mask, int) or not 0 < mask <= ALL_MASK:
                raise STLArgumentError("mask", mask, f"1 to {ALL_MASK}")
            fields["mask"] = mask
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        self._connection.each("service", chosen, **fields)
        self._connection.refresh(chosen)

    @contextmanager
    def service_mode(self, ports: Ports = None) -> Iterator[None]:
        """Service mode of ports for as long as a ``with`` block lasts.

        Ports that have it already keep it afterwards.
        """
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        switched = [port for port in chosen if not self._connection.port(port).is_service]
        if switched:
            self.set_service_mode(switched)
        try:
            yield
        finally:
            if switched and self._connection.is_open():
                self.set_service_mode(switched, enabled=False)

    def get_service_enabled_ports(self, owned: bool = True) -> list[int]:
        """The ports in service mode; with ``owned=False`` also those of others."""
        ports = self._connection.session().ports.values()
        return [port.port_id for port in ports if port.is_service and (port.is_acquired or not owned)]

    def get_service_filtered_ports(self, owned: bool = True) -> list[int]:
        """The ports in filtered service mode; with ``owned=False`` also those of others."""
        ports = self._connection.session().ports.values()
        return [
            port.port_id for port in ports if port.is_service_filtered and (port.is_acquired or not owned)
        ]

    def set_rx_queue(self, ports: Ports = None, size: int = 1000) -> None:
        """Let the server keep the last ``size`` packets that ports receive, for ``get_rx_queue_pkts``.

        The ports must be in service mode.
        """
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            raise STLArgumentError("size", size, "how many packets to keep, 1 or more")
        chosen = self._connection.service_ports(ports)
        self._connection.each("set_rx_feature", chosen, type="queue", enabled=True, size=size)
        self._connection.refresh(chosen)

    def remove_rx_queue(self, ports: Ports = None) -> None:
        """Keep no received packets any more."""
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        self._connection.each("set_rx_feature", chosen, type="queue", enabled=False)
        self._connection.refresh(chosen)

    def get_rx_queue_pkts(self, port: int) -> list[CapturedPacket]:
        """Take what a port received since the last call, oldest first; see ``CapturedPacket``."""
        (port_id,) = self._connection.service_ports([port])
        (answer,) = self._connection.each("get_rx_queue_pkts", [port_id])
        return [decoded(packet) for packet in answer["pkts"]]

    def start_capture_port(self, port: int, endpoint: str, bpf_filter: str | None = None) -> None:
        """Join a port with a ZeroMQ PAIR socket: what it receives comes out, what goes in is sent.

        ``endpoint`` is where the caller has bound that socket ("ipc:///tmp/tap" or
        "tcp://host:port"); the server connects to it. Each message is one frame without FCS.
        ``bpf_filter`` is which received frames to show. The port must be in service mode.
        """
        if not isinstance(endpoint, str) or len(endpoint) < _ENDPOINT_CHARS_MIN:
            raise STLArgumentError("endpoint", endpoint, "a ZeroMQ endpoint such as 'ipc:///tmp/tap'")
        self._capture_port("start_capture_port", port, endpoint=endpoint, bpf_filter=bpf_filter or "")

    def stop_capture_port(self, port: int) -> None:
        """Part a port from its PAIR socket."""
        self._capture_port("stop_capture_port", port)

    def set_capture_port_bpf_filter(self, port: int, bpf_filter: str | None = None) -> None:
        """Change which received frames a capture port shows; without ``bpf_filter`` all."""
        self._capture_port("set_capture_port_bpf", port, bpf_filter=bpf_filter or "")

    def _capture_port(self, method: str, port: int, **fields: Any) -> None:
        chosen = self._connection.service_ports([port])
        self._connection.each(method, chosen, **fields)
        self._connection.refresh(chosen)
