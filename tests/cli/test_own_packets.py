"""A run counts its own packets: what others send to its ports neither hides a loss nor makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLFlowLatencyStats, STLFlowStats, STLPktBuilder, STLStream, STLTXCont
from allosaur.report._counters import PortCounters
from allosaur.report._streams import StreamCounters
from allosaur.run import judge
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._groups import (
    Grouping,
    Row,
    assign,
    can_carry_sign,
    lost_and_duplicates,
    stream_counters,
)
from allosaur.run.streams._result import StreamResult
from allosaur.server import LocalServer
from scapy.all import ARP, IP, UDP, Dot1Q, Ether, IPv6, IPv6ExtHdrFragment, wrpcap

UDP_PACKET = Ether() / IP(dst="48.0.0.1") / UDP(sport=1, dport=2) / bytes(18)
FIRST_SIGN = 0xFC00
"""The identification of packets of the first group of a server."""


def row(port: int, sent: int, by_port: Mapping[int, int], duplicates: int = 0) -> StreamCounters:
    lost, twice = lost_and_duplicates(sent, by_port, known_duplicates=duplicates)
    return StreamCounters(
        port, ["udp"], 7 + port, tx_packets=sent, rx_packets=sum(by_port.values()), rx_by_port=by_port,
        lost_packets=lost, duplicate_packets=twice,
    )  # fmt: skip


def outcome(counters: Mapping[int, PortCounters], streams: list[StreamCounters]) -> StreamResult:
    sending = [one.port for one in streams]
    rows = [Row(one.port, one.pg_id, one.names, [one.port]) for one in streams]
    plan = Plan(sending, "1", 1.0, sorted(counters))
    return StreamResult(plan, counters, {}, elapsed_s=1.0, grouping=Grouping(rows), streams=streams)


def test_packets_of_others_hide_no_loss() -> None:
    counters = {0: PortCounters(tx_packets=100), 1: PortCounters(rx_packets=130)}
    run = outcome(counters, [row(0, 100, {1: 97})])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets, run.other_packets) == (False, 3, {0: 0, 1: 33})


def test_a_direction_makes_up_for_no_other() -> None:
    counters = {port: PortCounters(tx_packets=100, rx_packets=100) for port in (0, 1)}
    run = outcome(counters, [row(0, 100, {1: 95}), row(1, 100, {0: 105})])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets, run.duplicate_packets) == (False, 5, 5)
    assert "5 of 100 from port 0" in verdict.summary
    assert (
        "5 packets more were received than were sent (5 of port 1's, which arrived at port 0)"
        in verdict.summary
    )


def test_a_stream_makes_up_for_no_other_of_its_port() -> None:
    counters = {0: PortCounters(tx_packets=200), 1: PortCounters(rx_packets=200)}
    streams = [row(0, 100, {1: 90}), replace(row(0, 100, {1: 110}), pg_id=8)]
    run = outcome(counters, streams)
    assert (run.lost_packets, run.duplicate_packets) == (10, 10)


def test_a_packet_that_came_twice_is_no_other_packet() -> None:
    # Sequence numbers tell: four came twice, and four others never came.
    run = outcome({0: PortCounters(tx_packets=50), 1: PortCounters()}, [row(0, 50, {1: 50}, 4)])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets, run.duplicate_packets) == (False, 4, 4)


def test_what_this_machine_did_not_take_in_time_is_no_loss_of_the_device() -> None:
    counters = {0: PortCounters(tx_packets=100), 1: PortCounters(rx_packets=90, rx_overflow_packets=10)}
    run = outcome(counters, [row(0, 100, {1: 90})])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets) == (False, 10)
    assert "10 that arrived at port 1 were not taken in time by this machine" in verdict.summary


def test_a_link_that_went_down_is_named_with_the_loss() -> None:
    change = "the link of port 1 went down (no carrier) 0.5 s after the start"
    counters = {0: PortCounters(tx_packets=100), 1: PortCounters(rx_packets=50)}
    run = replace(outcome(counters, [row(0, 100, {1: 50})]), link_changes=[change])
    assert change in judge(run).summary
    whole = replace(outcome(counters, [row(0, 100, {1: 100})]), link_changes=[change])
    assert judge(whole).ok


def test_packets_may_come_back_at_any_port() -> None:
    counters = {0: PortCounters(tx_packets=10), 1: PortCounters()}
    run = outcome(counters, [row(0, 10, {1: 4, 2: 6})])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets) == (True, 0)
    assert run.directions[0].received_by_port == {1: 4, 2: 6}


def test_each_receiver_of_a_multicast_may_have_all() -> None:
    assert lost_and_duplicates(10, {1: 10, 2: 10, 3: 9}, to_many=True) == (0, 0)
    assert lost_and_duplicates(10, {1: 8, 2: 12}, to_many=True) == (0, 2)
    assert lost_and_duplicates(10, {1: 10, 2: 10}) == (0, 10)


def test_a_group_that_the_server_does_not_tell_of_is_no_success() -> None:
    run = outcome({0: PortCounters(tx_packets=10), 1: PortCounters(rx_packets=9)}, [row(0, 10, {1: 10})])
    run = replace(run, streams=[])
    verdict = judge(run)
    assert (verdict.ok, run.lost_packets, run.counted_by) == (False, 1, "ports")


def test_ports_that_received_more_say_so() -> None:
    counters = {0: PortCounters(tx_packets=10), 1: PortCounters(rx_packets=13)}
    grouping = Grouping.none([0], "a capture is sent as it was recorded")
    run = StreamResult(Plan([0], "1", 1.0, [0, 1]), counters, {}, elapsed_s=1.0, grouping=grouping)
    verdict = judge(run)
    assert (verdict.ok, run.counted_by) == (True, "ports")
    for words in ("counted by ports", "as it was recorded", "3 more were received than sent, which may hide"):
        assert words in verdict.summary


@pytest.mark.parametrize(
    ("packet", "can"),
    [
        (UDP_PACKET, True),
        (Ether() / Dot1Q(vlan=1) / Dot1Q(vlan=2) / IP() / UDP(), True),
        (Ether() / IPv6() / UDP(), True),
        (Ether() / ARP(), False),
        (Ether() / IP(flags="MF") / UDP(), False),
        (Ether() / IP(frag=3) / bytes(20), False),
        (Ether() / IPv6() / IPv6ExtHdrFragment() / UDP(), False),
        (Ether() / Dot1Q() / Dot1Q() / Dot1Q() / IP() / UDP(), False),
        (Ether(type=0x0800) / bytes(10), False),
    ],
    ids=["UDP", "two tags", "IPv6", "ARP", "first fragment", "later", "of IPv6", "three tags", "cut off"],
)
def test_which_packets_can_have_a_group(packet: Any, can: bool) -> None:
    assert can_carry_sign(bytes(packet)) is can


@pytest.mark.parametrize(
    ("offset", "can"),
    [(12, False), (14, False), (16, True), (17, False), (18, False), (19, False), (20, True)],
)
def test_the_field_engine_must_leave_the_sign_alone(offset: int, can: bool) -> None:
    program = [
        {"type": "flow_var", "name": "x", "size": 2},
        {"type": "write_flow_var", "name": "x", "pkt_offset": offset},
    ]
    assert can_carry_sign(bytes(UDP_PACKET), program) is can


class Groups:
    """A client of a server with so many packet groups, of which others have some."""

    def __init__(self, room: int, taken: list[int]) -> None:
        self._room = room
        self._taken = taken

    def get_active_pgids(self) -> dict[str, list[int]]:
        return {"flow_stats": self._taken, "latency": []}

    def get_port(self, number: int) -> Any:
        rx = {"caps": ["flow_stats"] if self._room else [], "counters": self._room}
        return type("Port", (), {"info": {"rx": rx}})


def streams(count: int, **fields: Any) -> list[STLStream]:
    packet = STLPktBuilder(pkt=UDP_PACKET)
    return [STLStream(packet=packet, mode=STLTXCont(pps=1), **fields) for _ in range(count)]


def test_each_stream_has_a_group_of_its_own_and_keeps_the_one_it_has() -> None:
    of_port = [
        *streams(2),
        *streams(1, flow_stats=STLFlowStats(5)),
        *streams(1, flow_stats=STLFlowLatencyStats(6)),
    ]
    grouping = assign(Groups(10, [1, 2]), {0: of_port})  # type: ignore[arg-type]
    numbers = [stream.get_pg_id() for stream in of_port]
    assert numbers[2:] == [5, 6] and len(set(numbers)) == 4
    assert [one.pg_id for one in grouping.rows] == numbers
    assert not grouping.ungrouped


def test_with_too_few_groups_the_streams_of_a_port_share_one() -> None:
    of_ports = {0: streams(3), 1: streams(3)}
    grouping = assign(Groups(5, [1]), of_ports)  # type: ignore[arg-type]
    assert [(one.port, list(one.names)) for one in grouping.rows] == [
        (0, ["stream 1", "stream 2", "stream 3"]),
        (1, ["stream 1", "stream 2", "stream 3"]),
    ]
    assert len({one.pg_id for one in grouping.rows}) == 2


@pytest.mark.parametrize(("room", "taken"), [(1, []), (0, []), (3, [1, 2, 3])])
def test_without_groups_the_ports_are_counted(room: int, taken: list[int]) -> None:
    of_ports = {0: streams(1), 1: streams(1)}
    grouping = assign(Groups(room, taken), of_ports)  # type: ignore[arg-type]
    assert grouping.ungrouped == {0: ["stream 1"], 1: ["stream 1"]}
    assert grouping.reasons == ["the server has no packet group left, or counts none"] or room == 1
    assert all(stream.get_pg_id() is None for of_port in of_ports.values() for stream in of_port)


def test_a_group_that_others_use_too_tells_nothing() -> None:
    grouping = assign(Groups(9, [5]), {0: streams(1, flow_stats=STLFlowStats(5))})  # type: ignore[arg-type]
    assert (grouping.rows, list(grouping.ungrouped)) == ([], [0])
    assert "packet group 5" in grouping.reasons[0]


def test_ports_that_share_a_group_receive_from_the_other_end_of_their_wire() -> None:
    grouping = Grouping([Row(0, 5, ["a"], [0, 1]), Row(1, 5, ["a"], [0, 1])])
    stats = {"flow_stats": {5: {
        "tx_pkts": {0: 10, 1: 20, "total": 30}, "rx_pkts": {0: 18, 1: 10, "total": 28},
        "tx_bytes": {}, "rx_bytes": {},
    }}}  # fmt: skip
    assert [one.lost_packets for one in stream_counters(grouping, stats)] == [0, 2]


# Against a server: ports in memory lose as they are told.

BURST = "STLTXSingleBurst(total_pkts=1000, pps=5000)"


def test_a_link_that_loses_fails_in_its_direction_only(allosaur: Any, profile: Callable[..., Path]) -> None:
    ports = "memory:loss=10%:seed=7,memory"
    ended = allosaur(
        "run", profile(mode=BURST), "--local", "--local-ports", ports, "--ports", "0,1", "--json"
    )
    result = ended.json()
    lost = result["ports"]["1"]["rx_lost_packets"]
    assert (ended.code, result["lost_packets"], result["counted_by"]) == (1, lost, "groups")
    assert [one["lost_packets"] for one in result["directions"]] == [lost, 0]
    assert [one["lost_packets"] for one in result["streams"]] == [lost, 0]
    assert 50 < lost < 150


def test_packets_that_come_twice_fail(allosaur: Any, profile: Callable[..., Path], tmp_path: Path) -> None:
    """Somebody sends copies: they carry the sign of the run's only group, and arrive at another port."""
    copy = UDP_PACKET.copy()
    copy[IP].id = FIRST_SIGN
    wrpcap(str(tmp_path / "copy.pcap"), copy)
    with (
        LocalServer(ports=["memory"] * 4, options=["--captures-folder", "/"]) as server,
        server.client() as other,
    ):
        other.acquire(ports=[2])
        other.push_remote(str(tmp_path / "copy.pcap"), ports=[2], ipg_usec=5_000, count=0)
        where = ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]
        ended = allosaur("run", profile(mode=BURST), *where, "--json")
    result = ended.json()
    assert (ended.code, result["lost_packets"]) == (1, 0), result["verdict"]
    assert result["duplicate_packets"] > 0
    assert result["directions"][0]["received_by_port"] == {"1": 1000, "3": result["duplicate_packets"]}
    assert "more were received than were sent" in result["verdict"]


