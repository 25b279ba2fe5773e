"""Emulated clients on the ports of a server: their front door, and that they share ports with all else."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zmq
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer, ServerStartError
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether


def meet(door: Any, doors: Any, tci: tuple[int, ...] = (), clients: tuple[int, int] = (1, 2)) -> None:
    """Add a client to each port of two that are linked, and let that of the second find that of the first."""
    near, far = (door.add_namespace(port, tci=tci, arp={}) for port in (0, 1))
    first, second = clients
    door.add_clients(near, [first], arp={})
    door.add_clients(far, [second], gateway=doors.ipv4(first), arp={})
    found = doors.await_it(
        lambda: [
            entry
            for entry in door.call("arp_ns_iter", tun=far, reset=True, count=255)["data"]
            if entry["resolve"]
        ],
        f"client {second} never found client {first}",
    )
    assert (found[0]["ipv4"], found[0]["mac"]) == (doors.ipv4_bytes(doors.ipv4(first)), doors.mac(first))
    assert door.counters("arp_ns_cnt", tun=near)["pktTxReply"] >= 1


def test_there_are_none_unless_they_are_asked_for(server: LocalServer) -> None:
    assert server.emu_port is None


def test_a_port_that_is_taken_is_named(emulating: LocalServer) -> None:
    with pytest.raises(ServerStartError, match="--emu-port") as refused:
        LocalServer(emu=emulating.emu_port or 0).start()
    assert f":{emulating.emu_port}" in str(refused.value)


def test_ports_that_are_the_same_are_refused() -> None:
    with pytest.raises(ServerStartError, match=r"emu_port .* rpc_port .* 4501"):
        LocalServer(emu=4501, rpc_port=4501).start()


def test_a_file_turns_them_on(tmp_path: Any, doors: Any) -> None:
    config = tmp_path / "allosaur.yaml"
    config.write_text("ports: [memory, memory]\nemu_port: 0\n", encoding="utf-8")
    with LocalServer(config=config) as server, doors.Door(server.emu_port) as door:
        assert door.call("get_version")["mode"] == "emulation"


def test_messages_of_any_form_are_answered_in_their_form(
    emulating: LocalServer, door: Any, doors: Any
) -> None:
    with doors.Door(emulating.emu_port, zipped=True) as zipped:
        for one in (door, zipped):
            assert one.call("ping")["ts"] >= 0
            replies = one.ask([one.request(name) for name in ("ping", "no_such_method", "get_version")])
            assert ["result" in reply for reply in replies] == [True, False, True]
            assert replies[1]["error"]["code"] == -32601
    for wrong in (b"{", b"\xab\xe8\x5c\xea\0\0\0\x05nothing", b"\xff" * 9):
        assert json.loads(door.exchange(wrong))["error"]["code"] == -32700
    assert door.call("ping")["ts"] >= 0


@pytest.mark.parametrize("port", ["rpc_port", "emu_port"])
def test_both_ports_treat_messages_alike(emulating: LocalServer, port: str) -> None:
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 60_000)
        socket.connect(f"tcp://127.0.0.1:{getattr(emulating, port)}")

        def exchange(message: bytes) -> Any:
            socket.send(message)
            return json.loads(socket.recv())

        for wrong in (b"nonsense", b"[{}", b'{"jsonrpc":', b"\xff" * 9):
            assert exchange(wrong)["error"]["code"] == -32700, wrong
        ping = {"jsonrpc": "2.0", "method": "no_such", "params": {}}
        batch = [ping | {"id": number} for number in range(1, 2000)]
        replies = exchange(json.dumps([*batch, 5] if port == "rpc_port" else [*batch, {}]).encode())
        assert [reply.get("id") for reply in replies] == [*range(1, 2000), None]
        assert {reply["error"]["code"] for reply in replies[:-1]} == {-32601}
        most = 32_768
        assert len(exchange(b"[" + b",".join([b"{}"] * most) + b"]")) == most
        refused = exchange(b"[" + b",".join([b"{}"] * (most + 1)) + b"]")
        assert f"the most is {most}" in str(refused["error"])


def test_a_message_that_is_too_long_is_refused(door: Any) -> None:
    reply = json.loads(door.exchange(b" " * (33 << 20)))
    assert "bytes" in reply["error"]["message"]
    assert door.call("ping")["ts"] >= 0


def test_namespaces_are_told_apart_by_tags(door: Any, doors: Any) -> None:
    for tci in ((), (5,), (5, 7)):
        meet(door, doors, tci)


def test_they_share_their_ports_with_streams_and_captures(
    emulating: LocalServer, door: Any, doors: Any
) -> None:
    frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12) / (b"x" * 20)
    with emulating.client() as client:
        assert isinstance(client, STLClient)
        client.reset()
        client.add_streams(STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=2000)), ports=[0, 1])
        client.start(ports=[0, 1])
        capture = client.start_capture(rx_ports=[0], limit=1000, bpf_filter="arp")["id"]
        meet(door, doors)
        doors.await_it(lambda: client.get_stats()[0]["ipackets"] > 100, "no stream arrived")
        client.stop(ports=[0, 1])
        seen: list[dict[str, Any]] = []
        client.stop_capture(capture, output=seen)
        asked = bytes([*doors.ipv4_bytes(doors.ipv4(2)), *6 * [0], *doors.ipv4_bytes(doors.ipv4(1))])
        assert asked in [bytes(packet["binary"])[28:42] for packet in seen]


@pytest.mark.parametrize("mask", [None, 1])
def test_filtered_service_mode_hides_nothing_from_them(
    emulating: LocalServer, door: Any, doors: Any, mask: int | None
) -> None:
    with emulating.client() as client:
        client.reset()
        if mask is None:
            client.set_service_mode(ports=[0, 1])
        else:
            client.set_service_mode(ports=[0, 1], enabled=False, filtered=True, mask=2)
        meet(door, doors)


def test_they_live_beside_flows(doors: Any) -> None:
    with (
        LocalServer(emu=True, stateful=True) as server,
        server.client() as client,
        doors.Door(server.emu_port) as door,
    ):
        client.reset()
        client.load_profile("profiles/stateful/http.py")
        client.start(mult=10, duration=-1)
        meet(door, doors)
        doors.await_it(
            lambda: client.get_traffic_stats(skip_zero=False)["client"]["tcps_connects"] > 0,
            "no flow was opened",
        )
        client.stop()


def test_a_namespace_on_a_port_that_is_not_there_does_no_harm(door: Any, doors: Any) -> None:
    tunnel = door.add_namespace(77, arp={})
    door.add_clients(tunnel, [1], gateway=doors.ipv4(2), arp={})
    meet(door, doors)


def test_a_long_request_ends_at_the_first_that_is_wrong(
    emulating: LocalServer, door: Any, doors: Any
) -> None:
    tunnel = door.add_namespace(0, arp={})
    with doors.Door(emulating.emu_port, zipped=True) as zipped:
        door.add_clients(tunnel, range(1, 1001), arp={})
        with pytest.raises(doors.Refused, match="02:00:00:01:00:07"):
            zipped.add_clients(tunnel, [*range(1001, 2001), 7, *range(2001, 3001)], arp={})
        assert door.call("ctx_get_info", tunnels=[tunnel])[0]["active_clients"] == 2000
        macs = [doors.mac(number) for number in (*range(1, 1501), 9999, 1600)]
        with pytest.raises(doors.Refused, match="client does exits"):
            zipped.call("ctx_client_remove", tun=tunnel, macs=macs)
        info = door.call("ctx_get_info", tunnels=[tunnel])[0]
        assert (info["active_clients"], door.call("ping")["ts"] >= 0) == (500, True)


def test_linux_finds_a_hundred_of_them(network: Any, doors: Any) -> None:
    host = network.namespace("host")
    near, far = network.veth(host)
    network.run(host, "ip", "address", "add", "10.1.255.254/16", "dev", far)
    with (
        LocalServer(ports=[f"af_packet:{near}"], emu=True) as server,
        doors.Door(server.emu_port) as door,
    ):
        tunnel = door.add_namespace(0, arp={})
        door.add_clients(tunnel, range(1, 101), gateway="10.1.255.254", arp={})
        network.run(host, "bash", "-c", "for n in $(seq 100); do echo > /dev/udp/10.1.0.$n/9; done")
        lines = [
            f"{doors.ipv4(number)} lladdr {':'.join(f'{byte:02x}' for byte in doors.mac(number))}"
            for number in range(1, 101)
        ]

        def is_complete() -> bool:
            table = network.run(host, "ip", "neighbor", "show", "dev", far)
            return all(f"{line} " in table for line in lines)

        doors.await_it(is_complete, "the kernel never found all of them")
        entries = door.call("arp_ns_iter", tun=tunnel, reset=True, count=255)["data"]
        macs = {tuple(entry["ipv4"]): entry["mac"] for entry in entries}
        assert bytes(macs[10, 1, 255, 254]).hex(":") == network.mac(host, far)
