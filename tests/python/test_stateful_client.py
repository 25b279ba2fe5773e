"""The stateful client against a mock server: owning, profiles and their states, counters, topology."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    ASTFClient,
    ASTFError,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    ASTFTopology,
    STLArgumentError,
    STLClient,
    STLConnectionError,
    STLError,
    STLPktBuilder,
    STLProfileError,
    STLRpcError,
    STLStream,
    STLTimeoutError,
    STLTXCont,
    TopoGW,
    TopoVIF,
)
from allosaur.stateful.client._tunnels import Tunnel
from allosaur.testing import MockStatefulTransport, MockTransport


@pytest.fixture
def mock() -> MockStatefulTransport:
    return MockStatefulTransport()


@pytest.fixture
def client(mock: MockStatefulTransport) -> Iterator[ASTFClient]:
    """A client that is connected to the mock and owns it."""
    with ASTFClient(username="alice", transport=mock) as connected:
        connected.acquire()
        yield connected


def profile(size: int = 10, groups: tuple[str, ...] = ()) -> ASTFProfile:
    ip_gen = ASTFIPGen(ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"]))
    client, server = ASTFProgram(), ASTFProgram()
    client.send("x", size=size, fill="y")
    server.recv(size)
    templates = []
    for number, group in enumerate(groups or (None,)):
        made = ASTFTemplate(
            ASTFTCPClientTemplate(ip_gen, program=client, port=80 + number),
            ASTFTCPServerTemplate(server),
            tg_name=group,
        )
        made.server_template.assoc.rules[0].port = 80 + number
        templates.append(made)
    return ASTFProfile(ip_gen, templates=templates)


def owned(mock: MockStatefulTransport) -> list[str]:
    """The requests that changed something since the server was taken."""
    start = mock.methods().index("acquire")
    return [
        name
        for name in mock.methods()[start:]
        if not name.startswith(("get_", "sync", "publish", "topo_get"))
    ]


def test_a_run_from_beginning_to_end(mock: MockStatefulTransport) -> None:
    with ASTFClient(transport=mock) as client:
        client.reset()
        client.load_profile(profile())
        assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
        client.start(mult=5, duration=10)
        assert client.get_profiles_state() == {"_": "STATE_TX"}
        assert client.is_traffic_active()
        assert client.get_active_ports() == [0, 1]
        mock.end_profile()
        client.wait_on_traffic(timeout=5)
        assert not client.is_traffic_active()
        assert client.get_active_ports() == []
        client.clear_profile()
        assert client.get_profiles_state() == {"_": "STATE_IDLE"}
    assert owned(mock) == [
        *["acquire", "stop_latency", "profile_clear", "set_port_attr", "set_port_attr"],
        *["set_rx_feature", "set_rx_feature", "capture", "profile_fragment", "start"],
        *["profile_clear", "release"],
    ]


def test_the_server_runs_in_another_mode() -> None:
    with pytest.raises(STLError, match="runs in STL mode: this client is for stateful traffic"):
        ASTFClient(transport=MockTransport()).connect()
    with pytest.raises(STLError, match="runs in ASTF mode: this client is for stateless traffic"):
        STLClient(transport=MockStatefulTransport()).connect()


def test_another_kind_of_server_says_so_at_once(mock: MockStatefulTransport) -> None:
    text = "RPC configuration mismatch - server RPC configuration: 'STL', client RPC configuration: 'ASTF'"
    mock.refuse("api_sync_v2", text)
    with pytest.raises(STLError, match=r"not for stateful traffic .*configuration: 'STL'.*use STLClient"):
        ASTFClient(transport=mock).connect()
    mock.refuse("api_sync_v2", "RPC version mismatch: a newer client version is required")
    with pytest.raises(STLRpcError, match="newer client"):
        ASTFClient(transport=mock).connect()


def test_there_is_one_owner(mock: MockStatefulTransport, client: ASTFClient) -> None:
    other = ASTFClient(username="bob", transport=mock)
    other.connect()
    with pytest.raises(STLRpcError, match="already taken"):
        other.acquire()
    with pytest.raises(STLError, match="not ours: call acquire"):
        other.load_profile(profile())
    assert client.get_acquired_ports() == [0, 1]
    assert mock.requests("acquire")[0]["user"] == "alice"


def test_another_owner_is_noticed(mock: MockStatefulTransport, client: ASTFClient) -> None:
    mock.publish(5, port_id=0, who="bob", session_id=1, force=True)
    mock.publish(5, port_id=1, who="bob", session_id=1, force=True)
    client._connection.session().drain_events()
    assert client.get_acquired_ports() == []
    with pytest.raises(STLError, match="not ours: call acquire"):
        client.start()
    client.acquire(force=True)
    client.load_profile(profile())


def test_a_large_profile_goes_in_pieces(mock: MockStatefulTransport, client: ASTFClient) -> None:
    made = profile()
    made.templates[0].client_template.program.send(bytes(900_000))
    client.load_profile(made)
    pieces = mock.requests("profile_fragment")
    assert [len(piece["fragment"]) for piece in pieces[:3]] == [1000, 500_000, 500_000]
    assert [("frag_first" in piece, "frag_last" in piece, "md5" in piece) for piece in pieces] == [
        (True, False, True),
        (False, False, False),
        (False, False, False),
        (False, True, False),
    ]
    assert mock.profile() == json.loads(made.to_json_str())
    client.load_profile(made)
    assert len(mock.requests("profile_fragment")) == len(pieces) + 1


def test_a_profile_of_thirty_megabytes_is_taken(mock: MockStatefulTransport, client: ASTFClient) -> None:
    made = profile()
    for number in range(30):
        made.templates[0].client_template.program.send(bytes([number]) * 750_000)
    client.load_profile(made)
    assert sum(len(piece["fragment"]) for piece in mock.requests("profile_fragment")) > 30_000_000
    assert len(mock.profile()["buf_list"]) == 31


def test_the_same_profile_under_several_names(mock: MockStatefulTransport, client: ASTFClient) -> None:
    """A server takes no text twice: what is sent differs, and means the same."""
    for name in ("one", "two", "three"):
        client.load_profile(profile(5000), pid_input=name)
    assert mock.profile("one") == mock.profile("two") == mock.profile("three")


def test_profiles_run_side_by_side(mock: MockStatefulTransport, client: ASTFClient) -> None:
    for name in ("one", "two"):
        client.load_profile(profile(len(name)), pid_input=name)
    client.start(pid_input=["one", "two"])
    client.update(3, pid_input="*")
    assert mock.requests("update")[-1]["mult"] == 3
    client.stop(pid_input="one")
    assert client.get_profiles_state() == {
        "_": "STATE_IDLE",
        "one": "STATE_ASTF_LOADED",
        "two": "STATE_TX",
    }
    assert client.get_profiles() == ["_", "one", "two"]
    assert client.get_profiles(profiles_in_ports=True)[-1] == {"0": [], "1": []}
    client.wait_on_traffic(profile_id="one")
    with pytest.raises(STLTimeoutError):
        client.wait_on_traffic(timeout=0.01)
    client.stop(pid_input="*", is_remove=True)
    assert client.get_profiles_state() == {"_": "STATE_IDLE"}


def test_a_profile_that_does_not_start_says_why(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.load_profile(profile())
    mock.start_error = "templates[0]: no memory"
    with pytest.raises(STLError, match=r"profile '_' did not start: templates\[0\]: no memory"):
        client.start()
    assert any(event.ev_type == "error" for event in client.get_events())
    client.start()


def test_what_cannot_start_is_refused(mock: MockStatefulTransport, client: ASTFClient) -> None:
    with pytest.raises(STLError, match=r"profile '_' has no traffic: call load_profile\(\)"):
        client.start()
    with pytest.raises(STLError, match=r"there is no profile 'nope', the profiles are: '_'"):
        client.update(2, pid_input="nope")
    with pytest.raises(STLArgumentError, match="not all of them"):
        client.start(pid_input="*")
    client.load_profile(profile())
    client.start()
    with pytest.raises(STLError, match="is in STATE_TX: call stop"):
        client.start()
    with pytest.raises(STLRpcError, match="is active, stop it first"):
        client.load_profile(profile(11))
    for argument in ({"mult": -1}, {"duration": -2}, {"latency_pps": 0.5}, {"client_mask": 1 << 32}):
        client.stop()
        with pytest.raises(ASTFError, match=f"start: {next(iter(argument))} is"):
            client.start(**argument)  # type: ignore[arg-type]


def test_a_run_that_ends_at_once_has_started(mock: MockStatefulTransport, client: ASTFClient) -> None:
    mock._auto_finish = True
    client.load_profile(profile())
    client.start(duration=0.1)
    client.wait_on_traffic(timeout=1)
    assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}


def test_waiting_is_woken_by_events(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.load_profile(profile())
    client.start(block=False)
    ender = threading.Thread(target=lambda: (time.sleep(0.05), mock.end_profile()))
    ender.start()
    client.wait_on_traffic(timeout=10)
    ender.join()
    client.start()
    loser = threading.Thread(target=lambda: (time.sleep(0.05), mock.lose_connection()))
    loser.start()
    with pytest.raises(STLConnectionError, match="went away"):
        client.wait_on_traffic(timeout=10)
    loser.join()


def test_disconnecting_stops_and_releases(mock: MockStatefulTransport) -> None:
    client = ASTFClient(transport=mock)
    client.connect()
    client.acquire()
    client.load_profile(profile())
    client.start()
    client.disconnect()
    assert [name for name in owned(mock) if name in ("stop", "release")] == ["stop", "release"]
    client.disconnect()


def test_running_profiles_are_not_cleared(
    mock: MockStatefulTransport, client: ASTFClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.set_verbose("warning")
    client.load_profile(profile())
    client.start()
    with caplog.at_level(logging.WARNING):
        client.clear_profile()
    assert "runs and is not cleared" in caplog.text
    assert client.get_profiles_state() == {"_": "STATE_TX"}


def test_counters_by_name(mock: MockStatefulTransport, client: ASTFClient) -> None:
    mock.counters = {"client": {"tcps_connects": 7, "m_active_flows": 0}, "server": {"tcps_drops": 2}}
    stats = client.get_stats()
    assert stats["traffic"] == {
        "client": {"m_active_flows": 0, "tcps_connects": 7},
        "server": {"m_active_flows": 0, "tcps_drops": 2},
    }
    assert {"global", 0, 1, "total", "latency"} <= stats.keys()
    assert client.is_traffic_stats_error(stats["traffic"]) == (
        True,
        {"client": {}, "server": {"tcps_drops": "help of tcps_drops"}},
    )
    whole = client.get_traffic_stats(skip_zero=False, is_sum=True)
    assert whole["client"]["tcps_sndbyte"] == 0


def test_a_fresh_client_counts_from_connect_but_profiles_from_their_start(
    mock: MockStatefulTransport,
) -> None:
    """As TRex's client: ports and the sum of all profiles have a baseline, a profile that runs has none."""
    mock.counters["client"] = {"tcps_connects": 7}
    mock.port_stats[1]["ipackets"] = 100
    with ASTFClient(transport=mock) as fresh:
        mock.counters["client"] = {"tcps_connects": 9}
        mock.port_stats[1]["ipackets"] = 130
        stats = fresh.get_stats()
        assert (stats[1]["ipackets"], stats["total"]["ipackets"]) == (30, 30)
        assert fresh.get_traffic_stats(is_sum=True)["client"]["tcps_connects"] == 2
        assert stats["traffic"]["client"]["tcps_connects"] == 9
        fresh.count_since_server_start()
        assert fresh.get_stats()[1]["ipackets"] == 130
        assert fresh.get_traffic_stats(is_sum=True)["client"]["tcps_connects"] == 9


