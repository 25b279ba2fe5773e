"""What the client knows of one port: who owns it, its state, its streams.

What does not live here: requests (``_client`` makes them). The state follows the server's events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._events import EventType
from ._stream import STLStream

#: The state after each event of the port.
_STATES = {
    EventType.PORT_STARTED: "TX",
    EventType.PORT_RESUMED: "TX",
    EventType.PORT_PAUSED: "PAUSE",
    EventType.PORT_STOPPED: "STREAMS",
    EventType.PORT_FINISHED: "STREAMS",
}
_FLOW_CONTROL = {0: "none", 1: "tx", 2: "rx", 3: "full"}
_ACTIVE = ("TX", "PAUSE", "PCAP_TX")


@dataclass
class Port:
    """One port of the server."""

    port_id: int
    info: dict[str, Any]
    status: dict[str, Any] = field(default_factory=dict)
    #: The key that the server gave for the port; None while it is not ours.
    handler: str | None = None
    state: str = "IDLE"
    streams: dict[int, STLStream] = field(default_factory=dict)
    next_stream_id: int = 1

    @property
    def is_acquired(self) -> bool:
        """Whether this client owns the port."""
        return self.handler is not None

    @property
    def is_active(self) -> bool:
        """Whether the port sends, or is paused."""
        return self.state in _ACTIVE

    @property
    def is_virtual(self) -> bool:
        """Whether the port is not hardware."""
        return bool(self.info.get("is_virtual"))

    @property
    def speed_bps(self) -> float:
        """The line rate in bits a second; 0 when the server does not know."""
        return float(self.status.get("attr", {}).get("speed") or 0) * 1e9

    def take_status(self, status: dict[str, Any]) -> None:
        """Take the answer of ``get_port_status``."""
        self.status = status
        self.state = str(status.get("state", self.state))
        self.next_stream_id = max(self.next_stream_id, int(status.get("max_stream_id") or 0) + 1)

    def take_event(self, kind: EventType, attributes: dict[str, Any]) -> None:
        """Follow an event of the server."""
        if kind is EventType.PORT_ATTRIBUTE:
            self.status.setdefault("attr", {}).update(attributes)
        elif kind in _STATES:
            self.state = _STATES[kind]
            if self.state == "STREAMS" and not self.streams and self.is_acquired:
                self.state = "IDLE"

    def forget_streams(self) -> None:
        """All streams were removed."""
        self.streams.clear()
        self.next_stream_id = 1
        if not self.is_active:
            self.state = "IDLE"

    def describe(self) -> dict[str, Any]:
        """One flat dictionary of the port's facts, settings and state, by the names that scripts know."""
        attributes = self.status.get("attr", {})
        return {
            **self.info,
            **self._abilities(),
            **_addresses(attributes.get("layer_cfg", {})),
            "owner": self.status.get("owner", ""),
            "status": self.state,
            "stream_count": len(self.streams),
            "link": "UP" if attributes.get("link", {}).get("up") else "DOWN",
            "speed": attributes.get("speed", 0),
            "prom": "on" if attributes.get("promiscuous", {}).get("enabled") else "off",
            "mult": "on" if attributes.get("multicast", {}).get("enabled") else "off",
            "rx_filter_mode": "fetch all" if attributes.get("rx_filter_mode") == "all" else "hardware match",
            "fc": _FLOW_CONTROL.get(attributes.get("fc", {}).get("mode"), "N/A"),
            "vxlan_fs": attributes.get("vxlan_fs") or "-",
            "vlan": attributes.get("vlan", {}).get("tags") or "-",
            "service": bool(self.status.get("service")),
        }

    def _abilities(self) -> dict[str, str]:
        names = {
            "is_virtual": "is_virtual",
            "link_change_supported": "is_link_supported",
            "led_change_supported": "is_led_supported",
            "prom_supported": "is_prom_supported",
            "fc_supported": "is_fc_supported",
        }
        return {name: "yes" if self.info.get(fact) else "no" for name, fact in names.items()}


def _addresses(layers: dict[str, Any]) -> dict[str, Any]:
    ether, ipv4, ipv6 = (layers.get(name, {}) for name in ("ether", "ipv4", "ipv6"))
    resolved = {"resolved": ether.get("dst", ""), "unresolved": "unresolved"}
    return {
        "layer_mode": "IPv4" if ipv4.get("state") in resolved else "Ethernet",
        "src_mac": ether.get("src", ""),
        "dst_mac": ether.get("dst", ""),
        "dest": ipv4.get("dst") or ether.get("dst", ""),
        "src_ipv4": ipv4.get("src", "-"),
        "arp": resolved.get(ipv4.get("state"), "-"),
        "ipv6": ipv6.get("src", "auto") if ipv6.get("enabled") else "off",
    }
