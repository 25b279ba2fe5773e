"""The client has all methods that scripts for TRex call, and asks the server as TRex's client does."""

from __future__ import annotations

import gzip
import inspect
import json
import logging
from pathlib import Path

import pytest
from allosaur import STLArgumentError, STLClient, STLConnectionError, STLError
from allosaur.testing import MockTransport

#: Every public method of TRex's stateless client that is no console command, with its parameters (and what
#: ours takes after them), except those of tagged packet groups.
SURFACE = {
    "acquire": "ports force sync_streams lease_s",  # the last is our own
    "add_profile": "filename ports",
    "add_streams": "streams ports",
    "clear_events": "",
    "clear_pgid_stats": "clear_flow_stats clear_latency_stats",
    "clear_stats": "ports clear_global clear_flow_stats clear_latency_stats clear_xstats",
    "arp": "ports retries verbose vlan",
    "clear_vlan": "ports",
    "conf_ipv6": "port enabled src_ipv6",
    "connect": "",
    "create_service_ctx": "port",
    "disconnect": "stop_traffic release_ports",
    "fetch_capture_packets": "capture_id output pkt_count fetch_limit snaplen",
    "get_acquired_ports": "",
    "get_active_pgids": "",
    "get_active_ports": "owned",
    "get_all_ports": "",
    "get_capture_status": "",
    "get_connection_info": "",
    "get_events": "ev_type_filter",
    "get_global_cfg": "",
    "get_info": "",
    "get_mode": "",
    "get_paused_ports": "owned",
    "get_pgid_stats": "pgid_list",
    "get_port": "port_id",
    "get_port_attr": "port",
    "get_port_count": "",
    "get_port_info": "ports",
    "get_profiles_with_state": "state",
    "get_resolvable_ports": "",
    "get_resolved_ports": "",
    "get_server_supported_cmds": "",
    "get_server_system_info": "",
    "get_server_version": "",
    "get_service_enabled_ports": "owned",
    "get_service_filtered_ports": "owned",
    "get_stats": "ports sync_now",
    "get_transmitting_ports": "owned",
    "get_util_stats": "",
    "get_verbose": "",
    "get_warnings": "",
    "get_xstats": "port_id",
    "has_events": "",
    "is_all_ports_acquired": "",
    "is_async_results_ready": "port",
    "is_connected": "",
    "is_traffic_active": "ports",
    "map_ports": "ports read_delay send_pkts",
    "namespace_remove_all": "ports",
    "pause": "ports",
    "pause_streams": "port stream_ids",
    "ping_ip": "src_port dst_ip pkt_size count interval_sec vlan timeout_sec on_reply",
    "ping_rpc_server": "",
    "pop_event": "",
    "probe_server": "",
    "push_packets": "pkts ports force ipg_usec",
    "push_pcap": "pcap_filename ports ipg_usec speedup count duration force vm packet_hook is_dual "
    "min_ipg_usec src_mac_pcap dst_mac_pcap",
    "push_remote": "pcap_filename ports ipg_usec speedup count duration is_dual min_ipg_usec force "
    "src_mac_pcap dst_mac_pcap",
    "release": "ports",
    "remove_all_captures": "",
    "remove_all_streams": "ports",
    "remove_rx_queue": "ports",
    "remove_streams": "stream_id_list ports",
    "reset": "ports restart",
    "resolve": "ports retries verbose vlan",
    "resume": "ports",
    "resume_streams": "port stream_ids",
    "scan6": "ports timeout verbose",
    "server_shutdown": "force",
    "service_mode": "ports",
    "set_bird_node": "node_port mac ipv4 ipv4_subnet ipv6_enabled ipv6 ipv6_subnet vlans tpids mtu",
    "set_capture_port_bpf_filter": "port bpf_filter",
    "set_global_cfg": "params",
    "set_l2_mode": "port dst_mac",
    "set_l3_mode": "port src_ipv4 dst_ipv4 vlan",
    "set_namespace": "port method",
    "set_namespace_start": "port ns_cmds",
    "set_port_attr": "ports promiscuous link_up led_on flow_ctrl multicast vxlan_fs resolve",
    "set_rx_queue": "ports size",
    "set_service_mode": "ports enabled filtered mask",
    "set_timeout": "timeout_sec",
    "set_verbose": "level",
    "set_vlan": "ports vlan",
    "set_vxlan": "ports vni local remote udp_port inner_mac any_vni",
    "start": "ports mult force duration total core_mask synchronized",
    "start_capture": "tx_ports rx_ports limit mode bpf_filter endpoint snaplen",
    "start_capture_port": "port endpoint bpf_filter",
    "stop": "ports rx_delay_ms",
    "stop_capture": "capture_id output endpoint_cb",
    "stop_capture_port": "port",
    "update": "ports mult total force",
    "update_streams": "port mult force stream_ids",
    "wait_for_async_results": "port timeout cb",
    "wait_on_traffic": "ports timeout rx_delay_ms",
}


