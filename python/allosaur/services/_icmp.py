"""Ping over IPv4."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from scapy.layers.inet import ICMP, ICMPerror, IPerror

from .._errors import STLError
from ..packets._buffer import PacketBuffer
from ..packets._scapy import IP, Ether, with_fixed_addresses
from ..packets._vlan import VLAN, seen_tags
from ._ping_record import PingRecord
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._context import ServiceContext
    from ._pipe import ServicePipe

_REPLY, _UNREACHABLE, _REQUEST = 0, 3, 8


class ServiceFilterICMP(STLServiceFilter):
    """Echo replies and what routers say of requests, by source, identifier and sequence number."""

    def __init__(self) -> None:
        self._services: dict[Any, list[STLServiceICMP]] = defaultdict(list)

    def add(self, service: STLServiceICMP) -> None:
        """Take one more service."""
        self._services[service.src_ip, service.id, service.seq, tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[STLServiceICMP]:
        """Whose request this is about."""
        frame = Ether(pkt)
        if ICMP not in frame:
            return []
        if frame[ICMP].type == _REPLY:
            asked = frame[IP].dst, frame[ICMP].id, frame[ICMP].seq
        elif frame[ICMP].type == _UNREACHABLE and ICMPerror in frame:
            # It carries the head of the packet that did not arrive.
            asked = frame[IPerror].src, frame[ICMPerror].id, frame[ICMPerror].seq
        else:
            return []
        return self._services.get((*asked, seen_tags(frame)), [])

    def get_bpf_filter(self) -> str:
        """ICMP with up to two VLAN tags."""
        return "icmp or (vlan and icmp) or (vlan and icmp)"


class STLServiceICMP(STLService):
    """Ping ``dst_ip`` once; ``get_record`` has what came of it, a ``PingRecord``.

    ``src_ip`` is who asks (default: the port's address). ``pkt_size`` is the frame's size in bytes
    without FCS, ``timeout_sec`` how long to wait in seconds, ``vlan`` one tag or two.
    """

    PINGRecord = PingRecord

    def __init__(
        self,
        ctx: ServiceContext,
        dst_ip: str,
        src_ip: str | None = None,
        pkt_size: int = 64,
        timeout_sec: float = 3,
        verbose_level: int = STLService.ERROR,
        vlan: Any = None,
    ) -> None:
        super().__init__(verbose_level)
        source = src_ip or ctx.get_src_ipv4()
        if source is None:
            raise STLError(
                f"port {ctx.get_port_id()} has no IPv4 address to ping from: call set_l3_mode() first, "
                f"or give src_ip"
            )
        self.src_ip = source
        self.dst_ip = dst_ip
        self.vlan = VLAN(vlan)
        self.pkt_size = pkt_size
        self.timeout_sec = timeout_sec
        self.id = random.getrandbits(16)
        self.seq = 0
        self.record: PingRecord | None = None

    def get_filter_type(self) -> type[STLServiceFilter]:
        """Echo replies."""
        return ServiceFilterICMP

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Send one request, and wait."""
        self.record = None
        self.log(f"ICMP: {self.src_ip:<15} ---> pinging {self.dst_ip}")
        sent = yield pipe.async_tx_pkt(self._request())
        packets = yield pipe.async_wait_for_pkt(time_sec=self.timeout_sec)
        self.record = self._judge(packets[0], sent["ts"]) if packets else PingRecord()
        self.log(f"ICMP: {self.src_ip:<15} <--- {self.record}")

    def get_record(self) -> PingRecord | None:
        """What came of it; None before the service ran."""
        return self.record

    def _request(self) -> PacketBuffer:
        frame = Ether() / IP(src=self.src_ip, dst=self.dst_ip) / ICMP(type=_REQUEST, id=self.id, seq=self.seq)
        frame = self.vlan.embed(with_fixed_addresses(frame))
        frame = frame / (b"x" * max(0, self.pkt_size - len(frame)))
        return PacketBuffer(frame, port_src=True, port_dst=True)

    @staticmethod
    def _judge(packet: dict[str, Any], sent_s: float) -> PingRecord:
        frame = Ether(packet["pkt"])
        answer = frame[IP]
        if answer[ICMP].type != _REPLY:
            return PingRecord(PingRecord.UNREACHABLE, answer.src)
        rtt_ms = (packet["ts"] - sent_s) * 1000
        return PingRecord(PingRecord.SUCCESS, answer.src, answer.ttl, rtt_ms, len(packet["pkt"]))
