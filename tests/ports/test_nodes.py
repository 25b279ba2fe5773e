"""Linux nodes of ports in memory: two kernels' hosts, and the ports between them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import NSCmds, STLArgumentError, STLClient, STLError, STLTimeoutError
from allosaur.server import LocalServer, find_binary

pytestmark = pytest.mark.usefixtures("networks_work")

MACS = ["02:00:00:00:01:01", "02:00:00:00:02:01"]
ADDRESSES = ["192.0.2.1", "192.0.2.2"]
CONNECTIONS = 200

#: Sends so many bytes by TCP, or takes them; the kernel hands them to its device in pieces that are cut here.
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], 5001), 20) as sock:
    sock.sendall(bytes(range(256)) * int(sys.argv[2]))
"""
TAKE = """
import socket, sys
with socket.create_server(("0.0.0.0", 5001)) as server:
    print("ready", flush=True)
    sock, _ = server.accept()
    got = b"".join(iter(lambda: sock.recv(65536), b""))
    sys.exit(0 if got == bytes(range(256)) * int(sys.argv[1]) else 1)
"""


@pytest.fixture
def server() -> Iterator[LocalServer[STLClient]]:
    with LocalServer(ports=["memory", "memory"]) as running:
        yield running


@pytest.fixture
def client(server: LocalServer[STLClient]) -> Iterator[STLClient]:
    with server.client() as connected:
        connected.reset()
        connected.set_service_mode()
        yield connected


def with_nodes(client: Any, macs: list[str] = MACS) -> list[str]:
    """A node on each port; the names of their namespaces."""
    names = []
    for port, (mac, address) in enumerate(zip(macs, ADDRESSES, strict=True)):
        cmds = NSCmds()
        cmds.add_node(mac)
        cmds.set_ipv4(mac, address, dg=ADDRESSES[1 - port])
        cmds.get_nodes_info([mac])
        client.set_namespace_start(port, cmds)
        results = client.wait_for_async_results(port)
        assert results[:2] == [None, None]
        names.append(results[2]["result"]["nodes"][0]["linux-ns"])
    return names


def inside(namespace: str, program: str, *arguments: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, sys.executable, "-c", program, *arguments]


def check_transfer(names: list[str], units: int = 4096) -> None:
    """A node sends the other a megabyte."""
    taking = subprocess.Popen(inside(names[1], TAKE, str(units)), stdout=subprocess.PIPE, text=True)
    assert taking.stdout is not None
    assert taking.stdout.readline() == "ready\n"
    subprocess.run(inside(names[0], SEND, ADDRESSES[1], str(units)), check=True, timeout=60)
    assert taking.wait(60) == 0


def names_left() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_what_a_node_sends_in_pieces_is_cut_and_arrives_whole(
    client: STLClient, server: LocalServer[STLClient]
) -> None:
    names = with_nodes(client)
    check_transfer(names)
    stats = client.get_stats()
    assert stats[0]["opackets"] > 1024 * 1024 / 1460
    client.namespace_remove_all()
    # Of the outer namespaces nothing is left either.
    assert not [name for name in names_left() if name.startswith(f"allosaur-{server.pid}-")]