@pytest.mark.parametrize("name", SURFACE)
def test_a_method_takes_what_trex_scripts_give(name: str) -> None:
    parameters = list(inspect.signature(getattr(STLClient, name)).parameters.values())[1:]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert [one.name for one in parameters if one.kind in kinds] == SURFACE[name].split()


def test_other_names_for_the_same() -> None:
    for name in ("start", "stop", "update"):
        assert getattr(STLClient, f"{name}_stl") is getattr(STLClient, name)


#: Fields of requests that only our server knows; others take no notice of fields that they do not know.
OURS = {"get_port_stats": {"by_size"}}


@pytest.fixture
def key_sets(recorded: Path) -> dict[str, list[set[str]]]:
    """The parameters that TRex's client gave to each method in all recorded scenarios."""
    packed = (recorded / "rpc-transcripts" / "methods_index.json.gz").read_bytes()
    index = json.loads(gzip.decompress(packed))
    return {
        entry["method"]: [set(keys) for keys in entry["param_key_sets"] if keys is not None]
        for entry in index
        if entry["mode"] == "stl"
    }


def use_everything(client: STLClient, transport: MockTransport, tmp_path: Path) -> None:
    """Call what asks the server something."""
    from allosaur import STLPktBuilder, STLStream, STLTXCont

    answers = {
        "get_global_cfg": {},
        "get_port_xstats_names": {"xstats_names": []},
        "get_port_xstats_values": {"xstats_values": []},
        "get_active_pgids": {"ids": {"flow_stats": [], "latency": []}},
        "get_pgid_stats": {"flow_stats": {}, "latency": {}, "ver_id": {}},
    }
    for method in ("start_capture_port", "stop_capture_port", "set_capture_port_bpf", "push_remote"):
        transport.answer(method, {})
    transport.answer("set_global_cfg", None)
    for method, answer in answers.items():
        transport.answer(method, answer)
    client.acquire()
    client.reset()
    client.set_port_attr(promiscuous=True, multicast=True)
    client.set_l2_mode(0, "02:00:00:00:00:09")
    client.conf_ipv6(0, True, "2001:db8::1")
    client.set_vlan([0], [1, 2])
    client.clear_vlan([0])
    client.set_vxlan([0], 100, "192.0.2.1", "192.0.2.2", inner_mac="02:00:00:00:00:02")
    client.set_vxlan([0])
    client.set_service_mode()
    client._layers.configure("set_l3", [0], src_addr="192.0.2.1", dst_addr="192.0.2.2")
    client._layers.configure("set_l3", [0], src_addr="192.0.2.1", dst_addr="192.0.2.2", resolved_mac="02::01")
    client.map_ports(read_delay=0)
    client.set_rx_queue([0], 10)
    client.remove_rx_queue([0])
    client.start_capture_port(0, "ipc:///tmp/tap", "udp")
    client.set_capture_port_bpf_filter(0, "tcp")
    client.stop_capture_port(0)
    number = client.start_capture([0], [1], snaplen=64)["id"]
    client.push_packets(bytes(60), [0])
    client.get_capture_status()
    client.fetch_capture_packets(number, [], 1)
    client.stop_capture(number, tmp_path / "a.pcap")
    client.start_capture(rx_ports=[1])
    client.remove_all_captures()
    client.set_service_mode(enabled=False)
    stream = STLStream(packet=STLPktBuilder(pkt_buffer=bytes(60)), mode=STLTXCont(pps=1))
    number = client.add_streams(stream, [0])
    client.start([0])
    client.pause([0])
    client.resume([0])
    client.update([0], "2")
    client.pause_streams(0, [number])
    client.resume_streams(0, [number])
    client.update_streams(0, "2", stream_ids=[number])
    client.stop([0])
    client.remove_streams([number], [0])
    client.remove_all_streams([0])
    client.push_remote("a.pcap", [0])
    client.stop([0])
    client.get_util_stats()
    client.get_xstats(0)
    client.set_global_cfg({"sched_max_stretch": 1.0})
    client.get_global_cfg()
    client.ping_rpc_server()
    client.clear_pgid_stats()
    client.release()