def test_clearing_is_for_one_epoch(mock: MockStatefulTransport, client: ASTFClient) -> None:
    mock.counters["client"] = {"tcps_connects": 7, "m_active_flows": 3}
    client.clear_stats()
    mock.counters["client"] = {"tcps_connects": 9, "m_active_flows": 3}
    assert client.get_traffic_stats()["client"] == {"m_active_flows": 3, "tcps_connects": 2}
    assert client.get_traffic_stats(is_sum=True)["client"]["tcps_connects"] == 2
    mock.epoch += 1
    assert client.get_traffic_stats()["client"]["tcps_connects"] == 9


def test_template_groups(mock: MockStatefulTransport, client: ASTFClient) -> None:
    names = tuple(f"group {number}" for number in range(23))
    client.load_profile(profile(groups=names))
    mock.counters["client"] = {"tcps_connects": 5}
    assert client.get_tg_names() == list(names)
    stats = client.get_traffic_tg_stats(list(names))
    assert list(stats) == list(names)
    assert stats["group 22"]["client"] == {"m_active_flows": 0, "tcps_connects": 5}
    assert [len(request["tg_ids"]) for request in mock.requests("get_tg_id_stats")] == [10, 10, 3]
    assert client.get_traffic_tg_stats("group 0")["group 0"]["server"] == {"m_active_flows": 0}
    mock.epoch += 1
    assert client.get_traffic_tg_stats("group 1").keys() == {"group 1"}
    for wrong, words in (([], "give at least one"), ("nobody", "no template group 'nobody'")):
        with pytest.raises(ASTFError, match=words):
            client.get_traffic_tg_stats(wrong)


