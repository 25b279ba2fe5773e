"""L3 mode, ARP, ping, scans and maps: what the client asks, and what can be wrong with the arguments."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient, STLError
from allosaur.api import IP, UDP, Ether
from allosaur.testing import MockTransport

_spec = importlib.util.spec_from_file_location("hosts", Path(__file__).with_name("hosts.py"))
assert _spec is not None
assert _spec.loader is not None
hosts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hosts)

MINE, THEIRS, THEIRS6 = "192.0.2.1", "192.0.2.9", "fe80::99"


@pytest.fixture
def owner(client: STLClient, transport: MockTransport) -> STLClient:
    """The owner of two ports in service mode, with a host at the other end of both."""
    client.acquire(ports=[0, 1])
    client.set_service_mode()
    host = hosts.Host((THEIRS, THEIRS6))

    def on_push(port: int, frame: bytes) -> None:
        for answer in host.answers(frame):
            transport.receive(port, answer)

    transport.on_push = on_push
    return client


def test_l3_mode_finds_the_gateway(owner: STLClient, transport: MockTransport) -> None:
    owner.set_l3_mode(0, MINE, THEIRS)
    usual = {"port_id": 0, "src_addr": MINE, "dst_addr": THEIRS, "block": False}
    asked = [
        {name: value for name, value in params.items() if name not in ("handler", "api_h")}
        for params in transport.requests("set_l3")
    ]
    assert asked == [usual, usual, {**usual, "resolved_mac": hosts.MAC}]
    assert (owner.get_resolvable_ports(), owner.get_port(0).dst_mac) == ([0], hosts.MAC)
    assert owner.get_port_attr(0)["dst_mac"] == hosts.MAC
    owner.resolve()
    owner.arp([0], retries=1)
    owner.set_port_attr([0], resolve=True)
    assert len(transport.requests("set_l3")) == 9


def test_a_gateway_that_is_silent(
    owner: STLClient, transport: MockTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport.on_push = None
    owner._layers.configure("set_l3", [0], src_addr=MINE, dst_addr=THEIRS, resolved_mac=hosts.MAC)
    # Time goes fast here: what is waited for is 3 seconds, three times.
    monkeypatch.setattr("allosaur.services._context._POLL_S_MAX", 0.001)
    monkeypatch.setattr("allosaur.services._arp.STLServiceARP.run", _ask_only)
    with pytest.raises(STLError, match=rf"no gateway found: port 0 \(no ARP reply from {THEIRS}\)"):
        owner.resolve([0], retries=2)
    assert len(transport.pushed) == 3
    assert owner.get_port(0).is_resolved is False
    with pytest.raises(STLError, match=r"port 0: does not know the MAC of its gateway, call resolve\(\)"):
        owner.ping_ip(0, THEIRS)


def _ask_only(service: Any, pipe: Any) -> Any:
    from allosaur.services._arp import ARPRecord

    yield pipe.async_tx_pkt(service._request())
    service.record = ARPRecord(service.src_ip, service.dst_ip)


def test_ping(owner: STLClient, transport: MockTransport) -> None:
    owner.set_l3_mode(0, MINE, THEIRS)
    heard: list[str] = []
    records = owner.ping_ip(0, THEIRS, count=3, interval_sec=0, on_reply=lambda one: heard.append(str(one)))
    assert [record["status"] for record in records] == ["success"] * 3
    assert heard == [record["formatted_string"] for record in records]
    (record,) = owner.ping_ip(1, THEIRS6, pkt_size=128, count=1)
    assert (record["src_ip"], record.pkt_size) == (THEIRS6, 62)
    assert len(transport.pushed[-1][1]) == 128


def test_scan(owner: STLClient) -> None:
    found = owner.scan6([1], timeout=0.5)
    assert found == {1: [{"type": "Host", "mac": hosts.MAC, "ipv6": THEIRS6}]}


def test_map(client: STLClient, transport: MockTransport) -> None:
    client.acquire()
    transport.on_push = lambda port, frame: transport.receive(port ^ 1, frame)
    assert client.map_ports() == {"map": {0: 1, 1: 0}, "bi": [(0, 1)], "unknown": []}
    assert client.get_service_enabled_ports() == []
    assert client.get_capture_status() == {}
    start = next(params for params in transport.requests("capture") if params["command"] == "start")
    mark = int(start["filter"].split()[2], 16)
    frame = Ether(transport.pushed[-1][1])
    assert (frame[IP].dst, bytes(frame[UDP].payload)) == ("255.1.1.1", mark.to_bytes(4, "big") + b"\1")

    transport.on_push = lambda port, frame: transport.receive(1, frame) if port == 0 else None
    assert client.map_ports(read_delay=0.01) == {"map": {0: 1, 1: None}, "bi": [], "unknown": [1]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.set_l3_mode(0, "192.0.2", THEIRS), ["src_ipv4", "192.0.2.1"]),
        (lambda c: c.set_l3_mode(0, MINE, "::1"), ["dst_ipv4"]),
        (lambda c: c.set_l3_mode(0, MINE, THEIRS, vlan=5000), ["vlan", "1 to 4095"]),
        (lambda c: c.resolve([0]), ["[0]", "no IPv4 address", "set_l3_mode"]),
        (lambda c: c.ping_ip(0, THEIRS), ["port 0", "set_l3_mode"]),
        (lambda c: c.ping_ip(0, "host.example"), ["dst_ip"]),
        (lambda c: c.ping_ip(0, THEIRS6, pkt_size=63), ["pkt_size", "64 to 9216"]),
        (lambda c: c.ping_ip(0, THEIRS6, count=0), ["count"]),
        (lambda c: c.ping_ip(0, THEIRS6, interval_sec=-1), ["interval_sec"]),
        (lambda c: c.create_service_ctx(9), ["ports", "0, 1"]),
    ],
)
def test_wrong_arguments_are_named(owner: STLClient, call: Any, words: list[str]) -> None:
    with pytest.raises(STLError) as error:
        call(owner)
    assert all(word in str(error.value) for word in words), error.value


def test_service_mode_is_needed(client: STLClient) -> None:
    client.acquire()
    for call in (
        lambda: client.set_l3_mode(0, MINE, THEIRS),
        lambda: client.ping_ip(0, THEIRS6),
        lambda: client.scan6([0]),
    ):
        with pytest.raises(STLError, match=r"\[0\]: must be in service mode"):
            call()