def test_nodes_that_are_added_disturb_no_traffic(client: STLClient) -> None:
    from allosaur import STLFlowLatencyStats, STLPktBuilder, STLStream, STLTXCont
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    for port in (0, 1):
        packet = Ether() / IP(src="198.51.100.1", dst="198.51.100.2") / UDP(dport=7) / bytes(60)
        measured = STLFlowLatencyStats(pg_id=7 + port)
        stream = STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=1000), flow_stats=measured)
        client.add_streams(stream, ports=[port])
    client.clear_stats()
    client.start(ports=[0, 1], force=True)
    cmds = NSCmds()
    for number in range(200):
        mac = f"02:00:00:00:03:{number:02x}"
        cmds.add_node(mac)
        cmds.set_ipv4(mac, f"192.0.2.{number + 1}", dg="192.0.2.254")
    client.set_namespace_start(0, cmds)
    assert set(map(str, client.wait_for_async_results(0))) == {"None"}
    client.namespace_remove_all()
    client.stop(ports=[0, 1])
    # What was sent has arrived when both numbers are the same.
    counted: Any = {}
    until = time.monotonic() + 60
    while time.monotonic() < until:
        counted = client.get_pgid_stats([7, 8])
        flows = [counted["flow_stats"][group] for group in (7, 8)]
        if all(flow["tx_pkts"]["total"] == flow["rx_pkts"]["total"] > 0 for flow in flows):
            break
        time.sleep(0.05)
    for group in (7, 8):
        flow = counted["flow_stats"][group]
        assert flow["tx_pkts"]["total"] == flow["rx_pkts"]["total"] > 0
        errors = counted["latency"][group]["err_cntrs"]
        assert all(errors[name] == 0 for name in ("dropped", "out_of_order", "dup")), errors


def test_a_node_may_have_the_port_s_own_mac_address(client: STLClient) -> None:
    check_transfer(with_nodes(client, [info["hw_mac"] for info in client.get_port_info()]), units=64)
    client.namespace_remove_all()


def test_streams_and_a_node_have_their_own_frames(client: STLClient) -> None:
    from allosaur import STLPktBuilder, STLStream, STLTXCont
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    names = with_nodes(client)
    packet = Ether() / IP(src="198.51.100.1", dst="198.51.100.2") / UDP(dport=7) / bytes(60)
    client.add_streams(STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=2000)), ports=[0])
    client.set_service_mode(enabled=False)
    client.start(ports=[0], force=True)
    check_transfer(names)
    client.stop(ports=[0])
    client.set_service_mode()
    counted = client.set_namespace(1, "counters_get_values")["result"][""]
    received = int(counted["0"])
    # The node got what the other sent, and nothing of the stream.
    sent = int(client.set_namespace(0, "counters_get_values")["result"][""]["2"])
    assert received == sent


def flows_of_tcp() -> Any:
    """So many connections with a response each; the nodes' addresses are in none of the pools."""
    from allosaur import (
        ASTFAssociationRule,
        ASTFIPGen,
        ASTFIPGenDist,
        ASTFProfile,
        ASTFProgram,
        ASTFTCPClientTemplate,
        ASTFTCPServerTemplate,
        ASTFTemplate,
    )

    pools = ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
    )
    asks, answers = ASTFProgram(), ASTFProgram()
    asks.send(b"GET / HTTP/1.1\r\n\r\n")
    asks.recv(4000)
    answers.recv(18)
    answers.send(b"*" * 4000)
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(
            # The port that the node listens on, too.
            program=asks,
            ip_gen=pools,
            port=5001,
            cps=200,
            limit=CONNECTIONS,
        ),
        server_template=ASTFTCPServerTemplate(program=answers, assoc=ASTFAssociationRule(5001)),
    )
    return ASTFProfile(default_ip_gen=pools, templates=template)


def test_flows_and_nodes_have_their_own_frames_and_nobody_makes_the_port_promiscuous() -> None:
    from allosaur import ASTFClient

    with (
        LocalServer(ports=["memory", "memory"], stateful=True) as server,
        ASTFClient(server=server.host, sync_port=server.rpc_port, async_port=server.pub_port) as client,
    ):
        client.reset()
        client.set_service_mode()
        names = with_nodes(client)
        client.set_service_mode(enabled=False)
        client.load_profile(flows_of_tcp())
        client.start()
        check_transfer(names, units=64)
        client.wait_on_traffic()
        traffic = client.get_traffic_stats()
        assert traffic["client"]["tcps_connects"] == CONNECTIONS
        assert traffic["server"]["tcps_accepts"] == CONNECTIONS
        assert traffic["client"]["tcps_rcvbyte"] == 4000 * CONNECTIONS
        assert not client.is_traffic_stats_error(traffic)[0]
        client.set_service_mode()
        sent, received = (client.set_namespace(port, "counters_get_values") for port in (0, 1))
        assert sent["result"][""]["2"] == received["result"][""]["0"]
        client.namespace_remove_all()


