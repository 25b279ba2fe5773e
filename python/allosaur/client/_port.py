"""What the client knows of one port: who owns it, its profiles with their streams and states.

The states follow the server's events.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ..rpc._events import EventType
from ..streams._stream import STLStream
from ._places import DEFAULT_PROFILE

#: The states of a port or a profile; the later, the busier.
_STATES = ("IDLE", "STREAMS", "DOWN", "PAUSE", "TX", "PCAP_TX")
_ACTIVE = ("TX", "PAUSE", "PCAP_TX")
#: The state of a profile after each of its events; "" is at rest.
_PROFILE_STATES = {
    EventType.PROFILE_STARTED: "TX",
    EventType.PROFILE_RESUMED: "TX",
    EventType.PROFILE_PAUSED: "PAUSE",
    EventType.PROFILE_STOPPED: "",
    EventType.PROFILE_FINISHED: "",
}
#: The same for the port as a whole.
_PORT_STATES = {
    EventType.PORT_STARTED: "TX",
    EventType.PORT_RESUMED: "TX",
    EventType.PORT_PAUSED: "PAUSE",
    EventType.PORT_STOPPED: "",
    EventType.PORT_FINISHED: "",
}
#: The state of a port in ``get_port_info``, by the words that scripts know.
_WORDS = {"STREAMS": "IDLE", "TX": "TRANSMITTING", "PCAP_TX": "TRANSMITTING"}
_LINK_CHANGES_KEPT = 100
_FLOW_CONTROL = {0: "none", 1: "tx", 2: "rx", 3: "full"}


@dataclass(frozen=True)
class LinkChange:
    """A link that went down or came back, or whose MTU changed: when, by ``time.monotonic``, and how."""

    at_s: float
    is_up: bool
    #: What our own server says of a link that is down, such as "the interface is gone".
    cause: str = ""
    #: Of a changed MTU: what it is now, and what it was when the server started; None where it is as then.
    mtu: tuple[int, int] | None = None
    is_mtu: bool = False

    @property
    def words(self) -> str:
        """What happened, as the end of a sentence."""
        if self.is_mtu:
            return _mtu_words(self.mtu)
        if self.is_up:
            return "came up"
        return f"went down ({self.cause})" if self.cause else "went down"


def _mtu_words(mtu: tuple[int, int] | None) -> str:
    if mtu is None:
        return "got the MTU back that it had when the server started"
    now, at_start = mtu
    longer = "; longer packets are lost" if now < at_start else ""
    return f"got an MTU of {now:,} bytes ({at_start:,} when the server started{longer})"


@dataclass
class PortProfile:
    """One profile of a port: its streams, and what it does."""

    state: str = "IDLE"
    streams: dict[int, STLStream] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether it sends, or is paused."""
        return self.state in _ACTIVE

    @property
    def is_loaded(self) -> bool:
        """Whether it has streams."""
        return self.state != "IDLE"

    def rest(self) -> None:
        """It does not send any more; or its streams have changed while it does not."""
        self.state = "STREAMS" if self.streams else "IDLE"


@dataclass(frozen=True)
class PortLoss:
    """How a port that was acquired came to be ours no more.

    ``who`` and ``session_id`` are those who have it now; ``who`` is None when the server released it.
    """

    who: str | None
    session_id: int
    ts: float


