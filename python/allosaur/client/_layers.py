"""What a client does with the addresses of ports, and packets that it sends out of them at once."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._errors import STLArgumentError, STLPacketError
from ..packets._buffer import PacketBuffer
from ..packets._vlan import VLAN
from ..streams._packet import PACKET_BYTES_MAX, PACKET_BYTES_MIN, STLPktBuilder
from ._connection import Connection
from ._places import Ports

if TYPE_CHECKING:
    from scapy.packet import Packet

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
_PUSH_S_MAX = 1.0
#: The server refuses requests of a megabyte; each packet has fields beside its bytes.
_REQUEST_CHARS_MAX = 400_000
_FIELDS_CHARS = 80


class Layers:
    """Addresses of ports, and pushed packets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set_l2_mode(self, port: int, dst_mac: str) -> None:
        """Let the frames of a port go to ``dst_mac``, unless a stream has its own destination."""
        if not isinstance(dst_mac, str) or not _MAC.fullmatch(dst_mac):
            raise STLArgumentError("dst_mac", dst_mac, "a MAC address such as '02:00:00:00:00:01'")
        self.configure("set_l2", [port], dst_mac=dst_mac)

    def conf_ipv6(self, port: int, enabled: bool, src_ipv6: str | None = None) -> None:
        """Switch IPv6 of a port; without ``src_ipv6`` it has the link-local address of its MAC."""
        if src_ipv6:
            try:
                ipaddress.IPv6Address(src_ipv6)
            except ValueError:
                raise STLArgumentError(
                    "src_ipv6", src_ipv6, "an IPv6 address such as '2001:db8::1'"
                ) from None
        self.configure("conf_ipv6", [port], enabled=bool(enabled), src_ipv6=src_ipv6 or "")

    def set_vlan(self, ports: Ports = None, vlan: VLAN | int | Sequence[int] | None = ()) -> None:
        """The VLAN tags of the client's own packets on ports: none, one, or two with the outer first.

        Streams have the tags of their packets.
        """
        tags = VLAN(vlan).get_tags()
        self.configure(
            "set_vlan", self._connection.ports_of(ports, self._connection.acquired_ports), vlan=list(tags)
        )

    def clear_vlan(self, ports: Ports = None) -> None:
        """No VLAN tags on the client's own packets."""
        self.set_vlan(ports)

    def set_vxlan(
        self,
        ports: Ports = None,
        vni: int | None = None,
        local: str | None = None,
        remote: str | None = None,
        udp_port: int = 4789,
        inner_mac: str | None = None,
        any_vni: bool = False,
    ) -> None:
        """The network of VXLAN that flows and streams of ports are in; without ``vni`` they are in none.

        ``local`` and ``remote`` are the addresses of the two ends (default: the port's own, and its
        gateway), ``inner_mac`` is where frames go inside of the tunnel (default: the port's destination).
        With ``any_vni``, frames of any network are taken, and answered in it. Packets that are pushed, and
        captures that are replayed, leave as they are. TRex's servers do not know it.
        """
        vxlan: dict[str, Any] | None = None
        if vni is not None:
            vxlan = {"vni": vni, "udp_port": udp_port, "any_vni": bool(any_vni)}
            given = {"local": local, "remote": remote, "inner_mac": inner_mac}
            vxlan.update((name, value) for name, value in given.items() if value is not None)
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        self.configure("set_vxlan", chosen, vxlan=vxlan)

    def push_packets(
        self,
        pkts: bytes | Packet | PacketBuffer | Sequence[bytes | Packet | PacketBuffer],
        ports: Ports = None,
        force: bool = False,
        ipg_usec: float = 0,
    ) -> list[dict[str, Any]]:
        """Send packets out of ports, once, beside whatever runs there.

        ``pkts`` are Scapy packets, bytes without FCS, or ``PacketBuffer``, one or many. MAC addresses
        that a Scapy packet leaves open are those of the port; bytes get the port's in any case, and
        ``PacketBuffer`` keeps its own. ``ipg_usec`` is between two packets in microseconds; all
        together may take a second. ``force`` is accepted: existing scripts give it.

        Returns for each port how many packets were ``sent``, and ``ts``, when: the server's time in
        seconds.
        """
        many: list[Any] = list(pkts) if isinstance(pkts, (list, tuple)) else [pkts]
        if not many:
            raise STLArgumentError("pkts", pkts, "at least one packet")
        if ipg_usec < 0 or len(many) * ipg_usec > _PUSH_S_MAX * 1e6:
            raise STLArgumentError("ipg_usec", ipg_usec, "a gap that makes the packets last at most 1 s")
        chunks = list(_chunks([_pushed(packet) for packet in many]))
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        fields = {"ipg_usec": int(ipg_usec), "force": bool(force)}
        return [self._push(port_id, chunks, fields) for port_id in chosen]

    def _push(
        self, port_id: int, chunks: list[list[dict[str, Any]]], fields: dict[str, Any]
    ) -> dict[str, Any]:
        calls = [("push_pkts", {"port_id": port_id, "pkts": chunk, **fields}) for chunk in chunks]
        answers = self._connection.all(calls, [port_id] * len(calls))
        return {"sent": sum(answer["sent"] for answer in answers), "ts": answers[0]["ts"]}

    def configure(self, method: str, ports: Ports, **params: Any) -> None:
        """Change addresses of ports, and read what they are then."""
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        self._connection.each(method, chosen, block=False, **params)
        self._connection.refresh(chosen)


def _chunks(packets: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Packets in lists of which each fits in one request."""
    chunk: list[dict[str, Any]] = []
    size = 0
    for packet in packets:
        if chunk and size + len(packet["binary"]) > _REQUEST_CHARS_MAX:
            yield chunk
            chunk, size = [], 0
        chunk.append(packet)
        size += len(packet["binary"]) + _FIELDS_CHARS
    yield chunk


def _pushed(packet: bytes | Packet | PacketBuffer) -> dict[str, Any]:
    """A packet as ``push_pkts`` wants it. Raises ``STLPacketError``."""
    if isinstance(packet, PacketBuffer):
        data, source, destination = packet.buffer, packet.port_src, packet.port_dst
    elif isinstance(packet, (bytes, bytearray)):
        data, source, destination = bytes(packet), True, True
    else:
        builder = STLPktBuilder(pkt=packet)
        data = builder.dump_pkt(encode=False)["binary"]
        source, destination = builder.is_default_src_mac(), builder.is_default_dst_mac()
    if not PACKET_BYTES_MIN <= len(data) <= PACKET_BYTES_MAX:
        raise STLPacketError(
            f"the packet has {len(data)} bytes: give {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}, without FCS"
        )
    binary = base64.b64encode(data).decode()
    return {"binary": binary, "use_port_dst_mac": destination, "use_port_src_mac": source}
