"""What services need of a client: whatever has these methods can run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..packets._buffer import CapturedPacket


class ServicePort(Protocol):
    """A port, as far as services look at it."""

    info: dict[str, Any]

    @property
    def src_mac(self) -> str:
        """The port's MAC address."""
        ...

    @property
    def src_ipv4(self) -> str | None:
        """The port's IPv4 address; None when it has none."""
        ...

    @property
    def dst_mac(self) -> str | None:
        """Where the port's frames go unless they say otherwise; None while that is not known."""
        ...

    @property
    def vlan(self) -> tuple[int, ...]:
        """The VLAN tags of the port, the outer first."""
        ...

    def has(self, attribute: str) -> bool:
        """Whether "promiscuous" or "multicast" is switched on."""
        ...


class ServiceClient(Protocol):
    """A client that sends packets out of ports and captures what they receive."""

    def get_port(self, port_id: int) -> ServicePort:
        """Return what is known of a port."""
        ...

    def set_port_attr(
        self, ports: list[int], *, promiscuous: bool | None = None, multicast: bool | None = None
    ) -> None:
        """Switch what ports receive beside their own frames."""

    def push_packets(
        self, pkts: list[Any], ports: list[int], *, force: bool, ipg_usec: float
    ) -> list[dict[str, Any]]:
        """Send packets once; the answer of each port says when."""
        ...

    def start_capture(self, *, rx_ports: list[int], bpf_filter: str, limit: int) -> dict[str, Any]:
        """Capture what ports receive; the result has the ``id``."""
        ...

    def fetch_capture_packets(self, capture_id: int, output: list[CapturedPacket], pkt_count: int) -> None:
        """Take packets out of a capture."""

    def stop_capture(self, capture_id: int) -> None:
        """End a capture."""

    def _service_ports(self, ports: list[int]) -> list[int]:
        """Return ports of ours that are in service mode, or raise ``STLError``."""
        ...
