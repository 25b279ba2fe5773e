"""One server does both modes at once, without a restart: streams on one pair of ports, flows on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from allosaur import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    STLClient,
    STLError,
    STLPktBuilder,
    STLStream,
    STLTXSingleBurst,
)
from allosaur.server import LocalServer

Client = TypeVar("Client", bound=STLClient)

PACKETS = 2000
CONNECTIONS = 40


@pytest.fixture(params=[1, 2], ids=["one data thread", "two data threads"])
def server(request: pytest.FixtureRequest, fits_the_schema: None) -> Iterator[LocalServer]:
    """Two pairs of linked ports, each of which can be in either mode."""
    with LocalServer(ports=["memory"] * 4, cores=request.param) as running:
        yield running


def connect(server: LocalServer, kind: type[Client], name: str) -> Client:
    client = kind(username=name, server=server.host, sync_port=server.rpc_port, async_port=server.pub_port)
    client.connect()
    return client


def burst() -> STLStream:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / (b"x" * 64)
    return STLStream(packet=STLPktBuilder(packet), mode=STLTXSingleBurst(pps=10_000, total_pkts=PACKETS))


def web() -> ASTFProfile:
    pools = ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.254"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.255.254"]),
    )
    client, server = ASTFProgram(), ASTFProgram()
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    client.recv(4000)
    server.recv(18)
    server.send(b"*" * 4000)
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=client, ip_gen=pools, cps=200, limit=CONNECTIONS),
        server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(80)),
    )
    return ASTFProfile(default_ip_gen=pools, templates=template)


def both_run(streams: STLClient, of_streams: list[int], flows: ASTFClient, of_flows: list[int]) -> None:
    """Send from each of the ports with streams, open all connections between the others, and count."""
    streams.reset(ports=of_streams)
    streams.add_streams(burst(), ports=of_streams)
    flows.reset(ports=of_flows)
    flows.load_profile(web())
    streams.clear_stats(of_streams)
    flows.start()
    streams.start(of_streams)
    streams.wait_on_traffic(of_streams)
    flows.wait_on_traffic()
    counters = streams.get_stats(of_streams)
    assert [counters[port]["ipackets"] for port in of_streams] == [PACKETS, PACKETS]
    traffic = flows.get_traffic_stats()
    assert traffic["client"]["tcps_connects"] == CONNECTIONS
    assert traffic["server"]["tcps_accepts"] == CONNECTIONS
    assert traffic["client"]["tcps_rcvbyte"] == 4000 * CONNECTIONS
    assert not flows.is_traffic_stats_error(traffic)[0]


def test_each_pair_runs_in_one_mode_and_then_in_the_other(server: LocalServer) -> None:
    streams = connect(server, STLClient, "sam")
    flows = connect(server, ASTFClient, "flo")
    try:
        both_run(streams, [0, 1], flows, [2, 3])
        modes = [port["mode"] for port in streams.get_status()["ports"]]
        assert modes == ["STL", "STL", "ASTF", "ASTF"]
        # By force each takes what the other has; what is left behind is free for who comes next.
        flows.reset(ports=[0, 1])
        assert streams.get_acquired_ports() == []
        both_run(streams, [2, 3], flows, [0, 1])
        both_run(streams, [0, 1], flows, [2, 3])
    finally:
        flows.disconnect()
        streams.disconnect()


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(STLError) as caught:
        call()
    return str(caught.value)


def test_who_wants_a_port_in_the_other_mode_is_told_who_has_it(server: LocalServer) -> None:
    streams = connect(server, STLClient, "sam")
    flows = connect(server, ASTFClient, "flo")
    try:
        streams.acquire([0])
        told = refused(lambda: flows.acquire(ports=[0, 1]))
        assert "'sam' in stateless mode" in told
        flows.acquire()
        assert flows.get_acquired_ports() == [2, 3], "all that nobody has"
        told = refused(lambda: streams.acquire([2]))
        assert "'flo' in stateful mode" in told
        flows.release()
        streams.acquire([2])
        told = refused(lambda: flows.acquire(ports=[1]))
        assert "1 and not 0" in told
    finally:
        flows.disconnect()
        streams.disconnect()
