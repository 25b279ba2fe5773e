"""TRex's official client with ports as hosts and witnesses: captures, files, services, events, readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MINE, THEIRS, THEIRS6 = "192.0.2.1", "192.0.2.2", "2001:db8::2"
THEIR_MAC = "02:a1:05:00:00:01"


def test_captures_are_filtered_limited_cut_and_fetched(official: Any, tmp_path: Path) -> None:
    seen = official("captures", str(tmp_path))
    assert "does not compile" in seen["bad_filter"]
    status = seen["status"]
    matched = {name: (one["matched"], one["count"]) for name, one in status.items()}
    assert matched == {
        "web": (10, 10),
        "newest": (20, 5),
        "oldest": (40, 5),
        "cut": (20, 20),
        "nothing": (0, 0),
    }
    assert (status["newest"]["mode"], status["web"]["filter"]["bpf"]) == ("cyclic", "tcp dst port 80")
    assert {one["state"] for one in status.values()} == {"ACTIVE"}
    # What was fetched is not given again.
    assert seen["fetched"] == [1, 3, 5, 7]
    assert [int(number, 16) for number in seen["file"]] == [9, 11, 13, 15, 17, 19]
    assert seen["got"]["newest"] == [15, 16, 17, 18, 19]
    assert seen["got"]["nothing"] == []
    assert len(seen["got"]["oldest"]) == 5
    assert {tuple(origin) for origin in seen["origins"]} <= {("TX", 0), ("RX", 1)}
    assert seen["lengths"] == [[20], 20]
    assert seen["whole_lengths"] == [90]
    assert seen["in_order"]
    assert "does not exist" in seen["unknown"]
    assert seen["many"] == 10
    assert "10 captures" in seen["one_too_many"]
    assert seen["left"] == 0


def test_files_are_sent_by_the_client_and_by_the_server(official: Any, tmp_path: Path) -> None:
    seen = official("files", str(tmp_path))
    packets = {
        "push_pcap": 90,
        "push_pcap_recorded": 30,
        "push_remote": 90,
        "push_remote_recorded": 30,
        "after": 30,
    }
    sent = {name: (run["0"]["opackets"], run["1"]["ipackets"]) for name, run in seen["runs"].items()}
    assert sent == {name: (count, count) for name, count in packets.items()}
    for name, run in seen["runs"].items():
        assert run["0"]["obytes"] == run["1"]["ibytes"] == 94 * packets[name]
    for name, word in (("truncated", "cut off"), ("empty", "empty file"), ("no_capture", "not a capture")):
        assert f"{name}.pcap" in seen[name], seen[name]
        assert word in seen[name], seen[name]
    assert "no such file" in seen["missing"]


def test_ports_are_hosts_that_find_each_other(official: Any) -> None:
    seen = official("hosts")
    reply = f"Reply from {THEIRS}: bytes={{}}, time, TTL=64"
    assert seen["resolved"] == [0, 1]
    assert seen["gateway"] == [THEIRS, THEIR_MAC]
    assert seen["ping"] == [reply.format(1000)] * 3
    assert seen["nobody"] == ["Request timed out."]
    assert seen["vlan"] == "100/200 (QinQ)"
    assert seen["ping_vlans"] == [reply.format(64)] * 2
    assert seen["ping6"] == [f"Reply from {THEIRS6}: bytes=64, time, hlim=64"] * 2
    assert THEIRS6 in seen["scan6"]
    # The ARP service's record is misspelt in the client.
    assert seen["services"] == [f"Recieved ARP reply from: {THEIRS}", f"Reply from {THEIRS}: bytes=64"]
    assert seen["map"] == {"map": {"0": 1, "1": 0}, "bi": [[0, 1]], "unknown": []}
    assert seen["l2"] == "02:a1:05:00:00:77"
    assert "service mode" in seen["without_service"]


def test_received_packets_are_queued_and_given_to_a_socket(official: Any) -> None:
    seen = official("queues")
    assert "needs service mode" in seen["without_service"]
    assert seen["queue"] == list(range(4, 12)), "the queue holds the newest eight"
    assert seen["drained"] == 0
    assert seen["capture_port"] == [1, 3, 5]
    assert seen["other_filter"] == [0, 2, 4]
    assert seen["sent_by_socket"] == [0, 1, 2, 3]


RUNS = [
    *("Profile 0._ has started", "Port 0 has started", "Profile 0._ job done", "Port 0 job done"),
    *("Profile 1._ has started", "Port 1 has started", "Profile 1._ has paused", "Port 1 has paused"),
    *("Profile 1._ has resumed", "Port 1 has resumed", "Profile 1._ has stopped", "Port 1 has stopped"),
]


def test_both_users_hear_of_every_transition_once_and_in_order(official: Any) -> None:
    seen = official("events")
    # The first one changed the attribute, and mostly knows it before the event comes.
    attributes = "port 0 attributes changed\n  prom: off -> on"
    assert [text for text in seen["first"] if text != attributes] == [
        *RUNS,
        "Port 1 was forcely taken by 'second'",
        "Port 1 was released by 'second'",
        "Port 0 was released by you",
    ]
    assert seen["second"] == [
        *RUNS,
        attributes,
        "Port 1 was forcely taken by you",
        "Port 1 was released by you",
        "Port 0 was released by 'first'",
    ]
    assert seen["warnings"] == ["Port 1 was forcely taken by 'second'"]


def test_a_reader_sees_everything_and_changes_nothing(official: Any) -> None:
    seen = official("reader")
    assert all(refused and ("owned" in refused or "acquired" in refused) for refused in seen["refused"])
    assert "acquired" in seen["stop_refused"]
    assert seen["active"] == [0]
    assert seen["counts"]
    assert seen["active_after"] == []
    assert seen["warnings"] == []


def test_switches_of_the_scheduler_are_kept(official: Any) -> None:
    seen = official("config")
    assert seen["before"] == {"sched_max_stretch": 0.0, "process_at_cp": False, "do_mbuf_cache": False}
    assert seen["after"] == {"sched_max_stretch": 200.0, "process_at_cp": True, "do_mbuf_cache": False}


def test_all_users_hear_that_the_server_ends(official: Any) -> None:
    seen = official("server_ends")
    assert seen["ended"] == [True, True]
    assert seen["texts"] == [["Server has been shutdown - cause: 'shutdown by 'first''"]] * 2
