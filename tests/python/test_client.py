"""The client against a mock server: order of requests, states, errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from allosaur import (
    PortProfileID,
    STLArgumentError,
    STLClient,
    STLConnectionError,
    STLError,
    STLPktBuilder,
    STLRpcError,
    STLStream,
    STLTimeoutError,
    STLTXCont,
    STLTXSingleBurst,
)
from allosaur.rpc._events import EventType
from allosaur.testing import MockTransport


def stream(name: str | None = None, **more: object) -> STLStream:
    mode = STLTXSingleBurst(total_pkts=5, pps=100) if "next" in more else STLTXCont(pps=100)
    return STLStream(name=name, packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=mode, **more)


@pytest.fixture
def ready(client: STLClient) -> STLClient:
    """A client that owns both ports, each with one stream."""
    client.reset()
    client.add_streams(stream("S0"), ports=[0, 1])
    return client


def eventually(condition: Callable[[], bool], client: STLClient) -> bool:
    """Whether the client's event thread makes it true (the wait is bounded, not timed)."""
    session = client._connection.session()
    return session.wait(condition, timeout_s=10)


def test_connect_shakes_hands_and_knows_the_ports(client: STLClient, transport: MockTransport) -> None:
    assert transport.methods()[0] == "api_sync_v2"
    assert transport.requests("api_sync_v2") == [{"name": "STL", "major": 5, "minor": 1}]
    assert all(params["api_h"] == "mock" for method, params in transport.calls if method != "api_sync_v2")
    assert client.is_connected()
    assert client.get_all_ports() == [0, 1]
    assert client.get_acquired_ports() == []


def test_a_client_that_is_not_connected_says_so(transport: MockTransport) -> None:
    client = STLClient(transport=transport)
    assert not client.is_connected()
    assert client.get_acquired_ports() == []
    assert client.get_warnings() == []
    client.disconnect()
    for method in (
        client.get_all_ports,
        client.get_stats,
        client.reset,
        client.start,
        client.ping_rpc_server,
    ):
        with pytest.raises(STLConnectionError, match=r"call connect\(\) first"):
            method()


def test_connect_again_starts_a_new_session(client: STLClient) -> None:
    client.acquire()
    client.connect()
    assert client.get_acquired_ports() == []


def test_a_handshake_that_is_refused_leaves_nothing_behind(transport: MockTransport) -> None:
    transport.refuse("api_sync_v2", "Version mismatch: your client version is too new")
    threads_before = threading.active_count()
    client = STLClient(transport=transport)
    with pytest.raises(STLRpcError, match="too new"):
        client.connect()
    assert not client.is_connected()
    assert threading.active_count() == threads_before