def test_dynamic_counters(mock: MockStatefulTransport, client: ASTFClient) -> None:
    rows = [
        {"id": 0, "name": "tunnels", "help": "", "units": "", "zero": False, "info": "info", "abs": False},
        {"id": 1, "name": "broken", "help": "bad", "units": "", "zero": False, "info": "error", "abs": False},
    ]
    mock.answer("get_dynamic_counter_desc", lambda _params: {"epoch": mock.epoch, "data": rows})
    values = {"client": {"0": 5, "1": 1}, "server": {}}
    mock.answer(
        "get_dynamic_counter_values",
        lambda params: (
            {"epoch": mock.epoch, **values} if params["epoch"] == mock.epoch else {"epoch_err": mock.epoch}
        ),
    )
    stats = client.get_dynamic_traffic_stats()
    assert stats == {"client": {"tunnels": 5, "broken": 1}, "server": {}}
    assert client.is_dynamic_traffic_stats_error(stats) == (True, {"client": {"broken": "bad"}, "server": {}})
    client.clear_dynamic_traffic_stats("_")
    assert client.get_dynamic_traffic_stats()["client"] == {}
    mock.epoch = 3
    assert client.get_dynamic_traffic_stats()["client"]["tunnels"] == 5
    client.clear_dynamic_traffic_stats(clear_all=True)
    assert client.get_dynamic_traffic_stats()["client"] == {}


