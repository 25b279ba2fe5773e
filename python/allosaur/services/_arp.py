"""ARP: who has an IPv4 address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..packets._buffer import PacketBuffer
from ..packets._scapy import ARP, Ether
from ..packets._vlan import VLAN, seen_tags
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._context import ServiceContext
    from ._pipe import ServicePipe

_REPLY = 2


class ARPRecord:
    """What was found out: ``dst_ip`` is at ``dst_mac``; None when nobody answered. True when found."""

    def __init__(self, src_ip: str, dst_ip: str, dst_mac: str | None = None) -> None:
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.dst_mac = dst_mac

    def __bool__(self) -> bool:
        return self.dst_mac is not None

    def __str__(self) -> str:
        if self.dst_mac is None:
            return f"no ARP reply from {self.dst_ip}"
        return f"{self.dst_ip} is at {self.dst_mac}"


class ServiceFilterARP(STLServiceFilter):
    """ARP replies, by who asked whom."""

    def __init__(self) -> None:
        self._services: dict[Any, list[STLServiceARP]] = defaultdict(list)

    def add(self, service: STLServiceARP) -> None:
        """Take one more service."""
        self._services[service.src_ip, service.dst_ip, tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[STLServiceARP]:
        """Who waits for this reply."""
        frame = Ether(pkt)
        if ARP not in frame or frame[ARP].op != _REPLY:
            return []
        return self._services.get((frame[ARP].pdst, frame[ARP].psrc, seen_tags(frame)), [])

    def get_bpf_filter(self) -> str:
        """ARP with up to two VLAN tags: each ``vlan`` moves what follows by one tag."""
        return "arp or (vlan and arp) or (vlan and arp)"


class STLServiceARP(STLService):
    """Ask by ARP for the MAC of ``dst_ip``; ``get_record`` has the answer.

    ``src_ip`` is who asks; ``src_mac`` its MAC (default: the port's). ``vlan`` is one tag or two,
    ``fmt`` their kinds, as for ``VLAN.embed``. ``timeout_sec`` is how long to wait in seconds.
    ``trigger_pkt`` is sent in place of the request, to see whether it makes somebody ask and answer.
    """

    def __init__(
        self,
        ctx: ServiceContext,
        dst_ip: str,
        src_ip: str = "0.0.0.0",
        vlan: Any = None,
        src_mac: str | None = None,
        timeout_sec: float = 3,
        verbose_level: int = STLService.ERROR,
        fmt: str | None = None,
        trigger_pkt: Any = None,
    ) -> None:
        super().__init__(verbose_level)
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.vlan = VLAN(vlan)
        self.src_mac = src_mac or ctx.get_src_mac()
        self.timeout_sec = timeout_sec
        self.fmt = fmt
        self.trigger_pkt = trigger_pkt
        self.record: ARPRecord | None = None

    def get_filter_type(self) -> type[STLServiceFilter]:
        """ARP replies."""
        return ServiceFilterARP

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Ask once, and wait."""
        self.record = None
        self.log(f"ARP: ---> who has {self.dst_ip}? tell {self.src_ip}")
        # Waiting begins when the packet has left: many may stand in line.
        yield pipe.async_tx_pkt(self.trigger_pkt if self.trigger_pkt is not None else self._request())
        packets = yield pipe.async_wait_for_pkt(time_sec=self.timeout_sec)
        mac = Ether(packets[0]["pkt"])[ARP].hwsrc if packets else None
        self.record = ARPRecord(self.src_ip, self.dst_ip, mac)
        self.log(f"ARP: <--- {self.record}")

    def get_record(self) -> ARPRecord | None:
        """What was found out; None before the service ran."""
        return self.record

    def _request(self) -> PacketBuffer:
        asked = ARP(hwsrc=self.src_mac, psrc=self.src_ip, hwdst="00:00:00:00:00:00", pdst=self.dst_ip)
        frame = Ether(dst="ff:ff:ff:ff:ff:ff", src=self.src_mac) / asked
        return PacketBuffer(self.vlan.embed(frame, self.fmt))
