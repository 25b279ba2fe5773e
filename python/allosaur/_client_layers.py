"""What a client does with the addresses of ports, and packets that it sends out of them at once.

What does not live here yet: finding a gateway by ARP, which needs what a port receives.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._client_base import ClientBase
from ._errors import STLArgumentError
from ._packet import STLPktBuilder
from ._places import Ports

if TYPE_CHECKING:
    from scapy.packet import Packet

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_VLAN_TAGS_MAX = 2
_PUSH_S_MAX = 1.0


class LayerMethods(ClientBase):
    """Addresses of ports, and pushed packets."""

    def set_l2_mode(self, port: int, dst_mac: str) -> None:
        """Let the frames of a port go to ``dst_mac``, unless a stream has its own destination."""
        if not isinstance(dst_mac, str) or not _MAC.fullmatch(dst_mac):
            raise STLArgumentError("dst_mac", dst_mac, "a MAC address such as '02:00:00:00:00:01'")
        self._configure("set_l2", [port], dst_mac=dst_mac)

    def conf_ipv6(self, port: int, enabled: bool, src_ipv6: str | None = None) -> None:
        """Switch IPv6 of a port; without ``src_ipv6`` it has the link-local address of its MAC."""
        if src_ipv6:
            try:
                ipaddress.IPv6Address(src_ipv6)
            except ValueError:
                raise STLArgumentError(
                    "src_ipv6", src_ipv6, "an IPv6 address such as '2001:db8::1'"
                ) from None
        self._configure("conf_ipv6", [port], enabled=bool(enabled), src_ipv6=src_ipv6 or "")

    def set_vlan(self, ports: Ports = None, vlan: int | Sequence[int] = ()) -> None:
        """The VLAN tags of the client's own packets on ports: none, one, or two with the outer first.

        Streams have the tags of their packets.
        """
        tags = [vlan] if isinstance(vlan, int) else list(vlan)
        if len(tags) > _VLAN_TAGS_MAX or not all(isinstance(tag, int) and 1 <= tag <= 4095 for tag in tags):
            raise STLArgumentError("vlan", vlan, "none, one or two of 1 to 4095")
        self._configure("set_vlan", self._ports(ports, self.get_acquired_ports), vlan=tags)

    def clear_vlan(self, ports: Ports = None) -> None:
        """No VLAN tags on the client's own packets."""
        self.set_vlan(ports)

    def push_packets(
        self,
        pkts: bytes | Packet | Sequence[bytes | Packet],
        ports: Ports = None,
        force: bool = False,
        ipg_usec: int = 1,
    ) -> None:
        """Send packets out of ports, once, beside whatever runs there.

        ``pkts`` are bytes without FCS or Scapy packets, one or many; MAC addresses that a Scapy packet
        leaves open are those of the port. ``ipg_usec`` is between two packets in microseconds; all
        together may take a second. ``force`` is accepted: existing scripts give it.
        """
        many: list[Any] = list(pkts) if isinstance(pkts, (list, tuple)) else [pkts]
        if not many:
            raise STLArgumentError("pkts", pkts, "at least one packet")
        if ipg_usec < 0 or len(many) * ipg_usec > _PUSH_S_MAX * 1e6:
            raise STLArgumentError("ipg_usec", ipg_usec, "a gap that makes the packets last at most 1 s")
        pushed = [_pushed(packet) for packet in many]
        chosen = self._ports(ports, self.get_acquired_ports)
        self._each("push_pkts", chosen, pkts=pushed, ipg_usec=int(ipg_usec), force=force)

    def _configure(self, method: str, ports: Ports, **params: Any) -> None:
        chosen = self._ports(ports, self.get_acquired_ports)
        self._each(method, chosen, block=False, **params)
        for port_id in chosen:
            self._session().refresh(self._port(port_id))


def _pushed(packet: bytes | Packet) -> dict[str, Any]:
    """Give a packet as ``push_pkts`` wants it."""
    if isinstance(packet, bytes):
        builder = STLPktBuilder(pkt_buffer=packet, remove_fcs=False)
        from_port = (False, False)
    else:
        builder = STLPktBuilder(pkt=packet, build_raw=True)
        from_port = (builder.is_default_dst_mac(), builder.is_default_src_mac())
    binary = base64.b64encode(builder.dump_pkt(encode=False)["binary"]).decode()
    return {"binary": binary, "use_port_dst_mac": from_port[0], "use_port_src_mac": from_port[1]}
