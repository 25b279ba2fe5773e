"""Multipliers, durations, core masks, statistics, the event log, the public surface."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import allosaur
import pytest
from allosaur import Event, PortProfileID, STLArgumentError, STLClient
from allosaur.client._statistics import StatsBook
from allosaur.rpc._events import EventType, describe
from allosaur.streams._multiplier import core_masks, parse_duration, parse_multiplier
from allosaur.testing import MockTransport

ALL_CORES = (1 << 64) - 1


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", "raw", 1.0),
        (2, "raw", 2.0),
        (0.5, "raw", 0.5),
        (".5", "raw", 0.5),
        ("10pps", "pps", 10),
        ("10kpps", "pps", 1e4),
        ("5mpps", "pps", 5e6),
        ("5Mpps", "pps", 5e6),
        ("1.5gpps", "pps", 1.5e9),
        ("7bps", "bps", 7),
        ("10 gbps", "bps", 1e10),
        ("3bpsl1", "bpsl1", 3),
        ("2mbpsl1", "bpsl1", 2e6),
        ("40%", "percentage", 40),
        ("0.5%", "percentage", 0.5),
    ],
)
def test_multipliers(text: str | float, kind: str, value: float) -> None:
    assert parse_multiplier(text) == {"type": kind, "value": value, "op": "abs"}


def test_a_multiplier_can_be_shared_and_be_relative() -> None:
    assert parse_multiplier("10kpps", divide_count=4)["value"] == 2500
    assert parse_multiplier("5%+", allow_update=True)["op"] == "add"
    assert parse_multiplier("5%-", allow_update=True)["op"] == "sub"


@pytest.mark.parametrize(
    "text", ["", "abc", "0", "0pps", "-1", "5xpps", "5kkpps", "pps", "1e400", "5%+", "5 m", "inf"]
)
def test_what_is_no_multiplier_is_refused(text: str) -> None:
    with pytest.raises(STLArgumentError, match="argument 'mult' cannot be"):
        parse_multiplier(text)


def test_durations() -> None:
    texts = [None, -1, 10, 0.25, "10", "10s", "1.5m", "2h"]
    assert [parse_duration(text) for text in texts] == [-1, -1, 10, 0.25, 10, 10, 90, 7200]
    for wrong in (0, -2, "fast", "1d", float("nan"), float("inf"), True):
        with pytest.raises(STLArgumentError, match="argument 'duration' cannot be"):
            parse_duration(wrong)


def test_core_masks() -> None:
    assert core_masks(None, [0, 1]) == core_masks(STLClient.CORE_MASK_SPLIT, [0, 1]) == [ALL_CORES] * 2
    assert core_masks(STLClient.CORE_MASK_PIN, [0, 1, 2]) == [
        0x5555555555555555,
        0xAAAAAAAAAAAAAAAA,
        ALL_CORES,
    ]
    assert core_masks(STLClient.CORE_MASK_SINGLE, [3]) == [1]
    assert core_masks([5, 6], [0, 1]) == [5, 6]
    with pytest.raises(STLArgumentError, match="2 masks, one for each port"):
        core_masks([5], [0, 1])
    with pytest.raises(STLArgumentError, match="CORE_MASK_SPLIT"):
        core_masks("all", [0])


def test_ports_and_profiles() -> None:
    assert (PortProfileID("3.voice").port_id, PortProfileID("3.voice").profile_id) == (3, "voice")
    assert str(PortProfileID(3)) == "3._"
    assert PortProfileID("3") == PortProfileID("3._")
    assert len({PortProfileID("3"), PortProfileID(3)}) == 1


@pytest.fixture
def statistics(transcript: Callable[[str], list[Any]]) -> tuple[list[Any], dict[str, Any]]:
    """What a TRex server answered to the counters' requests, and what TRex's client made of it."""
    replies: dict[str, Any] = {}
    batch: list[Any] = []
    for entry in transcript("stl_s02"):
        message = entry.get("msg")
        if isinstance(message, list) and "method" in message[0]:
            batch = message
        elif isinstance(message, list) and batch[0]["method"] == "get_global_stats":
            replies[entry["step"]] = [reply["result"] for reply in message]
        if "client_result_get_stats" in entry:
            return [replies["clear_stats"], replies["get_stats"]], entry["client_result_get_stats"]
    raise AssertionError("the transcript has no result of get_stats")


def test_statistics_are_those_that_trex_makes(statistics: tuple[list[Any], dict[str, Any]]) -> None:
    """The same counters of a real server give the same dictionary, to the last key."""
    (at_clear, at_read), theirs = statistics
    book = StatsBook()
    # When cleared, the server was asked for the ports' driver counters too; they come in between.
    book.update([0, 1], [at_clear[0], *at_clear[-2:]])
    book.clear([0, 1], clear_global=True)
    book.update([0, 1], at_read)
    ours = json.loads(json.dumps(book.to_dict([0, 1], {0: 10e9, 1: 10e9})))
    assert ours.keys() == theirs.keys()
    for part, values in theirs.items():
        assert ours[part] == (pytest.approx(values) if part not in ("flow_stats", "latency") else values), (
            part
        )


def test_clear_is_a_matter_of_this_client(client: STLClient, transport: MockTransport) -> None:
    transport.port_stats[0].update(opackets=100, obytes=6400, m_total_tx_pps=5.0, missed_packets=7)
    transport.port_stats[0]["tx_by_size"] = {"64": 100, "65-127": 0}
    client.clear_stats()
    transport.port_stats[0].update(opackets=130, obytes=8320, missed_packets=9)
    transport.port_stats[0]["tx_by_size"] = {"64": 129, "65-127": 1}
    stats = client.get_stats()
    assert (stats[0]["opackets"], stats[0]["obytes"], stats[0]["missed_packets"]) == (30, 1920, 2)
    assert stats[0]["tx_pps"] == 5.0, "a rate is not relative"
    assert stats[0]["tx_by_size"] == {"64": 29, "65-127": 1}
    assert stats["total"]["tx_by_size"] == {"64": 29, "65-127": 1}
    assert stats["total"]["opackets"] == 30
    assert "missed_packets" not in stats[1], "what a server does not count is not made up"
    transport.port_stats[0]["opackets"] = 500
    assert client.get_stats(sync_now=False)[0]["opackets"] == 30


def test_counts_by_size_are_asked_for(client: STLClient, transport: MockTransport) -> None:
    client.get_stats()
    assert transport.requests("get_port_stats")[-2] == {"port_id": 0, "by_size": True, "api_h": "mock"}


PARTS = {"total", "global", "flow_stats", "latency"}


def test_statistics_are_of_all_ports_whoever_owns_them(client: STLClient, transport: MockTransport) -> None:
    transport.port_stats[0].update(opackets=30)
    transport.port_stats[1].update(ipackets=20)
    client.acquire([0])
    for ports in (None, [0]):
        stats = client.get_stats(ports=ports)
        assert stats.keys() == {0, 1} | PARTS
        assert (stats[1]["ipackets"], stats["total"]["ipackets"]) == (20, 20)
    with pytest.raises(STLArgumentError, match="cannot be 7"):
        client.get_stats(ports=[7])


def test_clearing_is_of_all_ports(client: STLClient, transport: MockTransport) -> None:
    for ports in (None, [0]):
        transport.port_stats[0]["opackets"] += 30
        transport.port_stats[1]["ipackets"] += 30
        client.acquire([0], force=True)
        client.clear_stats(ports=ports)
        stats = client.get_stats()
        assert (stats[0]["opackets"], stats[1]["ipackets"]) == (0, 0)


def test_statistics_may_be_of_some_ports(client: STLClient, transport: MockTransport) -> None:
    transport.port_stats[0].update(opackets=30)
    transport.port_stats[1].update(opackets=20)
    assert client.get_stats(ports=[1], only_given=True).keys() == {1} | PARTS
    assert client.get_stats(ports=[1], only_given=True)["total"]["opackets"] == 20
    client.clear_stats(ports=[1], only_given=True)
    stats = client.get_stats()
    assert (stats[0]["opackets"], stats[1]["opackets"]) == (30, 0)


def seen(client: STLClient) -> tuple[int, int, int]:
    """What was sent, of the port and in all, and packets that waited."""
    stats = client.get_stats()
    return stats[0]["opackets"], stats["total"]["opackets"], stats["global"]["queue_full"]


def test_a_fresh_client_counts_from_connect(transport: MockTransport) -> None:
    transport.port_stats[0].update(opackets=100, obytes=6400)
    transport.global_stats["m_total_queue_full"] = 7
    with STLClient(transport=transport) as client:
        transport.port_stats[0].update(opackets=130)
        transport.global_stats["m_total_queue_full"] = 9
        assert seen(client) == (30, 30, 2)
        client.count_since_server_start()
        assert seen(client) == (130, 130, 9)
        client.disconnect()
        client.connect()
        assert client.get_stats()[0]["opackets"] == 0


def test_utilization_and_driver_counters(client: STLClient, transport: MockTransport) -> None:
    assert client.get_util_stats()["cpu"][0]["ports"] == [0, 1]
    transport.answer("get_port_xstats_names", {"xstats_names": ["rx_good", "tx_good"]})
    transport.answer("get_port_xstats_values", {"xstats_values": [1, 2]})
    assert client.get_xstats(0) == {"rx_good": 1, "tx_good": 2}


def test_events_read_as_lines() -> None:
    event = Event("Port 0 has started", ts=0.0)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d - \[server\]\[info\]     - Port 0 has started", str(event)
    )


def test_every_event_has_words() -> None:
    data = {
        "port_id": 3,
        "profile_id": "_",
        "who": "bob",
        "session_id": 5,
        "force": True,
        "cause": "asked to",
        "state": 4,
    }
    for kind in EventType:
        text, level = describe(kind, data, session_id=9)
        assert any(word in text for word in ("3", "asked to", "Transmitting", "Removed profile : _"))
        assert level in ("info", "warning")
    failed = {**data, "state": 1, "error": "no memory"}
    assert describe(EventType.PROFILE_STATE_CHANGED, failed, session_id=9) == (
        "Moved to profile _ state: Loaded after error: no memory",
        "error",
    )
    assert describe(EventType.STATE_CHANGED, {"state": 99}, session_id=9)[0] == "Moved to state: 99"
    assert describe(EventType.PORT_ACQUIRED, data, session_id=5) == (
        "Port 3 was forcely taken by you",
        "info",
    )
    assert describe(EventType.PORT_ACQUIRED, data, session_id=9) == (
        "Port 3 was forcely taken by 'bob'",
        "warning",
    )


def test_the_log_can_be_filtered_and_emptied(client: STLClient, transport: MockTransport) -> None:
    client.acquire([0])
    transport.publish(EventType.PORT_ERROR, port_id=1, thread_id=0)
    client._connection.session().drain_events()
    assert [event.msg for event in client.get_info()] == ["Port 0 was taken by you"]
    assert [event.msg for event in client.get_events(["warning"])] == ["Port 1 reported an error"]
    first = client.pop_event()
    assert first is not None
    assert first.ev_type == "info"
    client.clear_events()
    assert client.get_events() == []
    assert client.pop_event() is None


def test_the_public_surface_is_what_it_says() -> None:
    described = allosaur.__doc__ or ""
    for name in allosaur.__all__:
        assert re.search(rf"\b{name}\b", described), f"{name} is not in the package's docstring"
        value = getattr(allosaur, name)
        if inspect.isclass(value):
            assert value.__doc__, f"{name} has no docstring"
            assert re.fullmatch(r"allosaur(\.[a-z]+)*\._[a-z0-9_]+", value.__module__), name
    # The names stand in the indented lines.
    named = {name for line in re.findall(r"^    .*", described, re.M) for name in re.findall(r"\w+", line)}
    assert named == set(allosaur.__all__)
    assert set(dir(allosaur)) == {*allosaur.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'STLNothing'"):
        allosaur.STLNothing  # noqa: B018


def test_the_reference_page_is_fresh() -> None:
    """Written by tests/python/reference.py; run it after a change of the surface."""
    folder = Path(__file__).parent
    spec = importlib.util.spec_from_file_location("reference", folder / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    page = reference.PAGE.read_text()
    assert page == reference.render(), "run: python tests/python/reference.py"
    for name in allosaur.__all__:
        assert f"### {name}" in page


def test_every_public_method_of_the_client_is_documented() -> None:
    for name, method in inspect.getmembers(STLClient, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_importing_the_package_is_cheap() -> None:
    """The command line starts with this import: neither Scapy nor ZeroMQ may come with it."""
    heavy = "[name for name in ('scapy', 'zmq', 'yaml') if name in sys.modules]"
    assert python(f"import sys, allosaur, allosaur.server; print({heavy})") == "[]"
    loaded = python(
        "import sys, allosaur; allosaur.STLClient, allosaur.STLProfile; print('scapy' in sys.modules)"
    )
    assert loaded == "False"


@pytest.mark.parametrize("module", ["allosaur.api", "trex.stl.api", "trex_stl_lib.api"])
def test_every_import_name_gives_the_same_things(module: str) -> None:
    names = (
        "STLClient STLProfile STLError TRexError Ether IP IPv6 UDP TCP ICMP ARP Dot1Q GRE VXLAN DNS DHCP Raw"
    )
    code = f"from {module} import *\nimport allosaur\nassert STLClient is allosaur.STLClient\n"
    code += f"print(all([{', '.join(names.split())}]), CTRexVmInsFixHwCs.L4_TYPE_UDP)\n"
    code += f"from {module} import ISAKMP_payload_KE, Dot11\nprint(Dot11.__name__)\n"
    code += f"import {module} as api\nprint(hasattr(api, 'NoSuchLayer'))"
    assert python(code).split("\n") == ["True 11", "Dot11", "False"]


#: The parameters of TRex's methods, in their order: scripts give them by place and by name.
SIGNATURES = {
    "STLClient": "username server sync_port async_port verbose_level logger sync_timeout async_timeout",
    "STLClient.acquire": "ports force sync_streams",
    "STLClient.add_profile": "filename ports",
    "STLClient.add_streams": "streams ports",
    "STLClient.clear_stats": "ports clear_global clear_flow_stats clear_latency_stats clear_xstats",
    "STLClient.disconnect": "stop_traffic release_ports",
    "STLClient.get_events": "ev_type_filter",
    "STLClient.get_port_attr": "port",
    "STLClient.get_port_info": "ports",
    "STLClient.get_stats": "ports sync_now",
    "STLClient.get_xstats": "port_id",
    "STLClient.is_traffic_active": "ports",
    "STLClient.release": "ports",
    "STLClient.remove_all_streams": "ports",
    "STLClient.remove_streams": "stream_id_list ports",
    "STLClient.reset": "ports restart",
    "STLClient.server_shutdown": "force",
    "STLClient.set_port_attr": "ports promiscuous link_up led_on flow_ctrl multicast vxlan_fs",
    "STLClient.start": "ports mult force duration total core_mask synchronized",
    "STLClient.stop": "ports rx_delay_ms",
    "STLClient.wait_on_traffic": "ports timeout rx_delay_ms",
    "STLFlowLatencyStats": "pg_id vxlan ieee_1588",
    "STLFlowStats": "pg_id vxlan ieee_1588",
    "STLIPRange": "src dst fix_chksum",
    "STLPktBuilder": "pkt pkt_buffer vm path_relative_to_profile build_raw remove_fcs",
    "STLProfile": "streams",
    "STLProfile.from_json": "json_data",
    "STLProfile.load": "filename direction port_id",
    "STLScVmRaw": "list_of_commands cache_size",
    "STLStream": "name packet mode enabled self_start isg flow_stats next stream_id action_count random_seed "
    "mac_src_override_by_pkt mac_dst_override_mode dummy_stream start_paused core_id",
    "STLStream.from_json": "json_data",
    "STLTXMultiBurst": "pkts_per_burst ibg count",
    "STLTXSingleBurst": "total_pkts",
    "STLVM.fix_chksum": "offset",
    "STLVM.fix_chksum_hw": "l3_offset l4_offset l4_type",
    "STLVM.fix_chksum_icmpv6": "l3_offset l4_offset",
    "STLVM.repeatable_random_var": "fv_name size limit seed min_value max_value split_to_cores next_var",
    "STLVM.set_cached": "cache_size",
    "STLVM.trim": "fv_name",
    "STLVM.tuple_var": "name ip_min ip_max port_min port_max limit_flows",
    "STLVM.var": "name min_value max_value size op step split_to_cores next_var",
    "STLVM.write": "fv_name pkt_offset offset_fixup add_val byte_order",
    "STLVM.write_mask": "fv_name pkt_offset pkt_cast_size mask shift offset_fixup add_val byte_order",
    "STLVmFixChecksumHw": "l3_offset l4_offset l4_type",
    "STLVmFixIcmpv6": "l3_offset l4_offset",
    "STLVmFixIpv4": "offset",
    "STLVmFlowVar": "name init_value min_value max_value size step op value_list split_to_cores next_var",
    "STLVmFlowVarRepeatableRandom": "name size limit seed min_value max_value split_to_cores next_var",
    "STLVmTrimPktSize": "fv_name",
    "STLVmTupleGen": "name ip_min ip_max port_min port_max limit_flows flags",
    "STLVmWrFlowVar": "fv_name pkt_offset offset_fixup add_val is_big",
    "STLVmWrMaskFlowVar": "fv_name pkt_offset pkt_cast_size mask shift add_value offset_fixup is_big",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_scripts_written_for_trex_find_its_parameters(name: str) -> None:
    owner, _, method = name.partition(".")
    value = getattr(allosaur, owner)
    parameters = list(inspect.signature(getattr(value, method) if method else value).parameters)
    wanted = SIGNATURES[name].split()
    ours = [parameter for parameter in parameters if parameter != "self"]
    assert ours[: len(wanted)] == wanted


def test_functions_on_addresses_of_existing_scripts() -> None:
    from trex.utils import common

    assert common.ip2int("1.1.1.1") == common.ipv4_str_to_num(b"\1\1\1\1") == 0x01010101
    assert common.int2ip(0x01010101) == "1.1.1.1"
    assert common.increase_ip("1.1.1.255") == "1.1.2.0"
    assert common.increase_ipv6("::1", 2) == "::3"
    assert common.increase_mac("00:00:00:00:00:ff") == common.int2mac(0x100) == "00:00:00:00:01:00"
    assert common.mac2int("00:00:00:00:01:00") == common.mac_str_to_num(b"\0\0\0\0\1\0") == 0x100
    valid = [
        common.is_valid_ipv4("1.1.1.1"),
        common.is_valid_ipv6("::1"),
        common.is_valid_mac("02:00:00:00:00:01"),
    ]
    assert all(valid)
    for wrong in ("1.1.1", "x", None, 5):
        assert not (common.is_valid_ipv4(wrong) or common.is_valid_ipv6(wrong) or common.is_valid_mac(wrong))
