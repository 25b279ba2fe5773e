"""Hosts for tests: they answer what a client pushes out of a port, as real ones would."""

from __future__ import annotations

from typing import Any

from allosaur.api import (
    ARP,
    BOOTP,
    DHCP,
    ICMP,
    IP,
    UDP,
    Ether,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NS,
    IPv6,
)
from allosaur.packets._vlan import VLAN, seen_tags
from allosaur.services._nd import advertisement

MAC = "02:00:00:00:00:99"


class Host:
    """Has IPv4 and IPv6 addresses; answers ARP, ND and echo requests in one VLAN."""

    def __init__(self, ips: tuple[str, ...], vlan: Any = None) -> None:
        self.ips = ips
        self.vlan = VLAN(vlan)

    def answers(self, data: bytes) -> list[bytes]:
        """The frames that it sends when it receives this one."""
        frame = Ether(data)
        if seen_tags(frame) != self.vlan.tags:
            return []
        return [bytes(self.vlan.embed(answer)) for answer in self._answers(frame)]

    def _answers(self, frame: Any) -> list[Any]:
        back = Ether(src=MAC, dst=frame.src)
        if ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst in self.ips:
            asked = frame[ARP]
            return [back / ARP(op=2, hwsrc=MAC, psrc=asked.pdst, hwdst=asked.hwsrc, pdst=asked.psrc)]
        if ICMP in frame and frame[ICMP].type == 8 and frame[IP].dst in self.ips:
            asked = frame[ICMP]
            echo = ICMP(type=0, id=asked.id, seq=asked.seq) / asked.payload
            return [back / IP(src=frame[IP].dst, dst=frame[IP].src, ttl=63) / echo]
        if ICMPv6ND_NS in frame and frame[ICMPv6ND_NS].tgt in self.ips:
            return [advertisement(frame, frame[ICMPv6ND_NS].tgt, MAC)]
        if ICMPv6EchoRequest in frame:
            own = [ip for ip in self.ips if ":" in ip]
            source = frame[IPv6].dst if frame[IPv6].dst in own else own[0]
            if frame[IPv6].dst in (*own, "ff02::1"):
                reply = ICMPv6EchoReply(id=frame[ICMPv6EchoRequest].id)
                return [back / IPv6(src=source, dst=frame[IPv6].src, hlim=60) / reply]
        return []


class DhcpServer:
    """Leases addresses of 198.51.100.0/24, one after the other; can be told to say no first."""

    IP = "198.51.100.1"

    def __init__(self, refusals: int = 0) -> None:
        self.leases: dict[bytes, str] = {}
        self.released: list[str] = []
        self._refusals = refusals

    def answers(self, data: bytes) -> list[bytes]:
        """The frames that it sends when it receives this one."""
        frame = Ether(data)
        if DHCP not in frame:
            return []
        options = {option[0]: option[1] for option in frame[DHCP].options if isinstance(option, tuple)}
        client, kind = bytes(frame[BOOTP].chaddr), options["message-type"]
        if kind == 7:
            self.released.append(self.leases.pop(client))
            return []
        ip = self.leases.setdefault(client, f"198.51.100.{10 + len(self.leases)}")
        if kind == 3 and options["requested_addr"] != ip:
            return []
        if kind == 3 and self._refusals:
            self._refusals -= 1
            return [self._reply(frame, "nak", "0.0.0.0")]
        return [self._reply(frame, {1: "offer", 3: "ack"}[kind], ip)]

    def _reply(self, asked: Any, kind: str, ip: str) -> bytes:
        options = [
            ("message-type", kind),
            ("server_id", self.IP),
            ("lease_time", 3600),
            ("subnet_mask", "255.255.255.0"),
            ("router", self.IP),
            ("domain", b"example.net"),
            "end",
        ]
        head = Ether(src=MAC, dst="ff:ff:ff:ff:ff:ff") / IP(src=self.IP, dst="255.255.255.255")
        bootp = BOOTP(op=2, xid=asked[BOOTP].xid, yiaddr=ip, chaddr=bytes(asked[BOOTP].chaddr))
        return bytes(head / UDP(sport=67, dport=68) / bootp / DHCP(options=options))
