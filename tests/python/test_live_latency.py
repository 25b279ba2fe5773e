"""Latency beside stateful traffic, on a real server with in-memory ports: echo requests, and messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient, STLError
from allosaur.server import LocalServer

PROFILES = Path(__file__).resolve().parent.parent.parent / "profiles" / "stateful"
DELAY_US = 200


@pytest.fixture(params=[1, 2])
def live(request: pytest.FixtureRequest, fits_the_schema: None) -> Iterator[Any]:
    """A client of a server with so many data threads, and a link that takes its time."""
    ports = [f"memory:delay={DELAY_US}us"] * 2
    with LocalServer(ports=ports, cores=request.param, stateful=True) as server, server.client() as client:
        client.reset()
        yield client


def stats_when(client: ASTFClient, is_enough: Callable[[dict[int, Any]], bool]) -> dict[int, Any]:
    """What the ports measured, as soon as it is enough."""
    deadline = time.monotonic() + 30
    while not is_enough(stats := client.get_latency_stats()):
        assert time.monotonic() < deadline, stats
        time.sleep(0.02)
    return stats


def have_received(packets: int) -> Callable[[dict[int, Any]], bool]:
    return lambda stats: all(port["stats"]["m_pkt_ok"] >= packets for port in stats.values())


def all_came(stats: dict[int, Any]) -> bool:
    """What each port sent has arrived at the other."""
    client, server = stats[0]["stats"], stats[1]["stats"]
    sent, received = ("m_tx_pkt_ok", "m_pkt_ok")
    return bool(client[sent] == server[received] and server[sent] == client[received])


def test_both_ports_measure_what_the_link_takes(live: ASTFClient) -> None:
    assert live.get_latency_stats() == {}
    live.start_latency(mult=200)
    with pytest.raises(STLError, match="stop_latency first"):
        live.start_latency(mult=200)
    stats_when(live, have_received(20))
    live.update_latency(mult=2000)
    stats_when(live, have_received(500))
    live.stop_latency()
    for port in stats_when(live, all_came).values():
        hist, stats = port["hist"], port["stats"]
        assert DELAY_US <= hist["min_usec"] <= hist["p50"] <= hist["max_usec"] + 1
        assert sum(bucket["val"] for bucket in hist["histogram"]) == hist["cnt"] == stats["m_pkt_ok"]
        assert stats["m_seq_error"] == stats["dropped"] == stats["duplicates"] == 0
    with pytest.raises(STLError, match="start_latency first"):
        live.update_latency(mult=1)


@pytest.mark.alone  # times to the microsecond
def test_a_profile_is_measured_beside_and_in_its_messages(live: ASTFClient) -> None:
    live.load_profile(PROFILES / "udp_latency.py", {"count": 10, "gap_usec": 1000})
    live.start(mult=20, duration=1, latency_pps=100)
    live.wait_on_traffic(timeout=30)
    stats = live.get_stats()
    assert live.is_traffic_stats_error(stats["traffic"]) == (False, {"client": {}, "server": {}})
    ports = stats_when(live, all_came)
    asked = ports[0]["stats"]
    assert 0 < asked["m_tx_pkt_ok"] <= 100 and asked["m_tx_pkt_ok"] + asked["m_tx_pkt_err"] == 100
    group = live.get_traffic_tg_stats(["latency"])["latency"]
    client, server = group["client"], group["server"]
    assert client["measure_cnt"] == client["total_pkts"] == client["udps_rcvpkt"] == server["total_pkts"]
    assert 2 * DELAY_US <= client["min_time"] <= client["max_time"]
    assert client["min_time"] * client["measure_cnt"] <= client["total_time"]
    assert live.get_dynamic_traffic_stats()["client"]["measure_cnt"] == client["measure_cnt"]


def test_each_pair_of_ports_has_addresses_of_its_own() -> None:
    with LocalServer(ports=["memory"] * 4, cores=2, stateful=True) as server, server.client() as client:
        assert isinstance(client, ASTFClient)
        client.reset()
        with pytest.raises(STLError, match=r"pair 1 of ports are beyond the last.*'dual_port_addr'"):
            client.start_latency(src_ipv4="255.0.0.1")
        client.set_service_mode(enabled=True)
        client.start_capture(tx_ports=[0, 2], limit=1000, bpf_filter="icmp")
        client.start_latency(mult=200, dual_ipv4="1.0.0.0", port_ipv4_offset_s="0.0.2.0")
        stats_when(client, have_received(20))
        client.stop_latency()
        packets: list[dict[str, Any]] = []
        (capture,) = client.get_capture_status()
        client.fetch_capture_packets(capture, packets)
        client.stop_capture(capture)
    seen = {packet["port"]: (packet["binary"][26:30], packet["binary"][30:34]) for packet in packets}
    assert seen == {
        0: (bytes([16, 0, 0, 1]), bytes([48, 0, 0, 1])),
        2: (bytes([17, 0, 0, 1]), bytes([48, 0, 2, 1])),
    }


def test_wrong_terms_are_refused_by_name(live: ASTFClient) -> None:
    with pytest.raises(STLError, match=r"'mask'.*set the bit"):
        live.start_latency(ports_mask=4)
    with pytest.raises(STLError, match="'mult' is 0"):
        live.start_latency(mult=0)
    with pytest.raises(STLError, match=r"'dst_addr'.*no host"):
        live.start_latency(dst_ipv4="224.0.0.1")
    assert live.get_latency_stats() == {}
