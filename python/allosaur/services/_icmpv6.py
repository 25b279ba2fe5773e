"""Ping over IPv6."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NS

from .._errors import STLError
from ..packets._buffer import PacketBuffer
from ..packets._scapy import Ether, IPv6
from ..packets._vlan import VLAN, seen_tags
from ._addresses import plain, port_ipv6
from ._nd import advertisement
from ._ping_record import PingRecord
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._context import ServiceContext
    from ._pipe import ServicePipe


class ServiceFilterIPv6(STLServiceFilter):
    """ICMPv6, by VLAN: the services look for what is theirs."""

    def __init__(self) -> None:
        self._services: dict[tuple[int, ...], list[Any]] = defaultdict(list)

    def add(self, service: Any) -> None:
        """Take one more service."""
        self._services[tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[Any]:
        """Everybody in the packet's VLAN."""
        frame = Ether(pkt)
        return self._services.get(seen_tags(frame), []) if IPv6 in frame else []

    def get_bpf_filter(self) -> str:
        """ICMPv6 with up to two VLAN tags."""
        return "icmp6 or (vlan and icmp6) or (vlan and icmp6)"


class STLServiceICMPv6(STLService):
    """Ping ``dst_ip`` over IPv6 once; ``get_record`` has what came of it, a ``PingRecord``.

    ``dst_mac`` is where the frame goes (default: where the port's frames go). ``pkt_size`` is the
    frame's size in bytes without FCS, ``timeout`` how long to wait in seconds, ``vlan`` one tag or
    two. Meanwhile it answers for the port's IPv6 address when its peer asks who has it.
    """

    def __init__(
        self,
        ctx: ServiceContext,
        dst_ip: str,
        pkt_size: int = 64,
        timeout: float = 3,
        dst_mac: str | None = None,
        verbose_level: int = STLService.ERROR,
        vlan: Any = None,
    ) -> None:
        super().__init__(verbose_level)
        port = ctx.port_obj
        mac = dst_mac or port.dst_mac
        if mac is None:
            raise STLError(
                f"port {ctx.get_port_id()} does not know where its frames go: call set_l2_mode() or "
                f"resolve() first, or give dst_mac"
            )
        self.dst_mac = mac
        self.dst_ip = plain(dst_ip)
        self.src_mac = port.src_mac
        self.src_ip = port_ipv6(port)
        self.vlan = VLAN(vlan)
        self.pkt_size = pkt_size
        self.timeout = timeout
        self.id = random.getrandbits(16)
        self.record: PingRecord | None = None

    def get_filter_type(self) -> type[STLServiceFilter]:
        """ICMPv6."""
        return ServiceFilterIPv6

    def is_mult_required(self) -> bool:
        """The peer asks for us by multicast."""
        return True

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Send one request, and wait."""
        self.record = None
        self.log(f"ICMPv6: {self.src_ip} ---> pinging {self.dst_ip}")
        sent = yield pipe.async_tx_pkt(self._request())
        end_s = pipe.now_s() + self.timeout
        while self.record is None:
            packets = yield pipe.async_wait_for_pkt(time_sec=max(0.0, end_s - pipe.now_s()))
            if not packets:
                self.record = PingRecord()
            for packet in packets:
                self._take(pipe, packet, sent["ts"])
        self.log(f"ICMPv6: {self.src_ip} <--- {self.record}")

    def get_record(self) -> PingRecord | None:
        """What came of it; None before the service ran."""
        return self.record

    def _take(self, pipe: ServicePipe, packet: dict[str, Any], sent_s: float) -> None:
        frame = Ether(packet["pkt"])
        if ICMPv6ND_NS in frame and plain(frame[ICMPv6ND_NS].tgt) == self.src_ip:
            answer = advertisement(frame, self.src_ip, self.src_mac)
            pipe.async_tx_pkt(PacketBuffer(self.vlan.embed(answer)))
        elif plain(frame[IPv6].dst) != self.src_ip or self.record is not None:
            return
        elif ICMPv6EchoReply in frame and frame[ICMPv6EchoReply].id == self.id:
            rtt_ms = (packet["ts"] - sent_s) * 1000
            answer = frame[IPv6]
            self.record = PingRecord(
                PingRecord.SUCCESS, plain(answer.src), answer.hlim, rtt_ms, len(packet["pkt"])
            )
        elif ICMPv6DestUnreach in frame:
            self.record = PingRecord(PingRecord.UNREACHABLE, plain(frame[IPv6].src))

    def _request(self) -> PacketBuffer:
        echo = IPv6(src=self.src_ip, dst=self.dst_ip) / ICMPv6EchoRequest(id=self.id)
        frame = self.vlan.embed(Ether(src=self.src_mac, dst=self.dst_mac) / echo)
        return PacketBuffer(frame / (b"x" * max(0, self.pkt_size - len(frame))))