def test_requests_have_the_fields_that_trex_gives(
    client: STLClient, transport: MockTransport, key_sets: dict[str, list[set[str]]], tmp_path: Path
) -> None:
    use_everything(client, transport, tmp_path)
    compared = set()
    for method, params in transport.calls:
        known = key_sets.get(method, [])
        if known:
            compared.add(method)
            keys = set(params) - OURS.get(method, set())
            # An entry without api_h was sent before the handshake.
            assert keys in known or keys - {"api_h"} in known, f"{method}: {sorted(keys)} not in {known}"
    assert len(compared) >= 35, sorted(compared)


def test_a_node_of_bird_has_an_address_with_its_prefix(client: STLClient) -> None:
    with pytest.raises(STLError, match="give ipv4 and ipv4_subnet, or neither"):
        client.set_bird_node(0, "02:00:00:00:00:01", ipv4="192.0.2.1")


def test_a_server_can_be_asked_before_connecting(transport: MockTransport) -> None:
    client = STLClient(transport=transport)
    assert client.probe_server()["mode"] == "STL"
    assert not client.is_connected()
    assert transport.methods() == ["get_version"]
    with transport.silence(), pytest.raises(STLConnectionError):
        client.probe_server()
    client.connect()
    assert client.probe_server()["version"] == "mock"
    client.disconnect()


def test_requests_and_replies_are_written_at_level_debug(
    transport: MockTransport, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("test")
    caplog.set_level(logging.DEBUG, "test")
    client = STLClient(transport=transport, logger=logger, verbose_level="info")
    client.connect()
    assert "[verbose]" not in caplog.text
    client.set_verbose("debug")
    client.ping_rpc_server()
    client.set_verbose("info")
    client.disconnect()
    sent, came = (
        one.getMessage() for one in caplog.records if '"ts"' in one.message or '"ping"' in one.message
    )
    assert sent.startswith("\n\n[verbose] Sending Request To Server:\n\n{\n    ")
    assert came.startswith("\n\n[verbose] Server Response:\n\n{\n    ")
    assert json.loads(sent.partition("{")[1] + sent.partition("{")[2])["method"] == "ping"


def test_settings_of_the_client(transport: MockTransport) -> None:
    logger = logging.getLogger("test")
    client = STLClient(transport=transport, logger=logger, verbose_level="warning")
    assert (client.logger, client.get_verbose(), client.get_mode()) == (logger, "warning", "STL")
    client.set_verbose("debug")
    assert client.get_verbose() == "debug"
    client.set_timeout(1.5)
    with pytest.raises(STLArgumentError, match="timeout_sec"):
        client.set_timeout(0)
    client.connect()
    with pytest.raises(STLError, match="not connected"):
        client.set_timeout(1)
    assert client.has_events() is False
    client.acquire(ports=[1])
    assert client.system_info["port_count"] == 2
    assert client.get_port(1).is_acquired
    assert list(client.ports) == [0, 1]
    assert client.get_resolved_ports() == [1]
    assert client.get_resolvable_ports() == []
    with pytest.raises(STLArgumentError, match="0, 1"):
        client.get_port(2)
    client.disconnect()


def test_global_settings(client: STLClient, transport: MockTransport) -> None:
    transport.answer("get_global_cfg", {"sched_max_stretch": 0.0})
    transport.answer("set_global_cfg", None)
    client.set_global_cfg({"sched_max_stretch": 2.0})
    assert transport.requests("set_global_cfg")[-1]["sched_max_stretch"] == 2.0
    assert client.get_global_cfg() == {"sched_max_stretch": 0.0}
    with pytest.raises(STLError, match="params"):
        client.set_global_cfg([])  # type: ignore[arg-type]
