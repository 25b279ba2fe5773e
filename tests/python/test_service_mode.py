"""Service mode, receive queues and capture ports: arguments and requests, against a mock server."""

from __future__ import annotations

from typing import Any

import pytest
from allosaur import STLClient, STLError
from allosaur.testing import MockTransport

FRAME = bytes(range(60))


@pytest.fixture
def owner(client: STLClient) -> STLClient:
    client.acquire(ports=[0, 1])
    return client


def sent(transport: MockTransport, method: str) -> dict[str, Any]:
    """The last request of a method, without what every request has."""
    params = transport.requests(method)[-1]
    return {name: value for name, value in params.items() if name not in ("handler", "api_h", "port_id")}


def test_service_mode_is_switched_and_known(owner: STLClient, transport: MockTransport) -> None:
    owner.set_service_mode(ports=[0])
    assert sent(transport, "service") == {"enabled": True, "filtered": False}
    assert owner.get_service_enabled_ports() == [0]
    assert owner.get_port_attr(0)["service"] is True
    owner.set_service_mode(ports=[0], enabled=False)
    assert owner.get_service_enabled_ports() == []


@pytest.mark.parametrize("enabled", [False, True])
def test_filtered_service_mode(owner: STLClient, transport: MockTransport, enabled: bool) -> None:
    owner.set_service_mode(ports=[1], enabled=enabled, filtered=True, mask=5)
    assert sent(transport, "service") == {"enabled": False, "filtered": True, "mask": 5}
    assert owner.get_service_filtered_ports() == [1]
    assert owner.get_service_enabled_ports() == []


def test_service_mode_for_a_block(owner: STLClient) -> None:
    owner.set_service_mode(ports=[1])
    with owner.service_mode([0, 1]):
        assert owner.get_service_enabled_ports() == [0, 1]
    assert owner.get_service_enabled_ports() == [1]
    with pytest.raises(ValueError, match="mine"), owner.service_mode([0]):
        raise ValueError("mine")
    assert owner.get_service_enabled_ports() == [1]


def test_a_receive_queue(owner: STLClient, transport: MockTransport) -> None:
    owner.set_service_mode(ports=[0])
    owner.set_rx_queue(ports=[0], size=2)
    for number in range(3):
        transport.receive(0, bytes([number]) * 60)
    transport.receive(1, FRAME)
    packets = owner.get_rx_queue_pkts(0)
    assert [packet["binary"][0] for packet in packets] == [1, 2]
    assert {(packet["port"], packet["origin"], packet["wirelen"]) for packet in packets} == {(0, "RX", 60)}
    assert owner.get_rx_queue_pkts(0) == []
    owner.remove_rx_queue(ports=[0])
    assert sent(transport, "set_rx_feature") == {"type": "queue", "enabled": False}
    with pytest.raises(STLError, match=r"port 0: .*not active"):
        owner.get_rx_queue_pkts(0)


def test_a_capture_port(owner: STLClient, transport: MockTransport) -> None:
    for method in ("start_capture_port", "set_capture_port_bpf", "stop_capture_port"):
        transport.answer(method, {})
    owner.set_service_mode(ports=[1])
    owner.start_capture_port(1, "ipc:///tmp/tap", bpf_filter="udp")
    assert sent(transport, "start_capture_port") == {"endpoint": "ipc:///tmp/tap", "bpf_filter": "udp"}
    owner.set_capture_port_bpf_filter(1)
    assert sent(transport, "set_capture_port_bpf") == {"bpf_filter": ""}
    owner.stop_capture_port(1)
    assert transport.requests("stop_capture_port")[-1]["port_id"] == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.set_service_mode([0], filtered=True), ["mask", "filtered"]),
        (lambda c: c.set_service_mode([0], mask=1), ["mask", "filtered=True"]),
        (lambda c: c.set_service_mode([0], filtered=True, mask=256), ["mask", "1 to 255"]),
        (lambda c: c.set_service_mode([0], enabled=1), ["enabled", "True"]),
        (lambda c: c.set_service_mode([7]), ["ports", "0, 1"]),
        (lambda c: c.set_rx_queue([0], size=0), ["size", "1 or more"]),
        (lambda c: c.set_rx_queue([0]), ["[0]", "service mode", "set_service_mode"]),
        (lambda c: c.get_rx_queue_pkts(0), ["[0]", "service mode"]),
        (lambda c: c.start_capture_port(0, "ipc"), ["endpoint", "ipc:///tmp/tap"]),
        (lambda c: c.start_capture_port(0, "ipc:///tmp/tap"), ["service mode"]),
    ],
)
def test_wrong_arguments_are_named(owner: STLClient, call: Any, words: list[str]) -> None:
    with pytest.raises(STLError) as error:
        call(owner)
    assert all(word in str(error.value) for word in words), error.value


def test_reset_makes_ports_deaf_again(owner: STLClient, transport: MockTransport) -> None:
    owner.set_service_mode(ports=[0, 1])
    owner.set_rx_queue(ports=[0])
    ours, others = owner.start_capture(rx_ports=[0])["id"], owner.start_capture(rx_ports=[1])["id"]
    owner.reset(ports=[0])
    assert owner.get_service_enabled_ports() == [1]
    # A capture on the other port may be someone else's.
    assert ours != others
    assert list(owner.get_capture_status()) == [others]
    with pytest.raises(STLError, match="service mode"):
        owner.get_rx_queue_pkts(0)


def test_a_server_without_these_methods_can_be_reset(transport: MockTransport) -> None:
    transport.answer("get_supported_cmds", ["get_profile_list"])
    for method in ("capture", "service", "set_rx_feature", "stop_capture_port"):
        transport.refuse(method, "not registered")
    with STLClient(transport=transport) as client:
        client.reset()
        assert client.get_acquired_ports() == [0, 1]
