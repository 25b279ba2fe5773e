"""What a client finds out about who is around: ARP, ping, scans, which ports are joined.

The services that do it, and Scapy with them, are imported when they are used.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._errors import STLArgumentError, STLError
from ..packets._buffer import CapturedPacket, PacketBuffer
from ..packets._vlan import VLAN
from ._capture import Captures
from ._connection import Connection
from ._layers import Layers
from ._places import Ports
from ._service_mode import ServiceMode

if TYPE_CHECKING:
    from ..services._client import ServiceClient
    from ..services._context import ServiceContext
    from ..services._ping_record import PingRecord

_PING_BYTES_MIN, _PING_BYTES_MAX = 64, 9216
_MAP_POLL_S = 0.02
_MAP_UDP_PORT = 12345

#: One tag, two (the outer first), or none.
Vlan = int | Iterable[int] | None


class Neighbors:
    """ARP, ping, scans, maps, and contexts for services of one's own, which ``client`` runs."""

    def __init__(
        self,
        connection: Connection,
        service_mode: ServiceMode,
        captures: Captures,
        layers: Layers,
        client: ServiceClient,
    ) -> None:
        self._connection = connection
        self._service_mode = service_mode
        self._captures = captures
        self._layers = layers
        self._client = client

    def create_service_ctx(self, port: int) -> ServiceContext:
        """Where services of a port run: ``client.create_service_ctx(0).run(services)``."""
        from ..services._context import ServiceContext

        (port_id,) = self._connection.ports_of([port], self._connection.all_ports, owned=False)
        return ServiceContext(self._client, port_id)

    def set_l3_mode(self, port: int, src_ipv4: str, dst_ipv4: str, vlan: Vlan = None) -> None:
        """Give a port an IPv4 address and a gateway, and find the gateway's MAC by ARP.

        ``vlan`` is as for ``set_vlan``. The port must be in service mode. Raises ``STLError``; when
        the gateway does not answer the addresses stay, and ``resolve`` can try again.
        """
        addresses = {
            name: _ipv4(name, value) for name, value in (("src_ipv4", src_ipv4), ("dst_ipv4", dst_ipv4))
        }
        (port_id,) = self._connection.service_ports([port])
        if vlan is not None:
            self._layers.set_vlan([port_id], VLAN(vlan).get_tags())
        self._set_l3(port_id, addresses["src_ipv4"], addresses["dst_ipv4"])
        self.resolve([port_id])

    def resolve(self, ports: Ports = None, retries: int = 0, verbose: bool = True, vlan: Vlan = None) -> None:
        """Find the MAC of the gateway of ports by ARP; without ``ports`` of all of ours that have one.

        ``retries`` is how often to ask again when nobody answers for 3 seconds; ``vlan`` the tags of
        the request (default: the port's); ``verbose`` says in the log who answered. The ports must
        be in L3 mode and in service mode. Raises ``STLError`` that names the ports without an answer.
        """
        chosen = self._connection.service_ports(self._with_gateway() if ports is None else ports)
        without = [port for port in chosen if not self._connection.port(port).is_l3]
        if without:
            raise STLError(f"port(s) {without}: have no IPv4 address, call set_l3_mode() first")
        tags = VLAN(vlan)
        failed = []
        for port_id in chosen:
            record = self._ask_gateway(port_id, retries, tags)
            if not record:
                failed.append(f"port {port_id} ({record})")
            elif verbose:
                self._connection.say(logging.INFO, f"port {port_id}: {record}")
        if failed:
            raise STLError(f"no gateway found: {', '.join(failed)}; see that it is up and in the same VLAN")

    arp = resolve

    def ping_ip(
        self,
        src_port: int,
        dst_ip: str,
        pkt_size: int = 64,
        count: int = 5,
        interval_sec: float = 1,
        vlan: Vlan = None,
        timeout_sec: float = 3,
        on_reply: Callable[[PingRecord], None] | None = None,
    ) -> list[PingRecord]:
        """Ping an IPv4 or IPv6 address from a port. The result is a list, one record a ping.

        A record has ``status`` ("success", "timeout", "unreachable"), ``formatted_string``, and on
        success ``src_ip``, ``rtt`` (milliseconds) and ``ttl``. ``pkt_size`` is the frame's size in
        bytes without FCS, ``interval_sec`` between two pings, ``timeout_sec`` how long to wait for
        each answer; ``vlan`` the tags (default: the port's). ``on_reply`` is called with each record
        at once. The port must be in service mode, and for IPv4 in L3 mode. Raises ``STLError``.
        """
        address = _ip("dst_ip", dst_ip)
        _check_range("pkt_size", pkt_size, _PING_BYTES_MIN, _PING_BYTES_MAX)
        _check_range("count", count, 1, 1 << 31)
        for name, value in (("interval_sec", interval_sec), ("timeout_sec", timeout_sec)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise STLArgumentError(name, value, "seconds, 0 or more")
        (port_id,) = self._connection.service_ports([src_port])
        tags = VLAN(self._connection.port(port_id).vlan if vlan is None else vlan)
        if address.version == 4:
            ping = self._ping4(port_id, str(address), pkt_size, timeout_sec, tags)
        else:
            ping = self._ping6(port_id, str(address), pkt_size, timeout_sec, tags)
        records = []
        for number in range(count):
            if number:
                time.sleep(interval_sec)
            records.append(ping())
            self._connection.say(logging.INFO, str(records[-1]))
            if on_reply is not None:
                on_reply(records[-1])
        return records

    def scan6(
        self, ports: Ports = None, timeout: float = 3, verbose: bool = False
    ) -> dict[int, list[dict[str, str]]]:
        """Find the IPv6 nodes on the links of ports: for each port a list of ``type``, ``mac``, ``ipv6``.

        ``type`` is "Host" or "Router". ``timeout`` is how long to look in seconds; ``verbose`` says in
        the log who was found. The ports must be in service mode.
        """
        from ..services._scan6 import STLServiceIPv6Scan

        found = {}
        for port_id in self._connection.service_ports(ports):
            context = self.create_service_ctx(port_id)
            scan = STLServiceIPv6Scan(context, timeout=timeout)
            context.run(scan)
            found[port_id] = scan.get_record()
            if verbose:
                for node in found[port_id]:
                    self._connection.say(
                        logging.INFO, f"port {port_id}: {node['type']} {node['ipv6']} at {node['mac']}"
                    )
        return found

    def map_ports(self, ports: Ports = None, read_delay: float = 0.3, send_pkts: int = 3) -> dict[str, Any]:
        """Find out which ports are joined, by packets that one sends and another receives.

        Returns ``map`` (for each port the one that it reaches, or None), ``bi`` (the pairs that reach
        each other), and ``unknown`` (ports that reach none). ``read_delay`` is how long to wait for
        the packets in seconds, ``send_pkts`` how many each port sends.
        """
        chosen = self._connection.ports_of(ports, self._connection.acquired_ports)
        if not chosen:
            raise STLError("there is no port to map: call acquire() or reset() first")
        magic = random.getrandbits(32)
        mine = f"udp[8:4] = {magic:#x}"
        with self._service_mode.service_mode(chosen):
            capture = self._captures.start_capture(
                rx_ports=chosen, bpf_filter=f"{mine} or (vlan && {mine}) or (vlan && {mine})"
            )["id"]
            try:
                for port_id in chosen:
                    self._layers.push_packets(
                        [self._map_packet(port_id, magic)] * send_pkts, [port_id], ipg_usec=1
                    )
                reached = self._reached(capture, len(chosen) * send_pkts, read_delay)
            finally:
                self._captures.stop_capture(capture)
        return _joined(chosen, reached, send_pkts)

    def _with_gateway(self) -> list[int]:
        connection = self._connection
        return [port for port in connection.acquired_ports() if connection.port(port).is_l3]

    def _set_l3(self, port_id: int, source: str, gateway: str, **resolved: str) -> None:
        self._layers.configure("set_l3", [port_id], src_addr=source, dst_addr=gateway, **resolved)

    def _ask_gateway(self, port_id: int, retries: int, vlan: VLAN) -> Any:
        from ..services._arp import STLServiceARP

        port = self._connection.port(port_id)
        source, gateway = port.src_ipv4 or "", port.dst_ipv4 or ""
        # What was known before must not stand if nobody answers now.
        self._set_l3(port_id, source, gateway)
        context = self.create_service_ctx(port_id)
        tags = VLAN(port.vlan) if vlan.is_default() else vlan
        arp = STLServiceARP(context, dst_ip=gateway, src_ip=source, vlan=tags)
        for _ in range(retries + 1):
            context.run(arp)
            record = arp.get_record()
            if record and record.dst_mac is not None:
                self._set_l3(port_id, source, gateway, resolved_mac=record.dst_mac)
                break
        return arp.get_record()

    def _ping4(
        self, port_id: int, ip: str, pkt_size: int, timeout_s: float, vlan: VLAN
    ) -> Callable[[], PingRecord]:
        from ..services._icmp import STLServiceICMP

        port = self._connection.port(port_id)
        if not port.is_l3:
            raise STLError(f"port {port_id}: has no IPv4 address, call set_l3_mode() first")
        if not port.is_resolved:
            raise STLError(f"port {port_id}: does not know the MAC of its gateway, call resolve() first")
        context = self.create_service_ctx(port_id)
        return _runner(
            context, STLServiceICMP(context, ip, pkt_size=pkt_size, timeout_sec=timeout_s, vlan=vlan)
        )

    def _ping6(
        self, port_id: int, ip: str, pkt_size: int, timeout_s: float, vlan: VLAN
    ) -> Callable[[], PingRecord]:
        from ..services._icmpv6 import STLServiceICMPv6

        context = self.create_service_ctx(port_id)
        return _runner(
            context, STLServiceICMPv6(context, ip, pkt_size=pkt_size, timeout=timeout_s, vlan=vlan)
        )

    def _map_packet(self, port_id: int, magic: int) -> PacketBuffer:
        """A packet by which a port is known again: behind the UDP header, the mark and the port."""
        from scapy.layers.inet import UDP

        from ..packets._scapy import IP, Ether, with_fixed_addresses

        port = self._connection.port(port_id)
        # Addresses that nobody has, so that nobody answers.
        ip = IP(dst="255.1.1.1")
        if port.src_ipv4 is not None:
            ip = IP(src=port.src_ipv4, dst=f"{port.src_ipv4.split('.')[0]}.255.255.255")
        mark = magic.to_bytes(4, "big") + bytes([port_id])
        frame = Ether() / ip / UDP(sport=_MAP_UDP_PORT, dport=_MAP_UDP_PORT) / mark
        return PacketBuffer(VLAN(port.vlan).embed(with_fixed_addresses(frame)), port_src=True, port_dst=True)

    def _reached(self, capture: int, wanted: int, delay_s: float) -> list[tuple[int, int]]:
        """Who reached whom, packet by packet: as soon as all came, or after a while."""
        from scapy.layers.inet import UDP

        from ..packets._scapy import Ether

        packets: list[CapturedPacket] = []
        deadline = time.monotonic() + delay_s
        while True:
            fetched: list[CapturedPacket] = []
            self._captures.fetch_capture_packets(capture, fetched)
            packets += fetched
            if len(packets) >= wanted or time.monotonic() >= deadline:
                break
            time.sleep(_MAP_POLL_S)
        frames = [(Ether(packet["binary"]), packet["port"]) for packet in packets]
        return [
            (bytes(frame[UDP].payload)[4], port)
            for frame, port in frames
            if UDP in frame and len(frame[UDP].payload) > 4
        ]


def _runner(context: ServiceContext, ping: Any) -> Callable[[], PingRecord]:
    def once() -> PingRecord:
        context.run(ping)
        record: PingRecord = ping.get_record()
        return record

    return once


def _joined(ports: list[int], reached: list[tuple[int, int]], sent: int) -> dict[str, Any]:
    """The map: a port reaches another when more than half of its packets came there."""
    map_: dict[int, int | None] = {
        sender: next((other for other in ports if 2 * reached.count((sender, other)) > sent), None)
        for sender in ports
    }
    pairs = [
        (port, other)
        for port, other in map_.items()
        if other is not None and port < other and map_.get(other) == port
    ]
    return {"map": map_, "bi": pairs, "unknown": [port for port, other in map_.items() if other is None]}


def _ipv4(name: str, value: Any) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise STLArgumentError(name, value, "an IPv4 address such as '192.0.2.1'") from None


def _ip(name: str, value: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        raise STLArgumentError(name, value, "an IP address such as '192.0.2.1' or '2001:db8::1'") from None


def _check_range(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise STLArgumentError(name, value, f"{least} to {most}")