def test_latency(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.start_latency(mult=100, src_ipv4="16.0.0.9", ports_mask=1)
    sent = mock.requests("start_latency")[0]
    assert (sent["mult"], sent["src_addr"], sent["port_s_offset"], sent["mask"]) == (
        100,
        "16.0.0.9",
        "1.0.0.0",
        1,
    )
    client.update_latency(7)
    client.stop_latency()
    mock.answer(
        "get_latency_stats", {"data": {"epoch": 1, "unknown": 0, "port-1": {"hist": {}, "stats": {}}}}
    )
    assert client.get_latency_stats() == {1: {"hist": {}, "stats": {}}}
    with pytest.raises(ASTFError, match="start_latency: dst_ipv4"):
        client.start_latency(dst_ipv4="nowhere")


def test_flow_records_are_gathered(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.load_profile(profile())
    client.start(dump_interval=0.1)
    answers = iter([[{"index": 0, "a": {"rtt": 1}}, {"index": 1, "a": {"rtt": 2}, "b": {"rtt": 3}}], []])
    mock.answer("get_flow_info", lambda _params: next(answers))
    flows = client.get_flow_info(index=0)
    assert flows == {"a": [{"rtt": 1}, {"rtt": 2}], "b": [{"rtt": 3}], "next_index": 2}
    assert client.get_flow_info(index=2) == {"next_index": 2}
    assert [request["index"] for request in mock.requests("get_flow_info")] == [0, 2]


def test_clients_are_named_by_address(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.set_client_enable(["16.0.0.1", 5], False)
    client.set_client_enable_range("16.0.0.1", "16.0.0.9", True)
    first, second = mock.requests("enable_disable_client")
    assert first["attr"] == [{"client_ip": 0x10000001}, {"client_ip": 5}]
    assert second["attr"] == [{"client_start_ip": 0x10000001, "client_end_ip": 0x10000009}]
    attempts = iter([True, False])

    def pull(_params: dict[str, Any]) -> Any:
        if next(attempts):
            raise STLRpcError("", -32000, "not ready")
        return {"268435457": {"Found": 1, "state": "Active"}}

    mock.answer("get_clients_info_pull", pull)
    assert client.get_clients_info(["16.0.0.1"]) == {"268435457": {"Found": 1, "state": "Active"}}
    mock.refuse("get_clients_info_pull", "not ready")
    with pytest.raises(STLRpcError, match="not ready"):
        client.get_clients_info_range("16.0.0.1", "16.0.0.2", timeout=0)
    with pytest.raises(ASTFError, match="range of clients is empty"):
        client.set_client_enable_range(2, 1, True)


def test_ignored_addresses(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.set_ignored_macs_ips(["2:0:0:0:0:99", "02:00:00:00:00:99"], ["16.0.0.9"])
    assert client.get_ignored_macs_ips() == {"ips": ["16.0.0.9"], "macs": ["02:00:00:00:00:99"]}
    assert client.get_ignored_macs_ips(to_str=False) == {"ips": [0x10000009], "macs": [0x020000000099]}
    client.set_ignored_macs_ips()
    assert client.get_ignored_macs_ips() == {"ips": [], "macs": []}
    for macs, addresses, words in (
        (["x"], [], "no MAC address"),
        ([], list(range(1001)), "has 1001 addresses, give at most 1000"),
    ):
        with pytest.raises(ASTFError, match=words):
            client.set_ignored_macs_ips(macs, addresses)


def test_service_mode_is_of_the_whole_server(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.set_service_mode()
    assert client.get_service_enabled_ports() == [0, 1]
    client.set_service_mode(filtered=True, mask=5)
    assert client.get_service_filtered_ports() == [0, 1]
    assert [set(request) - {"api_h", "handler"} for request in mock.requests("service")] == [
        {"enabled", "filtered"},
        {"enabled", "filtered", "mask"},
    ]
    for mask in (None, 2, 256):
        with pytest.raises(STLArgumentError, match="mask"):
            client.set_service_mode(filtered=True, mask=mask)
    client.reset()
    assert client.get_service_filtered_ports() == []


def test_stateless_streams_run_beside(mock: MockStatefulTransport, client: ASTFClient) -> None:
    stream = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1))
    client.add_streams(stream, ports=[0])
    client.start_stl(ports=[0])
    assert client.is_traffic_active()
    client.update_stl(ports=[0], mult="2")
    client.start_stl(ports=[0], force=True)
    mock.finish(0)
    client.wait_on_traffic_stl(ports=[0], timeout=5)
    client.start_stl(ports=[0])
    client.stop_stl(ports=[0])
    client.clear_stl_profiles()
    assert mock.streams(0) == {}
    assert "start" not in mock.methods()


@pytest.mark.parametrize("state", ["ASTF_LOADED", "ASTF_PARSE", "TX"])
def test_stateful_traffic_of_a_port_is_no_stream(mock: MockStatefulTransport, state: str) -> None:
    status = mock._ports[0].status()
    mock.answer("get_port_status", lambda _params: {**status, "state": state, "state_profile": {"_": "IDLE"}})
    with ASTFClient(transport=mock) as client:
        client.reset()
        assert client.get_active_ports() == []
    assert "stop_traffic" not in mock.methods()


def test_tunnels_are_refused_clearly(client: ASTFClient, mock: MockStatefulTransport) -> None:
    assert client.is_tunnel_supported()["is_tunnel_supported"] is False
    for call in (client.activate_tunnel, lambda: client.tunnels_topo_load({"tunnels": []})):
        with pytest.raises(STLError, match="the server has no tunnels: there are no tunnels in this mock"):
            call()
    with pytest.raises(STLArgumentError, match="GTP-U"):
        client.activate_tunnel(tunnel_type=2)
    mock.answer("is_tunnel_supported", {"is_tunnel_supported": True})
    for method in ("activate_tunnel_mode", "tunnel_topo_fragment", "tunnel_topo_clear"):
        mock.answer(method, None)
    assert client.activate_tunnel() is True
    client.tunnels_topo_load({"tunnels": []})
    assert mock.requests("tunnel_topo_fragment")[0]["fragment"] == '{"tunnels": []}'
    client.tunnels_topo_clear()
    mock.answer("tunnel_topo_get", {"tunnel_topo_data": '{"tunnels": [1]}'})
    assert client.tunnels_topo_get() == {"tunnels": [1]}
    mock.answer("update_tunnel_client", {})
    client.update_tunnel_client_record({5: Tunnel("1.1.1.1", "2.2.2.2", 0, 9, 4)})
    (record,) = mock.requests("update_tunnel_client")[0]["attr"]
    assert record == {
        "client_ip": 5,
        "sip": "1.1.1.1",
        "dip": "2.2.2.2",
        "sport": 0,
        "teid": 9,
        "version": 4,
    }


def topology(dst: str = "00:00:00:01:00:02") -> ASTFTopology:
    made = ASTFTopology()
    made.add_vif(port_id="0.1", src_mac="02:00:00:00:01:01", src_ipv4="192.0.2.1", vlan=7)
    made.add_gw(port_id="0.1", src_start="16.0.0.1", src_end="16.0.0.9", dst=dst)
    made.add_gw("0", "16.0.0.10", "16.0.0.20", "00:00:00:01:00:03")
    return made


def test_a_topology_is_given_to_the_server(mock: MockStatefulTransport, client: ASTFClient) -> None:
    client.topo_load(topology())
    assert mock.requests("topo_fragment") == []
    client.topo_resolve()
    sent = json.loads(mock.requests("topo_fragment")[0]["fragment"])
    assert sent["vifs"] == [
        {
            "src_mac": "02:00:00:00:01:01",
            "src_ipv4": "192.0.2.1",
            "src_ipv6": "",
            "vlan": 7,
            "trex_port": 0,
            "sub_if": 1,
        }
    ]
    assert sent["gws"][1] == {
        "src_start": "16.0.0.10",
        "src_end": "16.0.0.20",
        "dst": "00:00:00:01:00:03",
        "dst_mac": "00:00:00:01:00:03",
        "trex_port": 0,
        "sub_if": 0,
    }
    with pytest.raises(ASTFError, match="loaded already"):
        client.topo_load(topology())
    with ASTFClient(transport=mock) as other:
        assert other.topo_get().to_json() == client.topo_get().to_json()
    client.acquire(force=True)
    client.topo_clear()
    assert client.topo_get().is_empty()


def test_gateways_are_found_by_arp(mock: MockStatefulTransport, client: ASTFClient) -> None:
    from scapy.layers.l2 import ARP, Dot1Q, Ether

    def on_push(port: int, frame: bytes) -> None:
        asked = Ether(frame)
        assert asked[Dot1Q].vlan == 7
        reply = ARP(op="is-at", hwsrc="02:00:00:00:09:09", psrc=asked[ARP].pdst, pdst=asked[ARP].psrc)
        answer = Ether(dst=asked.src, src="02:00:00:00:09:09") / Dot1Q(vlan=7) / reply
        mock.receive(port, bytes(answer))

    mock.on_push = on_push
    client.set_service_mode()
    client.topo_load(topology("192.0.2.254"))
    client.topo_resolve(ports=[0])
    assert client.topo_get().gws[0].dst_mac == "02:00:00:00:09:09"
    assert mock.requests("topo_fragment") == []


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".py"])
def test_topologies_survive_files(client: ASTFClient, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"topology{suffix}"
    client.topo_load(topology())
    client.topo_save(path)
    assert ASTFTopology.load(path).to_json() == topology().to_json()


def test_a_topology_is_shown(client: ASTFClient, capsys: pytest.CaptureFixture[str]) -> None:
    client.topo_load(topology())
    client.topo_show()
    assert "16.0.0.1-16.0.0.9" in capsys.readouterr().out


BAD_TOPOLOGIES: dict[str, tuple[Callable[[], ASTFTopology], str]] = {
    "no interface": (
        lambda: ASTFTopology(gws=[TopoGW("0.3", "1.0.0.1", "1.0.0.2", "00:00:00:00:00:01")]),
        "0.3, which is no virtual interface",
    ),
    "no address": (
        lambda: ASTFTopology(
            [TopoVIF("0.1", "02:00:00:00:00:01")], [TopoGW("0.1", "1.0.0.1", "1.0.0.2", "1.1.1.1")]
        ),
        "has no IPv4 address",
    ),
    "overlap": (
        lambda: ASTFTopology(
            gws=[
                TopoGW("0", "1.0.0.1", "1.0.0.5", "00:00:00:00:00:01"),
                TopoGW("0", "1.0.0.5", "1.0.0.6", "1::1"),
            ]
        ),
        "ranges of two gateways overlap: 1.0.0.1 to 1.0.0.5",
    ),
    "twice": (lambda: ASTFTopology([TopoVIF("0.1", "02:00:00:00:00:01")] * 2), "have the same 0.1"),
    "empty": (ASTFTopology, "is empty"),
    "no port": (lambda: ASTFTopology([TopoVIF("8.1", "02:00:00:00:00:01")]), "port_id is '8.1', the ports"),
    "no layer": (
        lambda: ASTFTopology(gws=[TopoGW("0", "1.0.0.1", "1.0.0.2", "1.1.1.1")]),
        "call set_l3_mode",
    ),
    "server": (lambda: ASTFTopology(gws=[TopoGW("1", "1.0.0.1", "1.0.0.2", "1.1.1.1")]), "which is even"),
    "swapped": (lambda: ASTFTopology(gws=[TopoGW("0", "1.0.0.2", "1.0.0.1", "1.1.1.1")]), "swap them"),
    "name": (lambda: ASTFTopology([TopoVIF("0", "02:00:00:00:00:01")]), "a number from 1"),
    "mac": (lambda: ASTFTopology([TopoVIF("0.1", "x")]), "src_mac is 'x'"),
    "vlan": (lambda: ASTFTopology([TopoVIF("0.1", "02:00:00:00:00:01", vlan=5000)]), "vlan is 5000"),
    "vni": (lambda: ASTFTopology([TopoVIF("0.1", "02:00:00:00:00:01", vxlan=1 << 24)]), "vxlan is 16777216"),
    "vxlan": (lambda: ASTFTopology([TopoVIF("0.1", "02:00:00:00:00:01", vxlan={"id": 1})]), "give a number"),
    "destination": (lambda: ASTFTopology(gws=[TopoGW("0", "1.0.0.1", "1.0.0.2", "x")]), "dst is 'x'"),
    "field": (lambda: ASTFTopology.from_json({"vifs": [{"mac": "x"}]}), r"vifs\[0\]: .*unexpected keyword"),
}


@pytest.mark.parametrize("name", BAD_TOPOLOGIES)
def test_a_topology_that_does_not_fit_is_refused(client: ASTFClient, name: str) -> None:
    build, words = BAD_TOPOLOGIES[name]
    with pytest.raises(ASTFError, match=words):
        client.topo_load(build())


def test_a_topology_file_that_is_none(client: ASTFClient, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("[]")
    with pytest.raises(STLProfileError, match=r"bad.json: it must be an object"):
        client.topo_load(path)
    path.write_text("{")
    with pytest.raises(STLProfileError, match=r"bad.json: .*line 1"):
        client.topo_load(path)


def test_distribution_of_addresses(client: ASTFClient) -> None:
    assert client.get_traffic_distribution("16.0.0.0", "16.0.0.255", "1.0.0.0", False) == {
        0: {0: {"start": "16.0.0.0", "end": "16.0.0.255"}}
    }
    with pytest.raises(ASTFError, match="start_ip"):
        client.get_traffic_distribution("16", "16.0.0.255", "1.0.0.0", False)


def test_how_flows_ended(mock: MockStatefulTransport, client: ASTFClient) -> None:
    mock.counters = {"client": {"tcps_connattempt": 9}, "server": {}}
    mock.outcomes["client"] = {"reset": 2, "unanswered": 1, "http_5xx": 3}
    mock.times["connect"] = {"count": 7, "min_us": 80.0}
    found = client.get_flow_outcomes()
    assert (found["client"]["completed"], found["client"]["reset"], found["client"]["http_5xx"]) == (7, 2, 3)
    assert found["server"]["completed"] == 0
    assert found["times"] == {
        "connect": {"count": 7, "min_us": 80.0},
        "first_byte": {"count": 0},
        "program": {"count": 0},
        "handshake": {"count": 0},
        "response_begin": {"count": 0},
        "response": {"count": 0},
    }


def test_a_server_that_does_not_tell_how_flows_ended(
    client: ASTFClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = client._connection.session()
    monkeypatch.setattr(session, "supported_commands", session.supported_commands - {"get_flow_outcomes"})
    with pytest.raises(STLError, match="does not tell how flows ended: only Allosaur's servers do"):
        client.get_flow_outcomes()
