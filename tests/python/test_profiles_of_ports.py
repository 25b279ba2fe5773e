"""Named profiles of a port, and what can be changed while traffic runs, against a mock server."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from allosaur import (
    PortProfileID,
    STLArgumentError,
    STLClient,
    STLError,
    STLFlowStats,
    STLPktBuilder,
    STLRpcError,
    STLStream,
    STLTimeoutError,
    STLTXCont,
    STLTXSingleBurst,
)
from allosaur.rpc._events import EventType
from allosaur.testing import MockTransport


def stream(name: str | None = None, **more: Any) -> STLStream:
    mode = STLTXSingleBurst(total_pkts=5, pps=100) if "next" in more else STLTXCont(pps=100)
    return STLStream(name=name, packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=mode, **more)


@pytest.fixture
def ready(client: STLClient) -> STLClient:
    """Port 0 has its default profile, "voice" and "video"; port 1 only its default."""
    client.reset()
    for place in (0, 1, "0.voice", "0.video"):
        client.add_streams(stream(), ports=[place])
    return client


def asked(transport: MockTransport, method: str) -> list[str]:
    """Port and profile of each request."""
    return [f"{params['port_id']}.{params['profile_id']}" for params in transport.requests(method)]


def active(client: STLClient) -> list[str]:
    return [str(place) for place in client.get_profiles_with_state("active")]


def test_a_place_is_written_in_many_ways() -> None:
    place = PortProfileID("3.voice")
    assert (place.port_id, place.profile_id, place.profile_name, str(place)) == (
        3,
        "voice",
        "3.voice",
        "3.voice",
    )
    assert PortProfileID(3) == PortProfileID("3") == PortProfileID("3._") != place
    for wrong in ("voice", "*", "0.a.b", "-1", ""):
        with pytest.raises(STLArgumentError, match=r"a port number, or '0\.name'"):
            PortProfileID(wrong)


def test_a_profile_is_made_by_its_first_stream(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    assert client.add_streams([stream("a"), stream("b")], ports=["0.voice", 1]) == [1, 2]
    assert client.add_streams(stream("a"), ports=["0.video"]) == 3, (
        "numbers are the port's, not the profile's"
    )
    assert list(transport.streams(0, "voice")) == [1, 2]
    assert list(transport.streams(0, "video")) == [3]
    assert list(transport.streams(1)) == [1, 2]
    assert transport.streams(0) == {}


def test_next_is_a_name_of_the_same_profile(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    client.add_streams(stream("a"), ports=["0.voice"])
    client.add_streams(stream("b", next="a"), ports=["0.voice"])
    assert transport.streams(0, "voice")[2]["next_stream_id"] == 1
    with pytest.raises(STLError, match="next='a' is not a stream's name"):
        client.add_streams(stream("c", next="a"), ports=["0.video"])


def test_streams_are_added_to_one_profile_at_a_time(ready: STLClient) -> None:
    with pytest.raises(
        STLArgumentError, match=r"cannot be '0\.\*': give one profile to add to, like '0.name'"
    ):
        ready.add_streams(stream(), ports=["0.*"])


def test_profiles_start_and_stop_by_themselves(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice"], mult="1kpps")
    ready.start(ports=["0.video", 0])
    assert asked(transport, "start_traffic") == ["0.voice", "0.video", "0._"]
    assert active(ready) == ["0._", "0.voice", "0.video"]
    ready.stop(ports=["0.voice"])
    assert active(ready) == ["0._", "0.video"]
    assert ready.get_active_ports() == [0]
    ready.stop(ports=[0])
    assert active(ready) == ["0.video"], "a number is the default profile"
    ready.stop()
    assert asked(transport, "stop_traffic") == ["0.voice", "0._", "0.video"]
    assert ready.get_active_ports() == []


def test_without_ports_the_default_profiles_start(ready: STLClient, transport: MockTransport) -> None:
    ready.start()
    assert asked(transport, "start_traffic") == ["0._", "1._"]


def test_a_star_is_every_profile_with_streams(ready: STLClient, transport: MockTransport) -> None:
    ready.remove_all_streams(ports=[0])
    ready.start(ports=["0.*"], total=True, mult="10kpps")
    assert asked(transport, "start_traffic") == ["0.voice", "0.video"]
    assert {params["mul"]["value"] for params in transport.requests("start_traffic")} == {5000}
    ready.stop(ports=["0.*", "1.*"])
    assert ready.get_active_ports() == []


def test_an_unknown_profile_is_named_with_those_there_are(ready: STLClient) -> None:
    for act in (ready.start, ready.stop, ready.pause, ready.update, ready.remove_all_streams):
        with pytest.raises(
            STLArgumentError, match=r"cannot be '0\.x': give a profile of the port: '0\._', '0\.v"
        ):
            act(ports=["0.x"])


def test_a_port_alone_has_no_profile(ready: STLClient) -> None:
    with pytest.raises(STLArgumentError, match="this is about a port, not one of its profiles"):
        ready.set_port_attr(ports=["0.voice"], promiscuous=True)


def test_an_empty_profile_does_not_start(ready: STLClient) -> None:
    ready.remove_all_streams(ports=["0.voice"])
    with pytest.raises(STLError, match=r"port\(s\) \['0.voice'\] have no streams"):
        ready.start(ports=["0.voice"])


def test_force_stops_only_the_profile(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.*"])
    with pytest.raises(STLError, match=r"port\(s\) \['0.voice'\] already send"):
        ready.start(ports=["0.voice"])
    ready.start(ports=["0.voice"], force=True)
    assert asked(transport, "stop_traffic") == ["0.voice"]


def test_waiting_for_a_profile_and_for_the_whole_port(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice", "0.video"])
    with pytest.raises(STLTimeoutError):
        ready.wait_on_traffic(ports=["0.voice"], timeout=0)
    transport.finish(0, "voice")
    ready.wait_on_traffic(ports=["0.voice"], timeout=10)
    assert ready.is_traffic_active(ports=[0])
    assert ready.is_traffic_active()
    assert not ready.is_traffic_active(ports=["0.voice"])
    with pytest.raises(STLTimeoutError):
        ready.wait_on_traffic(ports=[0], timeout=0)
    threading.Timer(0.01, transport.finish, (0, "video")).start()
    ready.wait_on_traffic(ports=[0], timeout=10)
    assert not ready.is_traffic_active()


def test_streams_are_removed_from_their_profile(ready: STLClient, transport: MockTransport) -> None:
    (number,) = transport.streams(0, "voice")
    with pytest.raises(STLArgumentError, match=rf"'stream_id_list' cannot be {number}"):
        ready.remove_streams(number, ports=["0.video"])
    ready.remove_streams([number], ports=["0.voice"])
    assert transport.streams(0, "voice") == {}
    ready.remove_all_streams()
    assert asked(transport, "remove_all_streams") == ["0._", "0.video", "1._"]
    assert ready.get_profiles_with_state("streams") == []


def test_reset_is_about_all_profiles(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.*"])
    ready.reset()
    assert asked(transport, "stop_traffic") == ["0.*"]
    assert asked(transport, "remove_all_streams") == ["0.*", "1.*"]
    assert ready.get_port_info()[0]["stream_count"] == 0


def test_disconnect_stops_all_profiles(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice"])
    ready.disconnect()
    assert asked(transport, "stop_traffic") == ["0.*"]


def test_acquire_learns_all_profiles(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice"])
    ready.disconnect(stop_traffic=False)
    with STLClient(username="alice", transport=transport) as again:
        again.acquire(force=True)
        assert [str(place) for place in again.get_profiles_with_state("transmitting")] == ["0.voice"]
        assert again.add_streams(stream(), ports=["0.video"]) == 4
        again.stop()


def test_the_refusal_names_the_profile(ready: STLClient, transport: MockTransport) -> None:
    transport.refuse("start_traffic", "the sky is falling")
    with pytest.raises(STLRpcError, match=r"port 0\.voice: the sky is falling"):
        ready.start(ports=["0.voice"])
    with pytest.raises(STLRpcError, match="port 1: the sky is falling"):
        ready.start(ports=[1])
    assert ready.get_active_ports() == []


def test_counting_ends_for_the_profile_that_counts(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    client.add_streams(stream(flow_stats=STLFlowStats(pg_id=5)), ports=["0.counted"])
    client.add_streams(stream(), ports=[0])
    client.start(ports=["0.*"])
    client.stop(rx_delay_ms=0)
    assert asked(transport, "remove_rx_filters") == ["0.counted"]


def test_pause_and_resume(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice", "0.video", 1])
    ready.pause(ports=["0.voice"])
    assert [str(place) for place in ready.get_profiles_with_state("paused")] == ["0.voice"]
    assert ready.get_transmitting_ports() == [0, 1]
    ready.pause()
    assert asked(transport, "pause_traffic") == ["0.voice", "0.video", "1._"]
    assert (ready.get_paused_ports(), ready.get_transmitting_ports()) == ([0, 1], [])
    assert ready.get_active_ports() == [0, 1], "paused traffic has not ended"
    with pytest.raises(STLError, match="none of our ports is transmitting: call start"):
        ready.pause()
    ready.resume(ports=["0.*"])
    assert asked(transport, "resume_traffic") == ["0.voice", "0.video"]
    ready.resume()
    assert asked(transport, "resume_traffic")[2:] == ["1._"]
    assert ready.get_transmitting_ports() == [0, 1]
    with pytest.raises(STLError, match="none of our ports is paused"):
        ready.resume()


def test_a_pause_that_the_server_refuses(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0, 1])
    transport.refuse("pause_traffic", "stream 1 is a burst")
    with pytest.raises(STLRpcError, match="port 0: stream 1 is a burst"):
        ready.pause()
    assert ready.get_transmitting_ports() == [0, 1]
    transport.allow("pause_traffic")
    with pytest.raises(STLRpcError, match="cannot be executed on current state: 'STREAMS on profile_id"):
        ready.pause(ports=["0.voice"])


def test_paused_elsewhere_is_paused_here(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=["0.voice"])
    transport.publish(EventType.PROFILE_PAUSED, port_id=0, profile_id="voice")
    transport.publish(EventType.PORT_PAUSED, port_id=0)
    assert ready._connection.session().wait(lambda: ready.get_paused_ports() == [0], timeout_s=10)


@pytest.mark.parametrize(
    ("mult", "expected"),
    [
        ("5kpps", {"type": "pps", "value": 5000, "op": "abs"}),
        ("5kpps+", {"type": "pps", "value": 5000, "op": "add"}),
        ("10%-", {"type": "percentage", "value": 10, "op": "sub"}),
        (2, {"type": "raw", "value": 2, "op": "abs"}),
    ],
)
def test_update(ready: STLClient, transport: MockTransport, mult: Any, expected: dict[str, Any]) -> None:
    ready.start(ports=["0.voice", 1])
    ready.update(mult=mult, force=True)
    assert asked(transport, "update_traffic") == ["0.voice", "1._"]
    assert [(params["mul"], params["force"]) for params in transport.requests("update_traffic")] == [
        (expected, True)
    ] * 2
    ready.update(ports=["0.voice", 1], mult="5kpps", total=True)
    assert transport.requests("update_traffic")[-1]["mul"]["value"] == 2500


def test_nothing_to_update(ready: STLClient) -> None:
    with pytest.raises(STLError, match="none of our ports is active: call start"):
        ready.update(mult="1kpps")
    for start in (ready.start, lambda mult: ready.update_streams(0, mult, stream_ids=[1])):
        with pytest.raises(STLArgumentError, match=r"'mult' cannot be '5kpps\+'"):
            start(mult="5kpps+")


def test_single_streams(ready: STLClient, transport: MockTransport) -> None:
    ready.add_streams(stream("second"), ports=["0.voice"])
    numbers = list(transport.streams(0, "voice"))
    ready.start(ports=["0.voice"])
    ready.pause_streams("0.voice", numbers)
    ready.update_streams(PortProfileID("0.voice"), mult="2kpps", stream_ids=numbers[1])
    ready.resume_streams(port="0.voice", stream_ids=numbers[:1])
    assert [params["stream_ids"] for params in transport.requests("pause_streams")] == [numbers]
    assert [params["stream_ids"] for params in transport.requests("resume_streams")] == [numbers[:1]]
    (update,) = transport.requests("update_streams")
    assert (update["stream_ids"], update["mul"], update["force"]) == (
        numbers[1:],
        {"type": "pps", "value": 2000, "op": "abs"},
        False,
    )
    assert ready.get_transmitting_ports() == [0], "the port is not paused when its streams are"


@pytest.mark.parametrize("numbers", [[], [99], None, [True], "1"])
def test_streams_that_are_not_there(ready: STLClient, numbers: Any) -> None:
    ready.start(ports=["0.voice"])
    with pytest.raises(
        STLArgumentError, match=r"'stream_ids' cannot be .*: give numbers of streams, there are"
    ):
        ready.pause_streams("0.voice", numbers)


def test_single_streams_are_of_one_profile(ready: STLClient) -> None:
    with pytest.raises(STLArgumentError, match="give one profile of one port"):
        ready.pause_streams("0.*", [1])


def test_validate_gives_what_the_server_computes(ready: STLClient, transport: MockTransport) -> None:
    transport.answer("validate", lambda params: {"rate": {"max_pps": len(params["profile_id"])}, "graph": {}})
    rates = {place: result["rate"]["max_pps"] for place, result in ready.validate().items()}
    assert rates == {0: 1, "0.voice": 5, "0.video": 5, 1: 1}
    assert list(ready.validate(ports=[0])) == [0]
    transport.refuse("validate", "stream 1: next is nowhere")
    with pytest.raises(STLRpcError, match=r"port 0\.voice: stream 1: next is nowhere"):
        ready.validate(ports=["0.voice"])


def test_a_capture_leaves_other_profiles_alone(
    ready: STLClient, transport: MockTransport, tmp_path: Any
) -> None:
    from allosaur.api import IP, Ether, wrpcap

    wrpcap(str(tmp_path / "x.pcap"), [Ether() / IP() / bytes(30)])
    ready.start(ports=["0.voice"])
    ready.push_pcap(tmp_path / "x.pcap", ports=[0])
    assert active(ready) == ["0._", "0.voice"]
    assert list(transport.streams(0)) == [4]
