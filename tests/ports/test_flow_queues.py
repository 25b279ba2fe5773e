"""Several data threads with flows on one interface: each reads a queue of its own where it is known which
frames arrive there, and else one shares out what arrives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from allosaur import ASTFClient

CONNECTIONS = 400
THREADS = 2
MOVED = ("rss_redirect_rx", "rss_redirect_tx", "rss_redirect_drops")


def details(client: ASTFClient, port: int) -> str:
    """What the server says of a port."""
    return str(client.get_port_info(ports=[port])[0]["description"])


def moved(side: Mapping[str, int]) -> list[int]:
    """Frames that threads passed on to others."""
    return [side[name] for name in MOVED]


def many_queues(network: Any, count: int, *ends: tuple[str | None, str]) -> None:
    """Give both ends of a veth so many queues."""
    for namespace, link in ends:
        network.run(namespace, "ethtool", "-L", link, "rx", str(count), "tx", str(count))


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_packet_sockets_get_the_flows_of_their_threads_by_the_kernel(
    ipv6: bool, network: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    host = real.Host(network, "web")
    body = real.body(5_000)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            clients=("10.0.0.10", "10.0.0.200"),
            servers=(host.address, host.address),
            cps=400,
            limit=CONNECTIONS,
            prefixes=(host.prefix, host.prefix) if ipv6 else None,
        )
        with talks.generator([host.near, "dummy"], [host], cores=THREADS) as client:
            assert "flows by their ports, in the kernel, 2 queues" in details(client, 0)
            real.be_neighbors(host, range(10, 201), ipv6)
            traffic = talks.run(client, profile)
    clients = traffic["client"]
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert clients["tcps_closed"] == CONNECTIONS
    assert clients["tcps_rcvbyte"] == CONNECTIONS * response
    assert moved(clients) == [0, 0, 0]


def test_packet_sockets_serve_the_kernels_clients_by_their_threads(
    network: Any, real: ModuleType, talks: ModuleType
) -> None:
    host = real.Host(network, "people", number=1)
    body = real.body(50_000)
    profile = talks.profile(talks.asks(b"-", 1), talks.answers(40, talks.answer(body)))
    with talks.generator(["dummy", host.near], [host], cores=THREADS) as client:
        assert "flows by their ports, in the kernel, 2 queues" in details(client, 1)
        talks.start(client, profile)
        parallel = ["--parallel", "--parallel-immediate", "--parallel-max", "40"]
        _, received = real.Fetched(host, "http://48.0.0.1/[1-40]", *parallel).result()
        traffic = talks.finished(client, 40)
    assert received == 40 * len(body)
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert moved(traffic["server"]) == [0, 0, 0]


def own_profile(talks: ModuleType) -> Any:
    """Clients and servers of ours, with requests and answers of several segments."""
    return talks.profile(
        talks.asks(b"q" * 3_000, 10_000),
        talks.answers(3_000, b"a" * 10_000),
        clients=("16.0.0.1", "16.0.0.100"),
        servers=("48.0.0.1", "48.0.0.50"),
        cps=800,
        limit=CONNECTIONS,
    )


def test_frames_stay_on_their_queue_between_two_ports_on_a_veth(network: Any, talks: ModuleType) -> None:
    near, other = network.veth()
    many_queues(network, THREADS, (None, near), (None, other))
    ports = [f"af_xdp:{name}:mode=native" for name in (near, other)]
    with talks.generator(ports, cores=THREADS) as client:
        for port in (0, 1):
            assert "flows stay on their queues, 2 queues" in details(client, port)
        traffic = talks.run(client, own_profile(talks))
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    for side in ("client", "server"):
        assert traffic[side]["tcps_closed"] == CONNECTIONS
        assert moved(traffic[side]) == [0, 0, 0]


@pytest.mark.parametrize("case", ["one-queue", "generic", "another-kind", "another-namespace"])
def test_else_one_thread_shares_out_and_says_why(case: str, network: Any, talks: ModuleType) -> None:
    near, other = network.veth()
    queues = 1 if case == "one-queue" else THREADS
    many_queues(network, queues, (None, near), (None, other))
    mode = "generic" if case == "generic" else "auto"
    ports = [f"af_xdp:{near}:mode={mode}", other if case == "another-kind" else f"af_xdp:{other}"]
    why = "1 receive queue for 2 threads" if case == "one-queue" else "the driver does not tell by which hash"
    if case == "another-namespace":
        far = network.namespace("far")
        network.run(None, "ip", "link", "set", other, "netns", far)
        network.run(far, "ip", "link", "set", other, "up")
        with talks.generator([f"af_xdp:{near}", "dummy"], cores=THREADS) as client:
            assert f"flows shared out by software: {why}" in details(client, 0)
        return
    with talks.generator(ports, cores=THREADS) as client:
        assert f"flows shared out by software: {why}" in details(client, 0)
        traffic = talks.run(client, own_profile(talks))
    received, sent, dropped = moved(traffic["client"])
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    for side in ("client", "server"):
        assert traffic[side]["tcps_closed"] == CONNECTIONS
    # Each thread tells for itself, one a little later than the other.
    assert min(received, sent) > CONNECTIONS
    assert dropped == 0


def test_one_thread_shares_with_nobody(network: Any, talks: ModuleType) -> None:
    near, other = network.veth()
    with talks.generator([near, other]) as client:
        assert "flows" not in details(client, 0)
        traffic = talks.run(client, own_profile(talks))
    assert talks.errors(traffic, *talks.UNTIMELY) == {}


@pytest.mark.alone  # threads of DPDK's ports look for frames all the time
def test_drivers_of_dpdk_tell_whether_they_hash(dpdk: None, talks: ModuleType) -> None:
    with talks.generator(["vdev:net_null,size=60", "vdev:net_null,size=60"], cores=THREADS) as client:
        assert "answers by RSS, 2 queues" in details(client, 0)
        assert "flows by RSS, 2 queues" in details(client, 1)
    with talks.generator(["vdev:net_ring", "dummy"], cores=THREADS) as client:
        why = "the driver does not share out by a hash what arrives"
        assert f"flows shared out by software: {why}" in details(client, 0)


@pytest.mark.alone
def test_flows_find_their_thread_behind_a_driver_of_dpdk_that_does_not_hash(
    dpdk: None, network: Any, real: ModuleType, talks: ModuleType, tmp_path: Path
) -> None:
    host = real.Host(network, "web", offloads=False)
    body = real.body(5_000)
    with real.Nginx(host, tmp_path, {"file": body}) as nginx:
        response = nginx.response_bytes("file")
        profile = talks.profile(
            talks.asks(talks.get("file"), response),
            talks.answers(1, b"-"),
            clients=("10.0.0.10", "10.0.0.200"),
            servers=(host.address, host.address),
            cps=200,
            limit=CONNECTIONS,
        )
        ports = [f"vdev:net_af_packet,iface={host.near},qpairs=2", "dummy"]
        with talks.generator(ports, cores=THREADS) as client:
            assert "flows shared out by software" in details(client, 0)
            client.set_service_mode(enabled=True)
            client.set_l3_mode(port=0, src_ipv4=host.port_address, dst_ipv4=host.address)
            client.set_service_mode(enabled=False)
            real.be_neighbors(host, range(10, 201), False)
            traffic = talks.run(client, profile)
    assert talks.errors(traffic, *talks.UNTIMELY) == {}
    assert traffic["client"]["tcps_closed"] == CONNECTIONS
    assert traffic["client"]["rss_redirect_tx"] > 0