@pytest.mark.parametrize(
    ("packet", "options"),
    [("Ether(type=0x88b5) / bytes(46)", []), ("Ether() / IP() / UDP() / bytes(18)", ["--port-counters"])],
    ids=["no IP", "unwanted"],
)
def test_packets_without_a_group_are_counted_by_ports_and_that_is_said(
    allosaur: Any, profile: Callable[..., Path], packet: str, options: list[str]
) -> None:
    ended = allosaur("run", profile(packet=packet, mode=BURST), *options, "--local", "--json")
    result = ended.json()
    assert (ended.code, result["counted_by"], result["streams"]) == (0, "ports", [])
    assert "counted by ports, where packets of others count too" in result["verdict"]


def test_latency_of_single_streams_is_shown(allosaur: Any) -> None:
    path = Path(__file__).resolve().parents[2] / "profiles" / "latency_streams.py"
    ended = allosaur("run", path, "--local", "-d", "500ms", "-m", "5kpps", "--json")
    result = ended.json()
    timed, background = result["streams"][1], result["streams"][0]
    assert (timed["pg_id"], timed["out_of_order_packets"], background["latency"]) == (7, 0, None)
    times = timed["latency"]
    assert 0 < times["min_us"] <= times["p50_us"] <= times["p99_us"] <= times["p99_9_us"] <= times["max_us"]
    assert times["jitter_us"] >= 0
    text = allosaur("run", path, "--local", "-d", "500ms", "-m", "5kpps").out
    assert all(word in text for word in ("latency", "p50", "p99.9", "jitter", "out of order"))
