"""The client against the real server on in-memory ports, and the paper's listings as they are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    STLVM,
    STLClient,
    STLConnectionError,
    STLPktBuilder,
    STLProfile,
    STLRpcError,
    STLStream,
    STLTXCont,
    STLTXMultiBurst,
    STLTXSingleBurst,
)
from allosaur.api import IP, UDP, Ether
from allosaur.server import LocalServer


def packet(vm: STLVM | None = None) -> STLPktBuilder:
    return STLPktBuilder(pkt=Ether() / IP() / UDP() / ("x" * 18), vm=vm)


def burst(total_pkts: int = 1000, **more: Any) -> STLStream:
    return STLStream(packet=packet(), mode=STLTXSingleBurst(total_pkts=total_pkts, pps=1_000_000), **more)


def arrived(client: STLClient, port: int, packets: int) -> dict[str, int]:
    """The counters of a port once the packets are there: what was just sent is still on its way."""
    deadline = time.monotonic() + 10
    while (stats := client.get_stats(ports=[port])[port])["ipackets"] < packets:
        assert time.monotonic() < deadline, f"port {port} received {stats['ipackets']} of {packets} packets"
    return stats


@pytest.fixture
def live(live_server: LocalServer) -> Any:
    with live_server.client(username="alice") as connected:
        connected.reset()
        yield connected


def test_a_burst_arrives_whole(live: STLClient) -> None:
    live.add_streams(burst(1000), ports=[0])
    live.start(ports=[0])
    live.wait_on_traffic(ports=[0], timeout=30)
    stats = live.get_stats()
    assert (stats[0]["opackets"], stats[0]["obytes"]) == (1000, 64_000)
    received = arrived(live, 1, 1000)
    assert (received["ipackets"], received["ibytes"]) == (1000, 64_000)
    live.clear_stats()
    assert live.get_stats()["total"]["opackets"] == 0


def test_a_chain_of_bursts_with_a_field_engine(live: STLClient) -> None:
    vm = STLVM()
    vm.var("src", "16.0.0.1", "16.0.0.254", size=4, op="inc")
    vm.write("src", "IP.src")
    vm.fix_chksum()
    many = STLTXMultiBurst(pkts_per_burst=4, ibg=100.0, count=5, pps=100_000)
    profile = STLProfile(
        [burst(10, name="S0", next="S1"), STLStream("S1", packet(vm), many, self_start=False)]
    )
    assert live.add_streams(profile, ports=[0]) == [1, 2]
    live.start(ports=[0])
    live.wait_on_traffic(timeout=30)
    assert arrived(live, 1, 30)["ipackets"] == 30


def test_a_run_ends_by_itself_and_can_be_repeated(live: STLClient) -> None:
    live.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=10_000)), ports=[0, 1])
    for _ in range(3):
        live.clear_stats()
        live.start(ports=[0, 1], duration=0.2)
        assert live.is_traffic_active()
        live.wait_on_traffic(timeout=30)
        stats = live.get_stats()
        assert stats["total"]["opackets"] + stats["total"].get("missed_packets", 0) == pytest.approx(
            4000, rel=0.01
        )


def test_short_runs_one_after_the_other_do_not_hang(live: STLClient) -> None:
    live.add_streams(burst(1), ports=[0])
    for _ in range(100):
        live.start(ports=[0])
        live.wait_on_traffic(timeout=30)
    assert live.get_stats()[0]["opackets"] == 100


def test_stop_ends_endless_traffic(live: STLClient) -> None:
    live.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=[0])
    live.start(ports=[0])
    live.stop()
    assert not live.is_traffic_active()
    after = live.get_stats()[0]["opackets"]
    time.sleep(0.05)
    assert live.get_stats()[0]["opackets"] == after


def test_events_tell_the_story(live: STLClient) -> None:
    live.add_streams(burst(), ports=[0])
    live.clear_events()
    live.start(ports=[0])
    live.wait_on_traffic(timeout=30)
    words = [event.msg for event in live.get_events()]
    assert words == [
        "Profile 0._ has started",
        "Port 0 has started",
        "Profile 0._ job done",
        "Port 0 job done",
    ]
    assert live.get_warnings() == []


def test_ten_thousand_streams_are_added_and_read_back(live: STLClient) -> None:
    streams = [
        STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1)) for _ in range(10_000)
    ]
    assert live.add_streams(streams, ports=[0]) == list(range(1, 10_001))
    live.acquire(ports=[0], force=True)
    assert live.add_streams(burst(), ports=[0]) == 10_001
    live.remove_streams([10_001], ports=[0])
    live.remove_all_streams(ports=[0])


def test_four_ports_on_two_cores(binary: Path) -> None:
    with LocalServer(ports=["memory"] * 4, cores=2, binary=binary) as server, server.client() as client:
        client.reset()
        assert client.get_all_ports() == [0, 1, 2, 3]
        client.add_streams(burst(1001), ports=[0, 2])
        client.start(ports=[0, 2], synchronized=True)
        client.wait_on_traffic(timeout=30)
        assert [arrived(client, port, 1001)["ipackets"] for port in (1, 3)] == [1001, 1001]
        assert client.get_stats(ports=[0, 2])["total"]["opackets"] == 2002


def test_two_clients_share_a_server(live_server: LocalServer) -> None:
    with live_server.client(username="alice") as alice, live_server.client(username="bob") as bob:
        alice.acquire(ports=[0])
        bob.acquire(ports=[1])
        for client in (alice, bob):
            client.add_streams(burst(500))
            client.start()
        for client in (alice, bob):
            client.wait_on_traffic(timeout=30)
        assert [arrived(alice, port, 500)["ipackets"] for port in (0, 1)] == [500, 500]


def test_a_port_of_another_user_is_named_and_untouched(live: STLClient, live_server: LocalServer) -> None:
    live.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=[0])
    live.start(ports=[0])
    with live_server.client(username="bob") as bob:
        with pytest.raises(STLRpcError, match="port 0: port is already taken by 'alice'"):
            bob.acquire(ports=[0])
        assert bob.get_port_attr(0)["owner"] == "alice"
    assert live.is_traffic_active()
    with live_server.client(username="bob") as bob:
        bob.acquire(ports=[0], force=True)
        live._connection.session().drain_events()
        assert live.get_acquired_ports() == [1]
        assert "forcely taken by 'bob'" in live.get_warnings()[-1].msg


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"packet": {"binary": "AAAA", "meta": ""}}, "packet"),
        ({"mode": {"type": "continuous", "rate": {"type": "pps", "value": 0}}}, "rate|value"),
        ({"vm": {"instructions": [{"type": "trim_pkt_size", "name": "nobody"}]}}, "nobody"),
    ],
)
def test_what_the_server_refuses_names_the_stream(
    live: STLClient, change: dict[str, Any], words: str
) -> None:
    """A client that checks nothing: the server's own words reach the user, and the server lives on."""
    good = {**burst(name="S1").to_json(), "next_stream_id": -1}
    params = live._connection.owned_params(0, profile_id="_", stream_id=1, stream={**good, **change})
    with pytest.raises(STLRpcError, match=words):
        live._connection.session().rpc.call("add_stream", **params)
        live.start(ports=[0])
    assert live.ping_rpc_server()["ts"] > 0


