"""ARP, ping and maps as TRex's client does them: the same packets and filters; and real answers."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.testing import MockTransport

MINE, THEIRS = "1.1.1.1", "1.1.1.2"


@pytest.fixture
def conversation(transcript: Callable[[str], list[Any]]) -> list[tuple[str, dict[str, Any], Any]]:
    """What TRex's client asked a real server in a service context's scenario: method, parameters, result."""
    asked: dict[str, Any] = {}
    exchanged = []
    for line in transcript("stl_s10"):
        message = line.get("msg")
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and "method" in one:
                asked[one["id"]] = one
            elif isinstance(one, dict) and one.get("id") in asked:
                request = asked.pop(one["id"])
                exchanged.append((request["method"], request["params"], one.get("result")))
    return exchanged


@pytest.fixture
def real(transport: MockTransport, conversation: list[Any]) -> MockTransport:
    """The mock with the ports of that server: what it says of them, but for what the client changes."""
    infos = [result for method, _, result in conversation if method == "get_system_info"]
    transport.answer("get_system_info", infos[0])
    first = {
        params["port_id"]: result
        for method, params, result in reversed(conversation)
        if method == "get_port_status"
    }

    def status(params: dict[str, Any]) -> Any:
        ours, theirs = transport._ports[params["port_id"]].status(), first[params["port_id"]]
        changed = {"layer_cfg": ours["attr"]["layer_cfg"], "vlan": ours["attr"].get("vlan", {"tags": []})}
        kept = {name: ours[name] for name in ("owner", "state", "state_profile", "service")}
        return {**theirs, **kept, "attr": {**theirs["attr"], **changed}}

    transport.answer("get_port_status", status)
    return transport


@pytest.fixture
def client(real: MockTransport) -> Any:
    with STLClient(username="alice", transport=real) as connected:
        connected.acquire()
        connected.set_service_mode()
        yield connected


def pushed(conversation: list[Any]) -> list[dict[str, Any]]:
    return [params["pkts"][0] for method, params, _ in conversation if method == "push_pkts"]


def answer_with(real: MockTransport, conversation: list[Any], kind: int) -> None:
    """Let each pushed packet be answered as the real server's neighbor answered it, by Ethernet type."""
    answers = [
        base64.b64decode(packet["binary"])
        for method, _, result in conversation
        if method == "capture" and isinstance(result, dict)
        for packet in result.get("pkts", [])
    ]

    def on_push(port: int, frame: bytes) -> None:
        for answer in answers:
            is_for_us = answer[:6] == bytes.fromhex(f"02000000000{port + 1}")
            if is_for_us and int.from_bytes(answer[12:14], "big") == kind:
                real.receive(port, answer)
                return

    real.on_push = on_push


def test_a_gateway_is_found_with_the_same_packet(
    client: STLClient, real: MockTransport, conversation: list[Any]
) -> None:
    answer_with(real, conversation, 0x0806)
    client.set_l3_mode(0, MINE, THEIRS)
    assert client.get_port(0).dst_mac == "02:00:00:00:00:02"
    assert real.requests("push_pkts")[0]["pkts"] == [pushed(conversation)[0]]
    assert real.requests("push_pkts")[0]["ipg_usec"] == 1000
    filters = [params["filter"] for method, params, _ in conversation if "filter" in params]
    starts = [params for params in real.requests("capture") if params["command"] == "start"]
    assert starts[0]["filter"] == filters[0]
    theirs = [params for method, params, _ in conversation if method == "set_l3" and params["port_id"] == 0]
    ours = real.requests("set_l3")
    assert [sorted(params) for params in ours] == [sorted(params) for params in (*theirs[:2], theirs[-1])]


def test_a_ping_is_the_same_packet(
    client: STLClient, real: MockTransport, conversation: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ping = next(packet for packet in pushed(conversation) if packet["use_port_dst_mac"])
    frame = base64.b64decode(ping["binary"])
    monkeypatch.setattr(random, "getrandbits", lambda _bits: int.from_bytes(frame[38:40], "big"))
    answer_with(real, conversation, 0x0800)
    client._layers.configure("set_l3", [0], src_addr=MINE, dst_addr=THEIRS, resolved_mac="02:00:00:00:00:02")
    (record,) = client.ping_ip(0, THEIRS, count=1)
    assert real.requests("push_pkts")[-1]["pkts"] == [ping]
    assert (record["status"], record["src_ip"], record["ttl"]) == ("success", THEIRS, 128)


def test_a_map_has_the_same_packets(
    client: STLClient, real: MockTransport, conversation: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = next(params for _, params, _ in conversation if "udp[8:4]" in params.get("filter", ""))
    mark = int(start["filter"].split("0x")[1].split()[0], 16)
    monkeypatch.setattr(random, "getrandbits", lambda _bits: mark)
    real.on_push = lambda port, frame: real.receive(port ^ 1, frame)
    for port, addresses in ((0, (MINE, THEIRS)), (1, (THEIRS, MINE))):
        source, gateway = addresses
        client._layers.configure("set_l3", [port], src_addr=source, dst_addr=gateway, resolved_mac="02::01")
    assert client.map_ports()["bi"] == [(0, 1)]
    theirs = [params["pkts"] for method, params, _ in conversation if method == "push_pkts"][-2:]
    assert [params["pkts"] for params in real.requests("push_pkts")] == theirs
