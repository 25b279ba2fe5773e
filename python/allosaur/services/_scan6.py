"""Finding the IPv6 nodes of a link: ping all of them, then ask each who it is."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6MLDMultAddrRec,
    ICMPv6MLReport2,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptSrcLLAddr,
    IPv6ExtHdrHopByHop,
    PadN,
    RouterAlert,
)

from ..packets._buffer import PacketBuffer
from ..packets._scapy import Ether, IPv6
from ..packets._vlan import VLAN
from ._addresses import ALL_MLD_ROUTERS, ALL_NODES, multicast_mac, plain, port_ipv6, solicited_node
from ._icmpv6 import ServiceFilterIPv6
from ._nd import advertisement
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._context import ServiceContext
    from ._pipe import ServicePipe

_JOIN = 4


class STLServiceIPv6Scan(STLService):
    """Find who is on the link: ``get_record`` is a list of ``{"type", "mac", "ipv6"}``.

    ``type`` is "Host" or "Router"; "N/A" for one that answers pings of ``dst_ip`` but does not say who
    it is. ``dst_ip`` is whom to ping (default: all nodes), ``timeout`` how long to look in seconds.
    """

    def __init__(
        self,
        ctx: ServiceContext,
        dst_ip: str = ALL_NODES,
        timeout: float = 3,
        verbose_level: int = STLService.ERROR,
    ) -> None:
        super().__init__(verbose_level)
        port = ctx.port_obj
        self.dst_ip = plain(dst_ip)
        self.timeout = timeout
        self.vlan = VLAN(port.vlan)
        self.src_mac = port.src_mac
        self.src_ip = port_ipv6(port)
        self._nodes: dict[str, dict[str, str]] = {}

    def get_filter_type(self) -> type[STLServiceFilter]:
        """ICMPv6."""
        return ServiceFilterIPv6

    def is_mult_required(self) -> bool:
        """The others ask for us by multicast."""
        return True

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Ask everybody twice, and listen until the time is over."""
        self._nodes = {}
        end_s = pipe.now_s() + self.timeout
        for packet in (self._report(), self._echo(), self._report(), self._echo()):
            yield pipe.async_tx_pkt(packet)
        while (left_s := end_s - pipe.now_s()) > 0:
            for packet in (yield pipe.async_wait_for_pkt(time_sec=left_s)):
                for answer in self._answers(Ether(packet["pkt"])):
                    pipe.async_tx_pkt(answer)

    def get_record(self) -> list[dict[str, str]]:
        """Who was found."""
        return [dict(node) for node in self._nodes.values()]

    def _answers(self, frame: Any) -> list[PacketBuffer]:
        """Note who this is, and give what to send to find out more."""
        source = plain(frame[IPv6].src)
        if ICMPv6ND_NA in frame:
            advertised = frame[ICMPv6ND_NA]
            if plain(frame[IPv6].dst) == self.src_ip:
                self._note(plain(advertised.tgt), frame.src, "Router" if advertised.R else "Host")
        elif ICMPv6ND_NS in frame:
            answers = []
            if plain(frame[ICMPv6ND_NS].tgt) == self.src_ip:
                answers.append(self._own(advertisement(frame, self.src_ip, self.src_mac)))
            if ICMPv6NDOptSrcLLAddr in frame and self._is_new(source):
                answers.append(self._solicitation(frame.src, source))
            return answers
        elif ICMPv6EchoReply in frame and self._is_new(source):
            if self.dst_ip != ALL_NODES and source == self.dst_ip:
                self._note(source, frame.src, "N/A")
            return [self._solicitation(frame.src, source)]
        return []

    def _is_new(self, ip: str) -> bool:
        return self._nodes.get(ip, {}).get("type", "N/A") == "N/A"

    def _note(self, ip: str, mac: str, kind: str) -> None:
        self.log(f"scan6: {kind} {ip} at {mac}")
        self._nodes[ip] = {"type": kind, "mac": mac, "ipv6": ip}

    def _echo(self) -> PacketBuffer:
        mac = multicast_mac(self.dst_ip) if self.dst_ip.startswith("ff") else "ff:ff:ff:ff:ff:ff"
        echo = IPv6(src=self.src_ip, dst=self.dst_ip, hlim=255) / ICMPv6EchoRequest()
        return self._own(Ether(src=self.src_mac, dst=mac) / echo)

    def _report(self) -> PacketBuffer:
        """Say to switches that snoop that we listen, so that they let multicast through."""
        groups = [
            ICMPv6MLDMultAddrRec(rtype=_JOIN, dst=group) for group in (ALL_NODES, solicited_node(self.src_ip))
        ]
        head: Any = IPv6(src=self.src_ip, dst=ALL_MLD_ROUTERS, hlim=1)
        options: Any = IPv6ExtHdrHopByHop(options=[RouterAlert(), PadN()])
        report = head / options / ICMPv6MLReport2(records=groups)
        return self._own(Ether(src=self.src_mac, dst=multicast_mac(ALL_MLD_ROUTERS)) / report)

    def _solicitation(self, mac: str, ip: str) -> PacketBuffer:
        head: Any = Ether(src=self.src_mac, dst=mac) / IPv6(src=self.src_ip, dst=ip, hlim=255)
        return self._own(head / ICMPv6ND_NS(tgt=ip) / ICMPv6NDOptSrcLLAddr(lladdr=self.src_mac))

    def _own(self, frame: Any) -> PacketBuffer:
        return PacketBuffer(self.vlan.embed(frame))
