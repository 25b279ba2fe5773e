"""What a client asks of single ports, and sets: facts, state, attributes."""

from __future__ import annotations

from typing import Any

from .._errors import STLArgumentError
from ._connection import Connection
from ._neighbors import Neighbors
from ._places import Ports
from ._port import Port


class PortAttributes:
    """Facts, state and attributes of ports."""

    def __init__(self, connection: Connection, neighbors: Neighbors) -> None:
        self._connection = connection
        self._neighbors = neighbors

    def get_port_count(self) -> int:
        """How many ports the server has."""
        return len(self._connection.session().ports)

    def get_active_ports(self, owned: bool = True) -> list[int]:
        """The ports that send or are paused."""
        return self._in_state(("TX", "PAUSE", "PCAP_TX"), owned)

    def get_transmitting_ports(self, owned: bool = True) -> list[int]:
        """The ports that send."""
        return self._in_state(("TX", "PCAP_TX"), owned)

    def get_paused_ports(self, owned: bool = True) -> list[int]:
        """The ports that are paused."""
        return self._in_state(("PAUSE",), owned)

    def is_all_ports_acquired(self) -> bool:
        """Whether this client owns every port."""
        return self._connection.acquired_ports() == self._connection.all_ports()

    def get_port_info(self, ports: Ports = None) -> list[dict[str, Any]]:
        """Facts, settings and state of ports, read from the server now."""
        return [
            self.get_port_attr(port_id)
            for port_id in self._connection.ports_of(ports, self._connection.all_ports, owned=False)
        ]

    def get_port_attr(self, port: int) -> dict[str, Any]:
        """Facts, settings and state of one port, read from the server now."""
        (port_id,) = self._connection.ports_of([port], self._connection.all_ports, owned=False)
        self._connection.session().refresh(self._connection.port(port_id))
        return self._connection.port(port_id).describe()

    def set_port_attr(
        self,
        ports: Ports = None,
        promiscuous: bool | None = None,
        link_up: bool | None = None,
        led_on: bool | None = None,
        flow_ctrl: int | None = None,
        multicast: bool | None = None,
        vxlan_fs: list[int] | None = None,
        resolve: bool | None = None,
    ) -> None:
        """Set attributes of ports: only those that are given change.

        ``promiscuous`` and ``multicast`` are what the port receives beside its own frames;
        ``flow_ctrl`` is 0 none, 1 send, 2 receive, 3 both; ``vxlan_fs`` are UDP ports of VXLAN whose
        inner packets are counted. ``resolve`` asks for the MAC of the gateway, as ``resolve()``.
        """
        attributes: dict[str, Any] = {}
        for name, attribute, key, value in (
            ("promiscuous", "promiscuous", "enabled", promiscuous),
            ("multicast", "multicast", "enabled", multicast),
            ("link_up", "link_status", "up", link_up),
            ("led_on", "led_status", "on", led_on),
        ):
            if value is not None:
                if not isinstance(value, bool):
                    raise STLArgumentError(name, value, [True, False])
                attributes[attribute] = {key: value}
        if flow_ctrl is not None:
            if isinstance(flow_ctrl, bool) or flow_ctrl not in range(4):
                raise STLArgumentError("flow_ctrl", flow_ctrl, "0 to 3")
            attributes["flow_ctrl_mode"] = {"mode": flow_ctrl}
        if vxlan_fs is not None:
            if not isinstance(vxlan_fs, list) or not all(_is_udp_port(port) for port in vxlan_fs):
                raise STLArgumentError("vxlan_fs", vxlan_fs, "a list of UDP ports, 1 to 65535")
            attributes["vxlan_fs"] = vxlan_fs
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        if attributes:
            self._connection.each("set_port_attr", chosen, attr=attributes)
            for port_id in chosen:
                self._connection.session().refresh(self._connection.port(port_id))
        if resolve:
            self._neighbors.resolve(chosen)

    def get_port(self, port_id: int) -> Port:
        """What is known of one port."""
        (number,) = self._connection.ports_of([port_id], list, owned=False)
        return self._connection.port(number)

    def get_resolvable_ports(self) -> list[int]:
        """The ports of ours that have an IPv4 address and a gateway."""
        return [port for port in self._connection.acquired_ports() if self._connection.port(port).is_l3]

    def get_resolved_ports(self) -> list[int]:
        """The ports of ours of which it is known where their frames go."""
        return [port for port in self._connection.acquired_ports() if self._connection.port(port).is_resolved]

    def _in_state(self, states: tuple[str, ...], owned: bool) -> list[int]:
        ports = self._connection.session().ports.values()
        return [port.port_id for port in ports if port.state in states and (port.is_acquired or not owned)]


def _is_udp_port(port: Any) -> bool:
    return isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= 65_535