@dataclass
class Port:
    """One port of the server."""

    port_id: int
    info: dict[str, Any]
    status: dict[str, Any] = field(default_factory=dict)
    #: The key that the server gave for the port; None while it is not ours.
    handler: str | None = None
    #: How it was lost, if it was ours and is so no more without having been released by us.
    loss: PortLoss | None = None
    profiles: dict[str, PortProfile] = field(default_factory=lambda: {DEFAULT_PROFILE: PortProfile()})
    next_stream_id: int = 1
    #: What the port does beside its profiles: it sends a capture that the server reads, for example.
    besides: str = "IDLE"
    #: The last times that the link went down or came up, as events told.
    link_changes: deque[LinkChange] = field(default_factory=lambda: deque(maxlen=_LINK_CHANGES_KEPT))

    def give_up(self) -> None:
        """It is ours no more, as we wanted."""
        self.handler, self.status["owner"] = None, ""

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
    def is_pushing(self) -> bool:
        """Whether the port sends a capture that the server reads."""
        return self.besides in _ACTIVE

    @property
    def has_capture_port(self) -> bool:
        """Whether the port is joined with a ZeroMQ socket."""
        return bool(self.status.get("rx_info", {}).get("capture_port", {}).get("is_active"))

    @property
    def is_link_up(self) -> bool:
        """Whether the link is up, as far as is known."""
        return bool(self.status.get("attr", {}).get("link", {}).get("up", True))

    def has(self, attribute: str) -> bool:
        """Whether an attribute is switched on: "promiscuous" or "multicast"."""
        return bool(self.status.get("attr", {}).get(attribute, {}).get("enabled"))

    @property
    def is_service(self) -> bool:
        """Whether the port is in service mode."""
        return bool(self.status.get("service"))

    @property
    def is_service_filtered(self) -> bool:
        """Whether the port is in filtered service mode."""
        return bool(self.status.get("service_filtered"))

    @property
    def src_mac(self) -> str:
        """The port's own MAC address."""
        return str(self._layer("ether").get("src") or self.info.get("hw_mac", ""))

    @property
    def dst_mac(self) -> str | None:
        """Where frames of the port go unless they say otherwise; None while that is not known."""
        ether = self._layer("ether")
        return str(ether["dst"]) if ether.get("dst") and ether.get("state") != "unconfigured" else None

    @property
    def is_l3(self) -> bool:
        """Whether the port has an IPv4 address and a gateway."""
        return self._layer("ipv4").get("state") in ("resolved", "unresolved")

    @property
    def is_resolved(self) -> bool:
        """Whether it is known where frames of the port go."""
        return self._layer("ipv4").get("state") == "resolved" or (not self.is_l3 and self.dst_mac is not None)

    @property
    def src_ipv4(self) -> str | None:
        """The port's IPv4 address, if it has one."""
        return self._layer("ipv4").get("src") if self.is_l3 else None

    @property
    def dst_ipv4(self) -> str | None:
        """The IPv4 address of the port's gateway, if it has one."""
        return self._layer("ipv4").get("dst") if self.is_l3 else None

    @property
    def src_ipv6(self) -> str | None:
        """The IPv6 address that the port was given; None when it has none, or one made of its MAC."""
        layer = self._layer("ipv6")
        return (layer.get("src") or None) if layer.get("enabled") else None

    @property
    def vlan(self) -> tuple[int, ...]:
        """The VLAN tags of the port, the outer first."""
        return tuple(self.status.get("attr", {}).get("vlan", {}).get("tags") or ())

    @property
    def speed_bps(self) -> float:
        """The line rate in bits a second; 0 when the server does not know."""
        return float(self.status.get("attr", {}).get("speed") or 0) * 1e9

    @property
    def state(self) -> str:
        """The state of the busiest profile, or of what the port does besides."""
        states = [profile.state for profile in list(self.profiles.values())]
        return max([*states, self.besides], key=_rank)

    @property
    def streams(self) -> dict[int, STLStream]:
        """The streams of all profiles."""
        return {
            number: stream
            for profile in list(self.profiles.values())
            for number, stream in profile.streams.items()
        }

    def profile(self, name: str) -> PortProfile:
        """A profile of the port, made when it is not there."""
        return self.profiles.setdefault(name, PortProfile())

    def take_status(self, status: dict[str, Any]) -> None:
        """Take the answer of ``get_port_status``."""
        self.status = status
        whole = str(status.get("state", "IDLE"))
        states = status.get("state_profile")
        if not isinstance(states, dict):
            states = {DEFAULT_PROFILE: whole}
        for name in {*self.profiles, *states}:
            self.profile(name).state = str(states.get(name, "IDLE"))
        self._take_whole(whole)
        self.next_stream_id = max(self.next_stream_id, int(status.get("max_stream_id") or 0) + 1)

    @property
    def _mtu_change(self) -> tuple[int, int] | None:
        """The MTU of the interface now and at the server's start, where they differ."""
        mtu = self._link.get("mtu")
        return (int(mtu["now"]), int(mtu["at_start"])) if mtu else None

    @property
    def link_cause(self) -> str:
        """Why the link is down, where the server says so."""
        return str(self._link.get("cause", ""))

    @property
    def _link(self) -> dict[str, Any]:
        found: dict[str, Any] = self.status.get("attr", {}).get("link") or {}
        return found

    def take_event(self, kind: EventType, data: dict[str, Any]) -> None:
        """Follow an event of the server."""
        if kind is EventType.PORT_ATTRIBUTE:
            was_up, mtu = self.is_link_up, self._mtu_change
            self.status.setdefault("attr", {}).update(data.get("attr") or {})
            if self.is_link_up != was_up:
                cause = str(self.status["attr"]["link"].get("cause", ""))
                self.link_changes.append(LinkChange(time.monotonic(), self.is_link_up, cause))
            elif self._mtu_change != mtu:
                change = LinkChange(time.monotonic(), self.is_link_up, mtu=self._mtu_change, is_mtu=True)
                self.link_changes.append(change)
        elif kind in _PROFILE_STATES:
            profile = self.profile(str(data.get("profile_id", DEFAULT_PROFILE)))
            if _PROFILE_STATES[kind]:
                profile.state = _PROFILE_STATES[kind]
            elif self.is_acquired:
                profile.rest()
            else:
                # It belongs to someone else, and has the streams that it was started with.
                profile.state = "STREAMS"
        elif kind in _PORT_STATES:
            self._take_whole(_PORT_STATES[kind] or "IDLE")

    def forget_streams(self) -> None:
        """All streams were removed."""
        for profile in list(self.profiles.values()):
            profile.streams.clear()
            if not profile.is_active:
                profile.rest()
        self.next_stream_id = 1

    def get_layer_cfg(self) -> dict[str, Any]:
        """The addresses of the port, in the words of the protocol: "ether", "ipv4", "ipv6"."""
        layers: dict[str, Any] = self.status.get("attr", {}).get("layer_cfg", {})
        return layers

    def _layer(self, name: str) -> dict[str, Any]:
        layer: dict[str, Any] = self.get_layer_cfg().get(name, {})
        return layer

    def _take_whole(self, state: str) -> None:
        """The server says the state of the port: what its profiles do not explain, it does besides."""
        self.besides = "IDLE"
        if _rank(state) > _rank(self.state):
            self.besides = state

    def describe(self) -> dict[str, Any]:
        """One flat dictionary of the port's facts, settings and state, by the names that scripts know."""
        attributes = self.status.get("attr", {})
        return {
            **self.info,
            **self._abilities(),
            **_addresses(attributes.get("layer_cfg", {})),
            "owner": self.status.get("owner", ""),
            "status": _WORDS.get(self.state, self.state),
            "stream_count": len(self.streams),
            "link": "UP" if attributes.get("link", {}).get("up") else "DOWN",
            "speed": attributes.get("speed", 0),
            "prom": "on" if attributes.get("promiscuous", {}).get("enabled") else "off",
            "mult": "on" if attributes.get("multicast", {}).get("enabled") else "off",
            "rx_filter_mode": "fetch all" if attributes.get("rx_filter_mode") == "all" else "hardware match",
            "fc": _FLOW_CONTROL.get(attributes.get("fc", {}).get("mode"), "N/A"),
            "vxlan_fs": attributes.get("vxlan_fs") or "-",
            "vlan": _vlan_text(self.vlan),
            **_receive_features(self.status.get("rx_info", {})),
            "service": self.is_service,
            "service_filtered": self.is_service_filtered,
        }

    def _abilities(self) -> dict[str, str]:
        names = {
            "is_virtual": "is_virtual",
            "link_change_supported": "is_link_supported",
            "led_change_supported": "is_led_supported",
            "prom_supported": "is_prom_supported",
            "fc_supported": "is_fc_supported",
            "is_vxlan_supported": "is_vxlan_supported",
            "is_ieee1588_supported": "is_ieee1588_supported",
        }
        return {name: "yes" if self.info.get(fact) else "no" for name, fact in names.items()}


