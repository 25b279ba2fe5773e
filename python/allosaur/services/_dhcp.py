"""DHCP: get an IPv4 address for a client, and give it back (RFC 2131)."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import UDP

from .._errors import STLArgumentError
from ..packets._buffer import PacketBuffer
from ..packets._scapy import IP, Ether
from ..packets._vlan import VLAN, seen_tags
from ._schedule import Wait
from ._service import STLService, STLServiceFilter

if TYPE_CHECKING:
    from ._pipe import ServicePipe

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
_SERVER_PORT, _CLIENT_PORT = 67, 68
#: The flag by which a client says that it cannot hear unicast before it has its address.
_BROADCAST_FLAG = 0x8000
_REQUEST, _REPLY = 1, 2
_OFFER, _ACK, _NAK = 2, 5, 6
#: Subnet mask, router, name servers, domain name, lease time.
_WANTED = [1, 3, 6, 15, 51]
_NONE = "N/A"


class Lease:
    """A lease: the addresses as text, ``lease`` in seconds; "N/A" where the server did not say."""

    def __init__(self, frame: Any) -> None:
        options = _options(frame)
        domain = options.get("domain", _NONE)
        self.server_mac: str = frame.src
        self.client_mac: str = _client_mac(frame)
        self.client_ip: str = frame[BOOTP].yiaddr
        self.server_ip: str = options.get("server_id", _NONE)
        self.subnet: str = options.get("subnet_mask", _NONE)
        self.router: str = options.get("router", _NONE)
        self.domain: str = domain.decode(errors="replace") if isinstance(domain, bytes) else domain
        self.lease: int | str = options.get("lease_time", _NONE)

    def __str__(self) -> str:
        return (
            f"ip: {self.client_ip}, server_ip: {self.server_ip}, subnet: {self.subnet}, "
            f"domain: {self.domain}, lease_time: {self.lease}"
        )


class ServiceFilterDHCP(STLServiceFilter):
    """Answers of DHCP servers, by transaction."""

    def __init__(self) -> None:
        self._services: dict[Any, list[STLServiceDHCP]] = defaultdict(list)

    def add(self, service: STLServiceDHCP) -> None:
        """Take one more service."""
        self._services[service.get_xid(), tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[STLServiceDHCP]:
        """Whose transaction this is."""
        frame = Ether(pkt)
        if DHCP not in frame or frame[BOOTP].op != _REPLY:
            return []
        return self._services.get((frame[BOOTP].xid, seen_tags(frame)), [])

    def get_bpf_filter(self) -> str:
        """What DHCP servers send, with up to two VLAN tags."""
        ports = "udp and (port 67 or port 68)"
        return f"({ports}) or (vlan and {ports}) or (vlan and {ports})"


class STLServiceDHCP(STLService):
    """A DHCP client with the MAC address ``mac``: run once it gets a lease, run again it releases it.

    ``get_record`` is the lease, a ``Lease``; None without one. ``retries`` is how often it begins
    anew, ``timeout_sec`` how long it waits for each answer in seconds, ``vlan`` one tag or two. The
    port must be able to be promiscuous, as ``mac`` is not the port's.
    """

    DHCPRecord = Lease

    def __init__(
        self,
        mac: str,
        verbose_level: int = STLService.ERROR,
        vlan: Any = None,
        timeout_sec: float = 3,
        retries: int = 4,
    ) -> None:
        super().__init__(verbose_level)
        if not isinstance(mac, str) or not _MAC.fullmatch(mac.lower()):
            raise STLArgumentError("mac", mac, "a MAC address such as '02:00:00:00:00:01'")
        self.mac = mac.lower()
        self.vlan = VLAN(vlan)
        self.timeout_sec = timeout_sec
        self.retries = retries
        self.xid = random.getrandbits(32)
        #: "INIT" without a lease, "BOUND" with one.
        self.state = "INIT"
        self.record: Lease | None = None

    def is_prom_required(self) -> bool:
        """The client has a MAC of its own."""
        return True

    def get_filter_type(self) -> type[STLServiceFilter]:
        """Answers of DHCP servers."""
        return ServiceFilterDHCP

    def get_xid(self) -> int:
        """The number of the transaction."""
        return self.xid

    def get_mac(self) -> str:
        """The client's MAC address."""
        return self.mac

    def get_record(self) -> Lease | None:
        """The lease; None without one."""
        return self.record

    def run(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        """Get a lease, or release the one that there is."""
        return self._release(pipe) if self.record is not None else self._acquire(pipe)

    def _acquire(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        for _ in range(self.retries):
            self.log(f"DHCP: {self.mac} ---> DISCOVER")
            offer = yield from self._ask(pipe, self._discover(), (_OFFER,))
            if offer is None:
                continue
            chosen = Lease(offer)
            self.log(f"DHCP: {self.mac} <--- OFFER of {chosen.client_ip} from {chosen.server_ip}")
            self.log(f"DHCP: {self.mac} ---> REQUEST")
            answer = yield from self._ask(pipe, self._request(chosen), (_ACK, _NAK))
            if answer is not None and _message_type(answer) == _ACK:
                self.record = Lease(answer)
                self.state = "BOUND"
                self.log(f"DHCP: {self.mac} <--- ACK of {self.record.client_ip}")
                return
            if answer is not None:
                self.log(f"DHCP: {self.mac} <--- NAK of {chosen.client_ip}")

    def _release(self, pipe: ServicePipe) -> Generator[Wait, Any, None]:
        assert self.record is not None  # run() looked
        self.log(f"DHCP: {self.mac} ---> RELEASE of {self.record.client_ip}")
        yield pipe.async_tx_pkt(self._give_back(self.record))
        self.record = None
        self.state = "INIT"

    def _ask(
        self, pipe: ServicePipe, packet: PacketBuffer, kinds: tuple[int, ...]
    ) -> Generator[Wait, Any, Any]:
        """Send, and wait for an answer of one of these kinds; None when none came in time."""
        yield pipe.async_tx_pkt(packet)
        end_s = pipe.now_s() + self.timeout_sec
        while True:
            packets = yield pipe.async_wait_for_pkt(time_sec=max(0.0, end_s - pipe.now_s()))
            if not packets:
                self.log(f"DHCP: {self.mac} *** no answer in {self.timeout_sec:g} s", self.WARN)
                return None
            for frame in (Ether(one["pkt"]) for one in packets):
                if _message_type(frame) in kinds:
                    return frame

    def _discover(self) -> PacketBuffer:
        return self._broadcast([("message-type", "discover"), ("param_req_list", _WANTED), "end"])

    def _request(self, offer: Lease) -> PacketBuffer:
        options: list[Any] = [("message-type", "request"), ("requested_addr", offer.client_ip)]
        if offer.server_ip != _NONE:
            options.append(("server_id", offer.server_ip))
        return self._broadcast([*options, ("param_req_list", _WANTED), "end"])

    def _broadcast(self, options: list[Any]) -> PacketBuffer:
        head = Ether(src=self.mac, dst=_BROADCAST_MAC) / IP(src="0.0.0.0", dst="255.255.255.255")
        return self._message(head, options, flags=_BROADCAST_FLAG)

    def _give_back(self, lease: Lease) -> PacketBuffer:
        server_ip = lease.server_ip if lease.server_ip != _NONE else "255.255.255.255"
        head = Ether(src=self.mac, dst=lease.server_mac) / IP(src=lease.client_ip, dst=server_ip)
        options = [("message-type", "release"), ("server_id", server_ip), "end"]
        return self._message(head, options, ciaddr=lease.client_ip)

    def _message(self, head: Any, options: list[Any], **fields: Any) -> PacketBuffer:
        hardware = bytes.fromhex(self.mac.replace(":", ""))
        bootp = BOOTP(op=_REQUEST, xid=self.xid, chaddr=hardware, **fields)
        udp = UDP(sport=_CLIENT_PORT, dport=_SERVER_PORT)
        return PacketBuffer(self.vlan.embed(head / udp / bootp / DHCP(options=options)))


def _options(frame: Any) -> dict[str, Any]:
    """The options by name; of a list of values the first."""
    pairs = [option for option in frame[DHCP].options if isinstance(option, tuple)]
    return {option[0]: option[1] for option in reversed(pairs)}


def _message_type(frame: Any) -> int:
    return int(_options(frame).get("message-type", 0)) if DHCP in frame else 0


def _client_mac(frame: Any) -> str:
    return ":".join(f"{part:02x}" for part in bytes(frame[BOOTP].chaddr)[:6])
