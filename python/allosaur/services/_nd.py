"""Neighbor discovery: who has an IPv6 address (RFC 4861)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr

from ..packets._buffer import PacketBuffer
from ..packets._scapy import Ether, IPv6
from ..packets._vlan import VLAN, seen_tags
from ._addresses import multicast_mac, plain, port_ipv6, solicited_node
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._context import ServiceContext
    from ._pipe import ServicePipe


class IPv6Neighbor:
    """What was found out: ``dst_ip`` is at ``dst_mac``, and ``state`` "REACHABLE" or "UNREACHABLE".

    ``neighbor_verifications`` is how often the neighbor asked for us. True when found.
    """

    def __init__(self, src_mac: str, src_ip: str, dst_ip: str) -> None:
        self.src_mac = src_mac
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.dst_mac: str | None = None
        self.state = "UNREACHABLE"
        self.neighbor_verifications = 0

    def __bool__(self) -> bool:
        return self.dst_mac is not None

    def __str__(self) -> str:
        if self.dst_mac is None:
            return f"no neighbor advertisement from {self.dst_ip}"
        return f"{self.dst_ip} is at {self.dst_mac}"

    def is_resolved(self) -> bool:
        """Whether the neighbor answered."""
        return self.state == "REACHABLE"


class ServiceFilterIPv6NDP(STLServiceFilter):
    """Advertisements for those who asked, and solicitations of their addresses."""

    def __init__(self) -> None:
        self._asked: dict[Any, list[STLServiceIPv6ND]] = defaultdict(list)
        self._owned: dict[Any, list[STLServiceIPv6ND]] = defaultdict(list)

    def add(self, service: STLServiceIPv6ND) -> None:
        """Take one more service."""
        self._asked[service.src_ip, service.dst_ip, tuple(service.vlan)].append(service)
        self._owned[service.src_ip, tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[STLServiceIPv6ND]:
        """Who waits for this advertisement, or has the address that is asked for."""
        frame = Ether(pkt)
        if ICMPv6ND_NA in frame:
            target = plain(frame[ICMPv6ND_NA].tgt)
            return self._asked.get((plain(frame[IPv6].dst), target, seen_tags(frame)), [])
        if ICMPv6ND_NS in frame:
            return self._owned.get((plain(frame[ICMPv6ND_NS].tgt), seen_tags(frame)), [])
        return []

    def get_bpf_filter(self) -> str:
        """ICMPv6 with up to two VLAN tags."""
        return "icmp6 or (vlan and icmp6) or (vlan and icmp6)"


class STLServiceIPv6ND(STLService):
    """Ask by neighbor discovery for the MAC of ``dst_ip``; ``get_record`` has the answer.

    ``src_ip`` is who asks (default: the port's address), ``src_mac`` its MAC (default: the port's).
    It asks once and ``retries`` times more, and waits ``timeout`` seconds each time. For
    ``verify_timeout`` seconds after the answer it also answers for ``src_ip``, so that the neighbor
    can verify it. ``vlan`` is one tag or two, ``fmt`` their kinds, as for ``VLAN.embed``.
    """

    def __init__(
        self,
        ctx: ServiceContext,
        dst_ip: str,
        src_ip: str = "::0",
        retries: int = 1,
        src_mac: str | None = None,
        vlan: Any = None,
        fmt: str | None = None,
        timeout: float = 5,
        verify_timeout: float = 0,
        verbose_level: int = STLService.ERROR,
    ) -> None:
        super().__init__(verbose_level)
        # Nobody answers to the unspecified address, so it stands for that of the port.
        self.src_ip = port_ipv6(ctx.port_obj) if plain(src_ip) == "::" else plain(src_ip)
        self.dst_ip = plain(dst_ip)
        self.retries = retries
        self.src_mac = src_mac or ctx.get_src_mac()
        self.vlan = VLAN(vlan)
        self.fmt = fmt
        self.timeout = timeout
        self.verify_timeout = verify_timeout
        self.record = IPv6Neighbor(self.src_mac, self.src_ip, self.dst_ip)

    def get_filter_type(self) -> type[STLServiceFilter]:
        """Neighbor solicitations and advertisements."""
        return ServiceFilterIPv6NDP

    def is_mult_required(self) -> bool:
        """The answer comes to us alone, but who asks for us does it by multicast."""
        return self.verify_timeout > 0

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Ask until there is an answer; then stay, to be asked."""
        self.record = IPv6Neighbor(self.src_mac, self.src_ip, self.dst_ip)
        for _ in range(self.retries + 1):
            self.log(f"ND: ---> who has {self.dst_ip}? tell {self.src_ip}")
            yield pipe.async_tx_pkt(self._solicitation())
            yield from self._listen(pipe, self.timeout, until_resolved=True)
            if self.record.is_resolved():
                break
        self.log(f"ND: <--- {self.record}")
        if self.record.is_resolved() and self.verify_timeout > 0:
            yield from self._listen(pipe, self.verify_timeout, until_resolved=False)

    def get_record(self) -> IPv6Neighbor:
        """What was found out."""
        return self.record

    def _listen(
        self, pipe: ServicePipe, duration_s: float, until_resolved: bool
    ) -> Generator[Wait, Any, None]:
        """Take what comes for so many seconds, or until the neighbor answered."""
        end_s = pipe.now_s() + duration_s
        while not (until_resolved and self.record.is_resolved()):
            packets = yield pipe.async_wait_for_pkt(time_sec=max(0.0, end_s - pipe.now_s()))
            if not packets:
                return
            for packet in packets:
                self._take(pipe, Ether(packet["pkt"]))

    def _take(self, pipe: ServicePipe, frame: Any) -> None:
        if ICMPv6ND_NS in frame:
            self.log(f"ND: <--- {frame[IPv6].src} asks for {self.src_ip}")
            pipe.async_tx_pkt(self._advertisement(frame))
            self.record.neighbor_verifications += 1
        else:
            # The option may be left out in an answer to one who knows the MAC: the frame has it, too.
            has_option = ICMPv6NDOptDstLLAddr in frame
            self.record.dst_mac = frame[ICMPv6NDOptDstLLAddr].lladdr if has_option else frame.src
            self.record.state = "REACHABLE"

    def _solicitation(self) -> PacketBuffer:
        group = solicited_node(self.dst_ip)
        frame = (
            Ether(src=self.src_mac, dst=multicast_mac(group))
            / IPv6(src=self.src_ip, dst=group, hlim=255)
            / ICMPv6ND_NS(tgt=self.dst_ip)
            / ICMPv6NDOptSrcLLAddr(lladdr=self.src_mac)
        )
        return PacketBuffer(self.vlan.embed(frame, self.fmt))

    def _advertisement(self, asked: Any) -> PacketBuffer:
        return PacketBuffer(self.vlan.embed(advertisement(asked, self.src_ip, self.src_mac), self.fmt))


def advertisement(asked: Any, ip: str, mac: str) -> Any:
    """The answer to a neighbor solicitation: ``ip`` is at ``mac``."""
    return (
        Ether(src=mac, dst=asked.src)
        / IPv6(src=ip, dst=asked[IPv6].src, hlim=255)
        / ICMPv6ND_NA(tgt=ip, R=0, S=1, O=1)
        / ICMPv6NDOptDstLLAddr(lladdr=mac)
    )
