"""Services against hosts of the test: what they ask, what they find out, how they wait."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    VLAN,
    STLClient,
    STLConnectionError,
    STLError,
    STLService,
    STLServiceARP,
    STLServiceDHCP,
    STLServiceFilter,
    STLServiceICMP,
    STLServiceICMPv6,
    STLServiceIPv6ND,
    STLServiceIPv6Scan,
)
from allosaur.api import ARP, ICMP, IP, UDP, Ether, ICMPerror, ICMPv6EchoRequest, ICMPv6ND_NS, IPerror, IPv6
from allosaur.services._context import ServiceContext
from allosaur.testing import MockTransport

_spec = importlib.util.spec_from_file_location("hosts", Path(__file__).with_name("hosts.py"))
assert _spec is not None
assert _spec.loader is not None
hosts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hosts)

MINE = "192.0.2.1"
THEIRS = "192.0.2.9"
THEIRS6 = "fe80::99"


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.naps.append(duration_s)
        # Nobody may wait without end, nor turn in circles.
        assert len(self.naps) < 100_000
        self.now_s += max(duration_s, 1e-6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def context(client: STLClient, clock: Clock) -> ServiceContext:
    """A context of port 0, which is in service mode."""
    client.acquire(ports=[0])
    client.set_service_mode(ports=[0])
    return ServiceContext(client, 0, clock, clock.sleep)


def attach(transport: MockTransport, *answering: Any) -> None:
    """Let hosts be at the other end of port 0."""

    def on_push(port: int, frame: bytes) -> None:
        for host in answering:
            for answer in host.answers(frame):
                transport.receive(port, answer)

    transport.on_push = on_push


def give_address(client: STLClient, mac: str = hosts.MAC) -> None:
    client._layers.configure("set_l3", [0], src_addr=MINE, dst_addr=THEIRS, resolved_mac=mac)


def pushed(transport: MockTransport) -> list[Any]:
    return [Ether(frame) for _port, frame in transport.pushed]


@pytest.mark.parametrize("vlan", [None, 100, [100, 200]])
def test_arp(context: ServiceContext, transport: MockTransport, vlan: Any) -> None:
    attach(transport, hosts.Host((THEIRS,), vlan))
    arp = STLServiceARP(context, dst_ip=THEIRS, src_ip=MINE, vlan=vlan)
    context.run(arp)
    record = arp.get_record()
    assert record
    assert (record.dst_mac, str(record)) == (hosts.MAC, f"{THEIRS} is at {hosts.MAC}")
    (request,) = pushed(transport)
    assert (request.src, request.dst, request[ARP].pdst) == (
        "02:00:00:00:00:01",
        "ff:ff:ff:ff:ff:ff",
        THEIRS,
    )
    assert VLAN.extract(request) == list(VLAN(vlan))
    start = transport.requests("capture")[0]
    assert (start["rx"], start["filter"]) == ([0], "arp or (vlan and arp) or (vlan and arp)")
    assert context.client.get_capture_status() == {}


def test_arp_without_an_answer(context: ServiceContext, transport: MockTransport, clock: Clock) -> None:
    # Somebody else's answer, and one in another VLAN, are none.
    attach(transport, hosts.Host((THEIRS,), 5))
    arp = STLServiceARP(context, dst_ip=THEIRS, src_ip=MINE, timeout_sec=2)
    context.run(arp)
    record = arp.get_record()
    assert record is not None
    assert not record
    assert str(record) == f"no ARP reply from {THEIRS}"
    assert clock.now_s == pytest.approx(102, abs=0.1)


def test_many_services_at_once(context: ServiceContext, transport: MockTransport, clock: Clock) -> None:
    theirs = [f"192.0.2.{number}" for number in range(10, 60)]
    attach(transport, hosts.Host(tuple(theirs[::2])))
    arps = [STLServiceARP(context, ip, MINE, timeout_sec=3) for ip in theirs]
    context.run(arps, pps=10)
    assert [bool(arp.get_record()) for arp in arps] == [True, False] * 25
    # Fifty packets at ten a second, ten at once at most.
    assert clock.now_s == pytest.approx(100 + 4 + 3, abs=0.1)
    assert {len(params["pkts"]) for params in transport.requests("push_pkts")} == {10}
    assert transport.requests("push_pkts")[0]["ipg_usec"] == 100_000


def test_ping(context: ServiceContext, transport: MockTransport) -> None:
    give_address(context.client)
    attach(transport, hosts.Host((THEIRS,)))
    ping = STLServiceICMP(context, dst_ip=THEIRS, pkt_size=100)
    context.run(ping)
    record = ping.get_record()
    assert record is not None
    assert (record.state, record.responder_ip, record.ttl, record.pkt_size) == (
        record.SUCCESS,
        THEIRS,
        63,
        100,
    )
    assert (record["status"], record["src_ip"], record["ttl"]) == ("success", THEIRS, 63)
    # The mock's clock goes on a millisecond a packet.
    assert record["rtt"] == pytest.approx(1.0)
    assert record["formatted_string"] == f"Reply from {THEIRS}: bytes=100, time=1.00ms, TTL=63"
    (request,) = pushed(transport)
    assert (request[IP].src, len(request)) == (MINE, 100)
    assert transport.requests("push_pkts")[0]["pkts"][0]["use_port_dst_mac"] is True


def test_ping_without_an_answer_and_unreachable(context: ServiceContext, transport: MockTransport) -> None:
    give_address(context.client)
    ping = STLServiceICMP(context, dst_ip=THEIRS)
    context.run(ping)
    assert dict(ping.get_record() or {}) == {
        "status": "timeout",
        "formatted_string": "Request timed out.",
    }

    class Router:
        def answers(self, data: bytes) -> list[bytes]:
            asked = Ether(data)
            head = IPerror(bytes(asked[IP])[:20]) / ICMPerror(bytes(asked[ICMP])[:8])
            back = Ether(src=hosts.MAC, dst=asked.src) / IP(src="192.0.2.254", dst=MINE)
            return [bytes(back / ICMP(type=3, code=1) / head)]

    attach(transport, Router())
    context.run(ping)
    record = ping.get_record()
    assert record is not None
    assert record["status"] == "unreachable"
    assert "192.0.2.254" in record["formatted_string"]


def test_ping_needs_an_address(context: ServiceContext) -> None:
    with pytest.raises(STLError, match=r"port 0 has no IPv4 address.*set_l3_mode"):
        STLServiceICMP(context, dst_ip=THEIRS)


def test_ping_over_ipv6(context: ServiceContext, transport: MockTransport) -> None:
    attach(transport, hosts.Host((THEIRS6,)))
    ping = STLServiceICMPv6(context, dst_ip=THEIRS6, pkt_size=90)
    context.run(ping)
    record = ping.get_record()
    assert record is not None
    assert (record["status"], record["src_ip"], record["ttl"]) == ("success", THEIRS6, 60)
    (request,) = pushed(transport)
    # The port has no address of its own: the one that its MAC makes.
    assert (request[IPv6].src, len(request)) == ("fe80::ff:fe00:1", 90)
    silent = STLServiceICMPv6(context, dst_ip="fe80::5", timeout=1)
    context.run(silent)
    assert (silent.get_record() or {})["status"] == "timeout"
    # It heard multicast meanwhile, and does not now.
    switched = [params["attr"] for params in transport.requests("set_port_attr")]
    assert switched == [{"multicast": {"enabled": True}}, {"multicast": {"enabled": False}}] * 2


def test_neighbor_discovery(context: ServiceContext, transport: MockTransport) -> None:
    attach(transport, hosts.Host((THEIRS6,)))
    nd = STLServiceIPv6ND(context, dst_ip=THEIRS6, src_ip="fe80::1")
    context.run(nd)
    record = nd.get_record()
    assert record
    assert (record.dst_mac, record.state, record.is_resolved()) == (hosts.MAC, "REACHABLE", True)
    (request,) = pushed(transport)
    assert (request.dst, request[IPv6].dst, request[IPv6].hlim) == (
        "33:33:ff:00:00:99",
        "ff02::1:ff00:99",
        255,
    )
    unknown = STLServiceIPv6ND(context, dst_ip="fe80::5", retries=2, timeout=1)
    context.run(unknown)
    assert not unknown.get_record()
    assert len(transport.pushed) == 4


def test_a_neighbor_can_verify_us(context: ServiceContext, transport: MockTransport) -> None:
    class Curious(hosts.Host):  # type: ignore[name-defined,misc]
        """Asks back who we are."""

        def _answers(self, frame: Any) -> list[Any]:
            answers = super()._answers(frame)
            if answers:
                ours = frame[IPv6].src
                head = Ether(src=hosts.MAC, dst=frame.src) / IPv6(src=THEIRS6, dst=ours)
                answers.append(head / ICMPv6ND_NS(tgt=ours))
            return list(answers)

    attach(transport, Curious((THEIRS6,)))
    nd = STLServiceIPv6ND(context, THEIRS6, "fe80::1", verify_timeout=2)
    context.run(nd)
    assert nd.get_record().neighbor_verifications == 1
    answer = pushed(transport)[-1]
    assert (answer[IPv6].src, answer[IPv6].dst, answer.dst) == ("fe80::1", THEIRS6, hosts.MAC)


def test_scan(context: ServiceContext, transport: MockTransport, clock: Clock) -> None:
    attach(transport, hosts.Host((THEIRS6,)))
    scan = STLServiceIPv6Scan(context, timeout=1)
    context.run(scan)
    assert scan.get_record() == [{"type": "Host", "mac": hosts.MAC, "ipv6": THEIRS6}]
    assert clock.now_s == pytest.approx(101, abs=0.1)
    assert any(ICMPv6EchoRequest in frame and frame.dst == "33:33:00:00:00:01" for frame in pushed(transport))


@pytest.mark.parametrize("refusals", [0, 1])
def test_dhcp(context: ServiceContext, transport: MockTransport, refusals: int) -> None:
    server = hosts.DhcpServer(refusals)
    attach(transport, server)
    clients = [STLServiceDHCP(mac=f"02:00:00:00:01:{number:02x}") for number in range(3)]
    context.run(clients)
    leases = [client.get_record() for client in clients]
    assert [lease and lease.client_ip for lease in leases] == [
        f"198.51.100.{number}" for number in (10, 11, 12)
    ]
    first = leases[0]
    assert first is not None
    assert (first.server_ip, first.subnet, first.router) == ("198.51.100.1", "255.255.255.0", "198.51.100.1")
    assert (first.domain, first.lease) == ("example.net", 3600)
    assert (first.client_mac, first.server_mac) == ("02:00:00:00:01:00", hosts.MAC)
    assert clients[0].state == "BOUND"
    # A second run gives the leases back.
    context.run(clients[:2])
    assert server.released == ["198.51.100.10", "198.51.100.11"]
    assert clients[0].get_record() is None
    assert [params["attr"] for params in transport.requests("set_port_attr")][:2] == [
        {"promiscuous": {"enabled": True}},
        {"promiscuous": {"enabled": False}},
    ]


def test_dhcp_without_a_server(context: ServiceContext, transport: MockTransport, clock: Clock) -> None:
    client = STLServiceDHCP("02:00:00:00:01:00", timeout_sec=1, retries=3)
    context.run(client)
    assert (client.get_record(), client.state) == (None, "INIT")
    assert len(transport.pushed) == 3
    assert clock.now_s == pytest.approx(103, abs=0.1)
    with pytest.raises(STLError, match="mac"):
        STLServiceDHCP("02:00")


class PortFilter(STLServiceFilter):
    """UDP by destination port."""

    def __init__(self) -> None:
        self.services: dict[int, Any] = {}

    def add(self, service: Any) -> None:
        self.services[service.udp_port] = service

    def lookup(self, pkt: bytes) -> list[Any]:
        frame = Ether(pkt)
        found = self.services.get(frame[UDP].dport) if UDP in frame else None
        return [found] if found else []

    def get_bpf_filter(self) -> str:
        return "udp"


class Own(STLService):
    """A service of a user: ``work`` is its program."""

    def __init__(self, udp_port: int, work: Callable[[Any, Own], Any]) -> None:
        super().__init__(STLService.INFO)
        self.udp_port = udp_port
        self.work = work
        self.seen: list[Any] = []

    def get_filter_type(self) -> type[STLServiceFilter]:
        return PortFilter

    def run(self, pipe: Any) -> Generator[Any, Any, None]:
        yield from self.work(pipe, self)


def datagram(udp_port: int, text: bytes = b"x") -> bytes:
    return bytes(Ether() / IP(src=THEIRS, dst=MINE) / UDP(dport=udp_port) / text)


def test_a_service_of_a_user(
    context: ServiceContext, transport: MockTransport, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(pipe: Any, service: Own) -> Any:
        service.log("begins")
        yield pipe.async_wait(5)
        assert clock.now_s == pytest.approx(105, abs=0.01)
        sent = yield pipe.async_tx_pkt(Ether() / IP() / UDP(dport=1))
        for number in range(3):
            transport.receive(0, datagram(7, bytes([number])))
        first = yield pipe.async_wait_for_pkt(limit=2)
        rest = yield pipe.async_wait_for_pkt(time_sec=1)
        none = yield pipe.async_wait_for_pkt(time_sec=0)
        service.seen = [len(first), len(rest), none, first[0]["ts"] > sent["ts"]]
        pipe.async_tx_pkt(b"last" * 20)

    service = Own(7, work)
    context.run([service])
    assert service.seen == [2, 1, [], True]
    assert capsys.readouterr().out == "begins\n"
    # What is sent last leaves although nobody waits for it.
    assert transport.pushed[-1] == (0, b"last" * 20)


def test_each_service_gets_its_own_packets(context: ServiceContext, transport: MockTransport) -> None:
    def work(pipe: Any, service: Own) -> Any:
        yield pipe.async_tx_pkt(datagram(service.udp_port + 100))
        packets = yield pipe.async_wait_for_pkt(time_sec=1)
        service.seen = [Ether(packet["pkt"])[UDP].dport for packet in packets]

    def on_push(port: int, frame: bytes) -> None:
        transport.receive(port, datagram(Ether(frame)[UDP].dport - 100))

    transport.on_push = on_push
    services = [Own(number, work) for number in (1, 2, 3)]
    context.run(services)
    assert [service.seen for service in services] == [[1], [2], [3]]
    assert len([one for one in transport.requests("capture") if one["command"] == "start"]) == 1


def test_an_error_in_a_service_ends_the_run_and_leaves_nothing(
    context: ServiceContext, transport: MockTransport
) -> None:
    def fail(pipe: Any, service: Own) -> Any:
        yield pipe.async_wait(0.5)
        service.err("it does not work")

    ended = []

    def wait(pipe: Any, service: Own) -> Any:
        try:
            yield pipe.async_wait_for_pkt()
        finally:
            ended.append(service.udp_port)

    with pytest.raises(STLError, match="it does not work"):
        context.run([Own(1, fail), Own(2, wait)])
    assert ended == [2]
    assert context.client.get_capture_status() == {}


def test_a_server_that_goes_away_ends_a_run(context: ServiceContext, transport: MockTransport) -> None:
    transport.on_push = lambda _port, _frame: transport.lose_connection()
    with pytest.raises(STLConnectionError):
        context.run([STLServiceDHCP("02:00:00:00:01:00"), STLServiceARP(context, THEIRS, MINE)])


def test_what_is_wrong_with_a_run(context: ServiceContext) -> None:
    arp = STLServiceARP(context, THEIRS, MINE)
    for services in ([], [arp, "arp"], None):
        with pytest.raises(STLError, match="services"):
            context.run(services)  # type: ignore[arg-type]
    with pytest.raises(STLError, match="pps"):
        context.run(arp, pps=0)

    def wrong(pipe: Any, service: Own) -> Any:
        yield 5

    with pytest.raises(STLError, match=r"yielded an object of type int: yield what a method of its pipe"):
        context.run(Own(1, wrong))
    context.client.set_service_mode(ports=[0], enabled=False)
    with pytest.raises(STLError, match=r"\[0\]: must be in service mode"):
        context.run(arp)


def test_vlan_tags() -> None:
    frame = VLAN([100, 200]).embed(Ether() / IP() / UDP())
    assert [layer.name for layer in (frame.payload, frame.payload.payload)] == ["802_1AD", "802.1Q"]
    read = Ether(bytes(frame))
    assert (VLAN.extract(read), read.type) == ([100, 200], 0x88A8)
    assert VLAN([100, 200]).embed(Ether() / IP(), fmt="QQ").type == 0x8100
    assert bytes(VLAN(None).embed(Ether() / IP())) == bytes(Ether() / IP())
    assert (VLAN(None).is_default(), VLAN([]).is_default(), bool(VLAN([]))) == (True, False, False)
    assert [VLAN(tags).get_desc() for tags in (None, 5, (5, 6))] == ["", "VLAN 5", "QinQ 5/6"]
    assert VLAN(VLAN(5)).get_tags() == (5,)
    for wrong in (0, 4096, [1, 2, 3], "5", True):
        with pytest.raises(STLError, match="vlan"):
            VLAN(wrong)  # type: ignore[arg-type]
    with pytest.raises(STLError, match="fmt"):
        VLAN(5).embed(Ether() / IP(), fmt="DQ")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("trex.common.services.trex_service", ["Service", "ServiceFilter"]),
        ("trex.common.services.trex_service_arp", ["ServiceARP", "ServiceFilterARP"]),
        ("trex.common.services.trex_service_icmp", ["ServiceICMP", "ServiceFilterICMP"]),
        ("trex.common.services.trex_service_IPv6ND", ["ServiceIPv6ND"]),
        ("trex.common.services.trex_service_ipv6", ["ServiceICMPv6", "ServiceIPv6Scan"]),
        ("trex.common.services.trex_service_dhcp", ["ServiceDHCP"]),
        ("trex.common.services.trex_service_int", ["ServiceCtx", "ServicePipe"]),
        ("trex.common.trex_vlan", ["VLAN"]),
        ("trex.common.trex_client", ["PacketBuffer", "NO_TCP_UDP_MASK", "ALL_MASK"]),
        ("trex.common.trex_exceptions", ["TRexError"]),
        ("trex.common.trex_types", ["PortProfileID"]),
        ("trex.stl.trex_stl_client", ["STLClient", "PacketBuffer"]),
        ("trex.stl.trex_stl_streams", ["STLStream", "STLProfile", "STLTXCont"]),
        ("trex.stl.trex_stl_packet_builder_scapy", ["STLPktBuilder", "STLScVmRaw"]),
        ("trex_stl_lib.trex_stl_client", ["STLClient"]),
        ("trex_stl_lib.trex_stl_streams", ["STLStream"]),
        ("trex_stl_lib.trex_stl_packet_builder_scapy", ["STLVmFlowVar"]),
        ("trex_stl_lib.services.trex_stl_service", ["STLService"]),
        ("trex_stl_lib.services.trex_stl_service_arp", ["STLServiceARP"]),
        ("trex_stl_lib.services.trex_stl_service_dhcp", ["STLServiceDHCP"]),
        ("trex_stl_lib.services.trex_stl_service_icmp", ["STLServiceICMP"]),
        ("trex_stl_lib.services.trex_stl_service_ipv6nd", ["STLServiceIPv6ND"]),
        ("trex.stl.api", ["STLServiceARP", "VLAN", "PacketBuffer"]),
    ],
)
def test_names_of_existing_scripts(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    for name in names:
        assert name in found.__all__
        assert getattr(found, name) is not None