def test_disconnect_stops_and_releases_what_is_ours(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    ready.disconnect()
    assert [params["port_id"] for params in transport.requests("stop_traffic")] == [0]
    assert [params["port_id"] for params in transport.requests("release")] == [0, 1]
    assert not ready.is_connected()
    assert any("has started" in event.msg for event in ready.get_events()), "the log can be read afterwards"


def test_disconnect_can_leave_the_traffic_alone(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    ready.disconnect(stop_traffic=False, release_ports=False)
    assert "stop_traffic" not in transport.methods()
    assert "release" not in transport.methods()


def test_acquire_of_a_taken_port_names_port_and_owner(transport: MockTransport) -> None:
    with STLClient(username="bob", transport=transport) as bob:
        bob.acquire([1])
        alice = STLClient(username="alice", transport=transport)
        alice.connect()
        with pytest.raises(STLRpcError, match="port 1: port is already taken by 'bob'"):
            alice.acquire()
        assert alice.get_acquired_ports() == [0], "the free port stays ours"
        alice.disconnect()


def test_a_port_that_another_takes_is_ours_no_more(client: STLClient, transport: MockTransport) -> None:
    client.acquire()
    transport.publish(EventType.PORT_ACQUIRED, port_id=0, who="bob", session_id=7, force=True)
    assert eventually(lambda: client.get_acquired_ports() == [1], client)
    assert [event.msg for event in client.get_warnings()] == ["Port 0 was forcely taken by 'bob'"]
    with pytest.raises(STLError, match=r"port\(s\) \[0\]: must be acquired"):
        client.start(ports=[0])


def test_acquire_learns_the_streams_that_a_port_has(ready: STLClient, transport: MockTransport) -> None:
    again = STLClient(username="carol", transport=transport)
    again.connect()
    again.acquire(force=True)
    assert again.add_streams(stream("S1"), ports=[0]) == 2
    again.disconnect()


def test_reset_leaves_clean_ports(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    ready.reset(ports=[0])
    assert transport.streams(0) == {}
    assert list(transport.streams(1)) == [1], "other ports are left alone"
    assert ready.get_active_ports() == []
    with pytest.raises(STLError, match=r"port\(s\) \[0\] have no streams: call add_streams\(\) first"):
        ready.start(ports=[0])


@pytest.mark.parametrize("ports", [2, [0, 2], "2", "2._"])
def test_an_unknown_port_is_named(ready: STLClient, ports: object) -> None:
    with pytest.raises(STLArgumentError, match="'ports' cannot be 2: give ports of the server: 0, 1"):
        ready.start(ports=ports)


@pytest.mark.parametrize("ports", ["x", "0.a.b", [None], 1.5, True, []])
def test_ports_that_are_no_ports_are_refused(ready: STLClient, ports: object) -> None:
    with pytest.raises(STLArgumentError, match="ports"):
        ready.start(ports=ports)


@pytest.mark.parametrize(
    "ports", [0, "0", "0._", [0], ["0"], (0,), {0}, range(1), PortProfileID("0"), [0, 0]]
)
def test_ports_can_be_written_in_many_ways(ready: STLClient, transport: MockTransport, ports: object) -> None:
    ready.start(ports=ports)
    assert [params["port_id"] for params in transport.requests("start_traffic")] == [0]


def test_streams_get_the_same_numbers_on_all_ports(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    assert client.add_streams(stream(), ports=[0]) == 1
    assert client.add_streams([stream("a"), stream("b")], ports=[0, 1]) == [2, 3]
    assert client.add_streams(stream(), ports=[1]) == 4
    assert list(transport.streams(0)) == [1, 2, 3]
    assert list(transport.streams(1)) == [2, 3, 4]


def test_next_becomes_the_number_of_the_stream(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    client.add_streams([stream("first", next="second"), stream("second", self_start=False)], ports=[0])
    sent = transport.streams(0)
    assert (sent[1]["next_stream_id"], sent[2]["next_stream_id"]) == (2, -1)
    client.add_streams(stream("third", next="first"), ports=[0])
    assert transport.streams(0)[3]["next_stream_id"] == 1, "streams that are already there can follow"


def test_next_to_nowhere_names_the_stream(client: STLClient) -> None:
    client.reset()
    with pytest.raises(
        STLError, match="stream 'first': next='gone' is not a stream's name, known are: first"
    ):
        client.add_streams([stream("first", next="gone")])


def test_two_streams_of_one_name_are_refused(client: STLClient) -> None:
    client.reset()
    with pytest.raises(STLError, match="two streams have the name 'twin'"):
        client.add_streams([stream("twin"), stream("twin")])


def test_a_number_that_is_in_use_is_refused(ready: STLClient) -> None:
    assert ready.add_streams(stream(stream_id=9), ports=[0]) == 9
    assert ready.add_streams(stream(), ports=[0]) == 10
    with pytest.raises(STLArgumentError, match="'stream_id' cannot be 9"):
        ready.add_streams(stream(stream_id=9), ports=[0])


def test_a_refused_stream_is_named(client: STLClient, transport: MockTransport) -> None:
    client.reset()
    transport.refuse("add_stream", "field 'vm' is wrong")
    with pytest.raises(STLRpcError, match="port 0, stream 'S0': field 'vm' is wrong"):
        client.add_streams(stream("S0"))
    with pytest.raises(STLRpcError, match="port 0, stream 1: field"):
        client.add_streams(stream())


def test_remove_streams_by_number(ready: STLClient, transport: MockTransport) -> None:
    ready.add_streams(stream("S1"), ports=[0])
    ready.remove_streams([2], ports=[0])
    assert list(transport.streams(0)) == [1]
    with pytest.raises(STLArgumentError, match="'stream_id_list' cannot be 2"):
        ready.remove_streams(2, ports=[0])
    ready.remove_streams(1, ports=[0, 1])
    assert transport.streams(0) == transport.streams(1) == {}


def test_start_sends_what_the_protocol_wants(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0], mult="5mpps", duration=10)
    (params,) = transport.requests("start_traffic")
    handler = params.pop("handler")
    assert handler.startswith("handler-0-")
    assert params == {
        "api_h": "mock",
        "port_id": 0,
        "profile_id": "_",
        "mul": {"type": "pps", "value": 5e6, "op": "abs"},
        "duration": 10,
        "force": False,
        "core_mask": 18446744073709551615,
        "start_at_ts": 0,
    }


def test_total_shares_the_rate_among_the_ports(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0, 1], mult="10kpps", total=True)
    assert [params["mul"]["value"] for params in transport.requests("start_traffic")] == [5000, 5000]


def test_synchronized_ports_start_at_one_time(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0, 1], synchronized=True)
    times = {params["start_at_ts"] for params in transport.requests("start_traffic")}
    assert len(times) == 1
    assert times.pop() > 1.0


def test_either_all_ports_start_or_none(ready: STLClient, transport: MockTransport) -> None:
    def only_port_0(params: dict[str, Any]) -> dict[str, float]:
        if params["port_id"] == 0:
            return {"multiplier": 1.0, "ts": 1.0}
        raise STLRpcError("start_traffic", -32000, "Link state is DOWN.")

    transport.answer("start_traffic", only_port_0)
    with pytest.raises(STLRpcError, match=r"port 1: Link state is DOWN\."):
        ready.start()
    assert [params["port_id"] for params in transport.requests("stop_traffic")] == [0]
    assert ready.get_active_ports() == []


def test_a_port_that_sends_is_not_started_again(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    with pytest.raises(
        STLError, match=r"port\(s\) \[0\] already send: call stop\(\) first, or give force=True"
    ):
        ready.start(ports=[0])
    ready.start(ports=[0], force=True)
    assert transport.methods().count("start_traffic") == 2
    assert ready.get_active_ports() == [0]


def test_wait_on_traffic_is_woken_by_the_event(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0, 1])
    before = len(transport.calls)
    ending = threading.Thread(target=lambda: (transport.finish(0), transport.finish(1)))
    ending.start()
    ready.wait_on_traffic()
    ending.join()
    assert not ready.is_traffic_active()
    assert set(transport.methods()[before:]) == {"get_async_events"}, "waiting asks for nothing but events"


def test_a_wait_without_end_looks_up_when_nobody_wakes_it(ready: STLClient) -> None:
    """A signal that comes just before the thread waits is seen late, but it is seen."""
    ready.start(ports=[0])
    looks = []

    def interrupted() -> bool:
        looks.append(None)
        if len(looks) > 1:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        ready._connection.session().wait(interrupted, None)


def test_a_run_that_ends_before_its_reply_does_not_hang() -> None:
    transport = MockTransport(auto_finish=True)
    with STLClient(transport=transport) as client:
        client.reset()
        client.add_streams(stream(), ports=[0])
        for _ in range(50):
            client.start(ports=[0], duration=0.001)
            client.wait_on_traffic(ports=[0], timeout=10)


def test_wait_on_traffic_gives_up_after_its_timeout(ready: STLClient) -> None:
    ready.start(ports=[0])
    with pytest.raises(
        STLTimeoutError, match=r"the traffic on port\(s\) \[0\] did not finish within 0\.01 seconds"
    ):
        ready.wait_on_traffic(timeout=0.01)


def test_a_server_that_goes_away_ends_the_wait(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    transport.lose_connection()
    with pytest.raises(STLConnectionError, match="went away"):
        ready.wait_on_traffic(timeout=10)
    assert not ready.is_connected()
    with pytest.raises(STLConnectionError, match=r"connect\(\) again"):
        ready.get_stats()
    ready.disconnect()


def test_a_server_that_hangs_is_reported_and_then_recovers(
    ready: STLClient, transport: MockTransport
) -> None:
    with (
        transport.silence(),
        pytest.raises(STLConnectionError, match="no answer from mock://server within 3 s"),
    ):
        ready.get_stats()
    assert ready.get_stats()["total"]["opackets"] == 0


def test_a_server_that_was_restarted_is_not_mistaken_for_the_old_one(
    ready: STLClient, transport: MockTransport
) -> None:
    ready.start(ports=[0])
    transport.refuse("get_async_events", "API verification failed")
    transport.publish(EventType.PORT_STARTED, port_id=0)
    with pytest.raises(STLConnectionError, match="went away: API verification failed"):
        ready.wait_on_traffic(timeout=10)


def test_a_slow_answer_to_the_bell_is_asked_for_again(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[0])
    with transport.silence():
        transport.publish(EventType.PORT_PAUSED, port_id=0)
        transport.finish(0)
        with pytest.raises(STLTimeoutError):
            ready.wait_on_traffic(timeout=0.1)
    transport.publish(EventType.PORT_ATTRIBUTE, port_id=1)
    ready.wait_on_traffic(timeout=10)


def test_server_stopped_is_a_warning(client: STLClient, transport: MockTransport) -> None:
    transport.publish(EventType.SERVER_STOPPED, cause="shutdown requested")
    assert eventually(lambda: not client.is_connected(), client)
    assert "shutdown requested" in client.get_warnings()[0].msg


def test_an_event_of_an_unknown_kind_is_logged(client: STLClient, transport: MockTransport) -> None:
    transport.publish(4711, port_id=0)
    client._connection.session().drain_events()
    assert "unknown kind 4711" in client.get_warnings()[0].msg


def test_stop_without_ports_stops_what_sends(ready: STLClient, transport: MockTransport) -> None:
    ready.start(ports=[1])
    ready.stop()
    assert [params["port_id"] for params in transport.requests("stop_traffic")] == [1]
    assert not ready.is_traffic_active()


def test_set_port_attr(ready: STLClient, transport: MockTransport) -> None:
    ready.set_port_attr([0], promiscuous=True, multicast=False)
    attributes = transport.requests("set_port_attr")[-1]["attr"]
    assert attributes == {"promiscuous": {"enabled": True}, "multicast": {"enabled": False}}
    assert ready.get_port_attr(0)["prom"] == "on"
    before = len(transport.requests("set_port_attr"))
    ready.set_port_attr([0], promiscuous=None)
    assert len(transport.requests("set_port_attr")) == before
    for wrong in ({"flow_ctrl": 4}, {"vxlan_fs": [70_000]}, {"link_up": 1}):
        with pytest.raises(STLArgumentError, match=f"'{next(iter(wrong))}' cannot be"):
            ready.set_port_attr([0], **wrong)  # type: ignore[arg-type]
    with pytest.raises(STLArgumentError, match="promiscuous"):
        ready.set_port_attr([0], promiscuous="yes")  # type: ignore[arg-type]


def test_port_info_has_owner_and_state(ready: STLClient) -> None:
    info = ready.get_port_info()
    assert [(port["index"], port["owner"], port["status"]) for port in info] == [
        (0, "alice", "IDLE"),
        (1, "alice", "IDLE"),
    ]


def test_shutdown_and_ping(client: STLClient, transport: MockTransport) -> None:
    assert client.ping_rpc_server() == {"ts": 1.0}
    client.server_shutdown(force=True)
    assert transport.requests("shutdown") == [{"user": "alice", "force": True, "api_h": "mock"}]


def test_the_event_thread_ends_with_the_connection(transport: MockTransport) -> None:
    before = threading.active_count()
    with STLClient(transport=transport):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
