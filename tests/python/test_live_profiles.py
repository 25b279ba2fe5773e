"""Named profiles and changes to running traffic on the real server: each profile and stream for itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allosaur import STLClient, STLPktBuilder, STLRpcError, STLStream, STLTXCont, STLTXSingleBurst
from allosaur.api import IP, UDP, Ether
from allosaur.server import LocalServer


def stream(mode: Any, payload_bytes: int = 18, **more: Any) -> STLStream:
    packet = Ether() / IP() / UDP() / bytes(payload_bytes)
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode, **more)


@pytest.fixture
def live(live_server: LocalServer) -> Iterator[STLClient]:
    with live_server.client(username="alice") as connected:
        connected.reset()
        yield connected


def sent_by_size(client: STLClient) -> dict[str, int]:
    """Packets that port 0 sent, by size: the profiles of these tests differ in it."""
    sizes: dict[str, int] = client.get_stats(ports=[0])[0]["tx_by_size"]
    return {size: count for size, count in sizes.items() if count}


def until(condition: Callable[[], bool]) -> None:
    """Wait for what must come; the deadline is only there to end a broken test."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stands_still(client: STLClient) -> bool:
    """Whether a port sends nothing any more: two readings are alike."""
    first = client.get_stats(ports=[0])[0]["opackets"]
    time.sleep(0.1)
    return bool(client.get_stats(ports=[0])[0]["opackets"] == first)


def test_each_profile_ends_by_itself(live: STLClient) -> None:
    live.add_streams(stream(STLTXSingleBurst(total_pkts=30, pps=1000)), ports=["0.small"])
    live.add_streams(stream(STLTXSingleBurst(total_pkts=7, pps=1000), payload_bytes=400), ports=["0.large"])
    live.start(ports=["0.*"])
    live.wait_on_traffic(ports=["0.large"], timeout=30)
    live.wait_on_traffic(timeout=30)
    assert sent_by_size(live) == {"64": 30, "256-511": 7}
    live.start(ports=["0.small"])
    live.wait_on_traffic(timeout=30)
    assert sent_by_size(live) == {"64": 60, "256-511": 7}


def test_one_profile_stops_while_the_other_goes_on(live: STLClient) -> None:
    live.add_streams(stream(STLTXCont(pps=1000)), ports=["0.small"])
    live.add_streams(stream(STLTXCont(pps=1000), payload_bytes=400), ports=["0.large"])
    live.start(ports=["0.small", "0.large"])
    until(lambda: len(sent_by_size(live)) == 2)
    live.stop(ports=["0.large"])
    before = sent_by_size(live)
    until(lambda: sent_by_size(live)["64"] > before["64"] + 50)
    assert sent_by_size(live)["256-511"] == before["256-511"]
    assert live.get_active_ports() == [0]
    live.stop()
    assert live.get_active_ports() == []


def test_pause_resume_and_update(live: STLClient) -> None:
    live.add_streams(stream(STLTXCont(pps=1000)), ports=[0])
    live.start(ports=[0])
    until(lambda: bool(sent_by_size(live)))
    live.pause()
    assert live.get_paused_ports() == [0]
    until(lambda: stands_still(live))
    paused_at = sent_by_size(live)["64"]
    live.update(mult="20kpps")
    assert sent_by_size(live)["64"] == paused_at, "an update does not end a pause"
    live.resume()
    assert live.get_transmitting_ports() == [0]
    until(lambda: sent_by_size(live)["64"] > paused_at + 1000)
    live.stop()


def test_single_streams_pause_and_resume(live: STLClient) -> None:
    small, large = live.add_streams(
        [stream(STLTXCont(pps=1000)), stream(STLTXCont(pps=1000), payload_bytes=400)], ports=[0]
    )
    live.start(ports=[0])
    until(lambda: len(sent_by_size(live)) == 2)
    live.pause_streams(0, [large])
    live.update_streams(0, mult="5kpps", stream_ids=[small])
    before = sent_by_size(live)
    until(lambda: sent_by_size(live)["64"] > before["64"] + 500)
    held = sent_by_size(live)["256-511"]
    until(lambda: sent_by_size(live)["64"] > before["64"] + 1000)
    assert sent_by_size(live)["256-511"] == held
    live.resume_streams(0, [large])
    until(lambda: sent_by_size(live)["256-511"] > held)
    live.stop()


def test_a_burst_cannot_be_paused(live: STLClient) -> None:
    live.add_streams(stream(STLTXSingleBurst(total_pkts=100_000, pps=100)), ports=[0])
    live.start(ports=[0])
    with pytest.raises(STLRpcError, match="port 0: "):
        live.pause()
    assert live.get_transmitting_ports() == [0]
    live.stop()


def test_validate_knows_the_rate_before_it_is_sent(live: STLClient) -> None:
    live.add_streams([stream(STLTXCont(pps=300)), stream(STLTXCont(pps=700), isg=500.0)], ports=["0.a"])
    live.add_streams(stream(STLTXSingleBurst(total_pkts=5000, pps=1000)), ports=[1])
    results = live.validate()
    assert set(results) == {"0.a", 1}
    assert results["0.a"]["rate"]["max_pps"] == pytest.approx(1000)
    assert results["0.a"]["rate"]["max_bps_l2"] == pytest.approx(1000 * 64 * 8)
    assert results["0.a"]["graph"]["expected_duration"] == -1
    assert [event["time_usec"] for event in results["0.a"]["graph"]["events"]][:2] == [0, 500]
    assert results[1]["graph"]["expected_duration"] == pytest.approx(5_000_000, rel=0.001)


def test_another_client_finds_the_profiles(live: STLClient, live_server: LocalServer) -> None:
    live.add_streams([stream(STLTXCont(pps=10), name="x"), stream(STLTXCont(pps=10))], ports=["0.mine"])
    live.start(ports=["0.mine"])
    with live_server.client(username="alice") as other:
        other.acquire(ports=[0], force=True)
        assert [str(place) for place in other.get_profiles_with_state("transmitting")] == ["0.mine"]
        assert other.add_streams(stream(STLTXCont(pps=10)), ports=["0.theirs"]) == 3
        other.stop()
        other.remove_all_streams()
        assert other.get_port_attr(0)["status"] == "IDLE"