def test_an_interface_lets_frames_for_nodes_through_while_there_are_any(network: Any) -> None:
    near, other = network.veth()
    with LocalServer(ports=[near, other]) as server, server.client() as client:
        client.reset()
        client.set_service_mode()

        def promiscuity() -> list[int]:
            return [network.facts(None, one)["promiscuity"] for one in (near, other)]

        cmds = NSCmds()
        cmds.add_node(MACS[0])
        cmds.add_node(MACS[1])
        client.set_namespace_start(0, cmds)
        client.wait_for_async_results(0)
        assert promiscuity() == [1, 0]
        # What a user chooses beside that neither ends it nor is ended by it.
        client.set_port_attr(ports=[0, 1], promiscuous=True)
        client.set_port_attr(ports=[0], promiscuous=False)
        assert promiscuity() == [1, 1]
        client.set_namespace(0, "remove_node", mac=MACS[0])
        assert promiscuity() == [1, 1]
        client.set_namespace(0, "remove_node", mac=MACS[1])
        assert promiscuity() == [0, 1]
        client.set_namespace(1, "add_node", mac=MACS[0])
        client.namespace_remove_all()
        assert promiscuity() == [0, 1]


def test_a_batch_that_takes_too_long_is_cancelled(client: STLClient) -> None:
    cmds = NSCmds()
    for number in range(250):
        cmds.add_node(f"02:00:00:00:03:{number:02x}")
    client.set_namespace_start(0, cmds)
    assert not client.is_async_results_ready(0)
    progress: list[dict[str, Any]] = []
    with pytest.raises(STLTimeoutError):
        client.wait_for_async_results(0, timeout=0, cb=progress.append)
    assert progress[0]["total_cmds"] == 250
    left = client.set_namespace(0, "get_nodes")["result"]["nodes"]
    assert len(left) < 250
    client.namespace_remove_all()


def test_what_is_wrong_is_named(client: STLClient) -> None:
    client.set_namespace(0, "add_node", mac=MACS[0])
    with pytest.raises(STLError, match=f"has a node {MACS[0]} already"):
        client.set_namespace(0, "add_node", mac=MACS[0])
    with pytest.raises(STLArgumentError, match="02:00:00:00:00:01"):
        client.set_namespace(0, "add_node", mac="x")
    with pytest.raises(STLArgumentError, match="a method of NSCmds"):
        client.set_namespace(0, "no_such_method")
    with pytest.raises(STLError, match="no batch of nodes"):
        client.wait_for_async_results(1)
    client.set_service_mode(enabled=False)
    with pytest.raises(STLError, match="service mode"):
        client.set_namespace(0, "get_nodes")


def test_what_a_killed_server_left_is_removed_by_the_next() -> None:
    command = [str(find_binary()), "serve", "--ports", "memory,memory", "--rpc-port", "0", "--pub-port", "0"]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    ready = dict(word.split("=") for word in killed.stdout.readline().split()[1:] if "=" in word)
    sync_port, async_port = (int(ready[name].rsplit(":", 1)[1]) for name in ("rpc", "pub"))
    with STLClient(server="127.0.0.1", sync_port=sync_port, async_port=async_port) as client:
        client.reset()
        client.set_service_mode()
        names = with_nodes(client)
    killed.kill()
    killed.wait(60)
    assert set(names) <= names_left()
    with LocalServer(ports=["memory", "memory"]):
        until = time.monotonic() + 60
        while names_left() & set(names) and time.monotonic() < until:
            time.sleep(0.05)
    assert not names_left() & set(names)