def test_a_killed_server_ends_the_wait(live_server: LocalServer) -> None:
    client = live_server.client(sync_timeout=0.5)
    client.connect()
    client.reset()
    client.add_streams(STLStream(packet=packet(), mode=STLTXCont(pps=1000)), ports=[0])
    client.start(ports=[0])
    live_server.stop()
    with pytest.raises(STLConnectionError, match="went away"):
        client.wait_on_traffic(timeout=60)
    client.disconnect()


def test_shutdown_ends_the_server(live_server: LocalServer) -> None:
    with live_server.client(sync_timeout=0.5) as client:
        client.server_shutdown()
        with pytest.raises(STLConnectionError, match="went away"):
            client._connection.session().wait(lambda: False, timeout_s=60)


def test_facts_of_ports_and_cores(live: STLClient) -> None:
    info = live.get_port_info()
    assert [(port["index"], port["owner"], port["link"], port["is_virtual"]) for port in info] == [
        (0, "alice", "UP", "yes"),
        (1, "alice", "UP", "yes"),
    ]
    assert len(live.get_util_stats()["cpu"]) == 1
    assert live.get_server_version()["mode"] == "STL"
    names = {"start_traffic", "add_stream", "get_async_events"}
    assert names <= set(live.get_server_supported_cmds())


def test_listing_4_runs_as_it_is(binary: Path, listings: Path) -> None:
    """The script connects to ports 4501 and 4500: a loopback address of its own keeps them free."""
    with LocalServer(binary=binary, listen="127.45.1.1", rpc_port=4501, pub_port=4500) as server:
        script = listings / "listing4.py"
        run = subprocess.run(
            [sys.executable, script, server.host], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr + server.stderr
        with server.client() as client:
            client.count_since_server_start()
            while (stats := client.get_stats()["total"])["ipackets"] + stats["rx_lost_packets"] < stats[
                "opackets"
            ]:
                assert server.is_running()
    sent = stats["opackets"] + stats.get("missed_packets", 0)
    assert sent == pytest.approx(2 * 5_000_000 * 10, rel=0.001), (
        "10 s of 5 Mpps on two ports, or said to be missed"
    )
    assert stats["ipackets"] + stats.get("rx_lost_packets", 0) == stats["opackets"]


@pytest.mark.parametrize("number", ["1", "1_three_streams", "2", "3"])
def test_profiles_of_the_paper_run_as_they_are(live: STLClient, listings: Path, number: str) -> None:
    live.add_profile(listings / f"listing{number}.py", ports=[0])
    live.start(ports=[0], mult="10kpps" if number != "2" else "1", duration=0.3)
    live.wait_on_traffic(timeout=30)
    sent = live.get_stats()[0]["opackets"]
    assert sent > 0
    assert arrived(live, 1, sent)["ipackets"] == sent


FORGOTTEN = """
import gc, time
from allosaur.server import LocalServer
server = LocalServer(stateful=True)
server.start()
client = server.client()
client.connect()
server.stop()
while client.is_connected():
    time.sleep(0.01)
del client
gc.collect()
"""


def test_a_client_that_nobody_disconnects_is_collected(binary: Path) -> None:
    # In a process of its own: what stands still inside of ZeroMQ cannot be interrupted.
    environment = {**os.environ, "ALLOSAUR_SERVER": str(binary), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", FORGOTTEN], check=True, timeout=60, env=environment)
