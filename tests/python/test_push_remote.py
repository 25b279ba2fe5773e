"""Captures that the server reads: the request, the port's state, what can be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from allosaur import STLClient, STLError, STLPktBuilder, STLStream, STLTXCont
from allosaur.rpc._events import EventType
from allosaur.testing import MockTransport


@pytest.fixture
def owner(client: STLClient, transport: MockTransport) -> STLClient:
    transport.answer("push_remote", {})
    client.acquire(ports=[0, 1])
    return client


def sent(transport: MockTransport) -> dict[str, Any]:
    params = dict(transport.requests("push_remote")[-1])
    del params["api_h"], params["handler"]
    return params


def test_the_request(owner: STLClient, transport: MockTransport) -> None:
    owner.push_remote("/caps/a.pcap", ports=[0])
    usual = {"port_id": 0, "pcap_filename": "/caps/a.pcap", "speedup": 1.0, "count": 1, "duration": -1}
    gaps = {"ipg_usec": -1, "min_ipg_usec": 0}
    assert sent(transport) == {**usual, **gaps, "is_dual": False, "slave_handler": ""}
    owner.push_remote(
        "/caps/a.pcap", ports=[1], min_ipg_usec=2.5, speedup=2, count=0, duration="1m", src_mac_pcap=True
    )
    assert sent(transport) == {
        **usual,
        "port_id": 1,
        "speedup": 2,
        "count": 1 << 31,
        "duration": 60,
        "ipg_usec": -1,
        "min_ipg_usec": 2.5,
        "is_dual": False,
        "slave_handler": "",
    }


def test_mac_bits_and_both_directions(owner: STLClient, transport: MockTransport) -> None:
    owner.push_remote("a.erf", ports=[1], count=3, ipg_usec=10, is_dual=True, dst_mac_pcap=True)
    request = transport.requests("push_remote")[-1]
    assert request["count"] == 3 | 1 << 30
    slave = next(params for params in transport.requests("acquire") if params["port_id"] == 0)
    assert request["slave_handler"].startswith("handler-0-")
    assert slave["port_id"] == 0
    assert owner.get_active_ports() == [0, 1]


def test_the_port_sends_until_the_server_says_that_it_ended(
    owner: STLClient, transport: MockTransport
) -> None:
    owner.push_remote("a.pcap", ports=[0])
    assert owner.get_transmitting_ports() == [0]
    assert owner.is_traffic_active([0])
    transport.publish(EventType.PORT_STARTED, port_id=0)
    transport.publish(EventType.PORT_FINISHED, port_id=0)
    owner.wait_on_traffic(ports=[0], timeout=5)
    assert owner.get_active_ports() == []


def test_it_can_be_stopped(owner: STLClient, transport: MockTransport) -> None:
    for ports in (None, [0], ["0.*"]):
        owner.push_remote("a.pcap", ports=[0], count=0)
        before = len(transport.requests("stop_traffic"))
        owner.stop(ports)
        assert len(transport.requests("stop_traffic")) == before + 1
        assert owner.get_active_ports() == []


def test_a_refusal_leaves_the_port_as_it_was(owner: STLClient, transport: MockTransport) -> None:
    transport.refuse("push_remote", "cannot open a.pcap")
    with pytest.raises(STLError, match=r"port 0: cannot open a\.pcap"):
        owner.push_remote("a.pcap", ports=[0])
    assert owner.get_active_ports() == []


def test_it_does_not_run_beside_streams(owner: STLClient, transport: MockTransport) -> None:
    stream = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1))
    owner.add_streams(stream, ports=["0.name"])
    owner.start(ports=["0.name"])
    with pytest.raises(STLError, match=r"\[0\] already send: call stop\(\) first, or give force=True"):
        owner.push_remote("a.pcap", ports=[0])
    owner.push_remote("a.pcap", ports=[0], force=True)
    assert transport.requests("stop_traffic")[-1]["profile_id"] == "name"
    assert len(transport.streams(0, "name")) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ipg_usec": 1, "min_ipg_usec": 1}, ["min_ipg_usec", "not both"]),
        ({"ipg_usec": -1}, ["ipg_usec", "0 or more"]),
        ({"min_ipg_usec": float("nan")}, ["min_ipg_usec"]),
        ({"speedup": 0}, ["speedup", "above 0"]),
        ({"count": 1 << 30}, ["count", str((1 << 30) - 1)]),
        ({"count": -1}, ["count", "0 (forever)"]),
        ({"count": 1.5}, ["count"]),
        ({"duration": 0}, ["duration"]),
        ({"ports": [0, 1], "is_dual": True}, ["[0, 1]", "one port of each pair"]),
        ({"ports": [2]}, ["ports", "0, 1"]),
    ],
)
def test_wrong_arguments_are_named(owner: STLClient, fields: Any, words: list[str]) -> None:
    with pytest.raises(STLError) as error:
        owner.push_remote("a.pcap", **{"ports": [0], **fields})
    assert all(word in str(error.value) for word in words), error.value
    assert owner.get_active_ports() == []