def _rank(state: str) -> int:
    return _STATES.index(state) if state in _STATES else 0


def _addresses(layers: dict[str, Any]) -> dict[str, Any]:
    ether, ipv4, ipv6 = (layers.get(name, {}) for name in ("ether", "ipv4", "ipv6"))
    resolved = {"resolved": ether.get("dst", ""), "unresolved": "unresolved"}
    unknown = ether.get("state") == "unconfigured"
    return {
        "layer_mode": "IPv4" if ipv4.get("state") in resolved else "Ethernet",
        "src_mac": ether.get("src", ""),
        "dst_mac": ether.get("dst", ""),
        "dest": ipv4.get("dst") or ("unconfigured" if unknown else ether.get("dst", "")),
        "src_ipv4": ipv4.get("src", "-"),
        "arp": resolved.get(ipv4.get("state"), "-"),
        "ipv6": (ipv6.get("src") or "auto") if ipv6.get("enabled") else "off",
    }


def _vlan_text(tags: tuple[int, ...]) -> int | str:
    if len(tags) == 1:
        return tags[0]
    return "{}/{} (QinQ)".format(*tags) if tags else "-"


def _receive_features(rx_info: dict[str, Any]) -> dict[str, str]:
    """What receives the frames of the port beside its counters."""
    queue, announces, joined = (rx_info.get(name, {}) for name in ("queue", "grat_arp", "capture_port"))
    return {
        "rx_queue": f"[{queue.get('count')} / {queue.get('size')}]" if queue.get("is_active") else "off",
        "grat_arp": f"every {announces.get('interval_sec')} seconds" if announces.get("is_active") else "off",
        "capture_port": str(joined.get("endpoint", "on")) if joined.get("is_active") else "off",
    }
