"""Packet groups: from the server's counters to the dictionary that scripts read."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.client._pgid import PgidBook
from allosaur.rpc._rpc import Rpc
from allosaur.testing import MockTransport


def groups(sent: int, version: int = 1, histogram: dict[str, int] | None = None) -> dict[str, Any]:
    """What a server answers of the groups 7 and 12; only 12 has latency."""
    counters = {
        "rp": {"0": 0, "1": sent},
        "rb": {"0": 0, "1": 64 * sent},
        "tp": {"0": sent, "1": 0},
        "tb": {"0": 64 * sent, "1": 0},
        "rps": {"0": 0.0, "1": 10.0},
        "rbs": {"0": 0.0, "1": 5120.0},
        "tps": {"0": 10.0, "1": 0.0},
        "tbs": {"0": 5120.0, "1": 0.0},
    }
    latency = {"jit": 3, "average": 2.5, "total_max": 90, "total_min": 1, "last_max": 40}
    return {
        "flow_stats": {"7": counters, "12": counters},
        "latency": {
            "12": {"lat": {**latency, "histogram": histogram or {"0": sent}}, "er": {"drp": sent // 10}},
            "g": {"old_flow": 4},
        },
        "ver_id": {"7": version, "12": version},
    }


def histogram(counts: dict[int, int]) -> str:
    """An HdrHistogram of times below 64 µs, by hand."""
    payload = b"".join(varint(2 * counts.get(time, 0)) for time in range(64))
    header = struct.pack(">iiiiqqd", 0x1C849303, len(payload), 0, 3, 1, 10_000_000, 1.0)
    compressed = zlib.compress(header + payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849304, len(compressed)) + compressed).decode()


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


@pytest.fixture
def server() -> MockTransport:
    transport = MockTransport()
    transport.answer("get_active_pgids", {"ids": {"flow_stats": [7], "latency": [12]}})
    transport.answer("get_pgid_stats", groups(100))
    return transport


def read(book: PgidBook, server: MockTransport) -> list[int]:
    return book.read(Rpc(server, timeout_s=1, task_timeout_s=1), [0, 1])


def test_groups_have_their_counters_by_port_and_in_total(server: MockTransport) -> None:
    book = PgidBook()
    assert read(book, server) == [7, 12]
    group = book.flow_stats()[7]
    assert group["tx_pkts"] == {0: 100, 1: 0, "total": 100}
    assert group["rx_bytes"] == {0: 0, 1: 6400, "total": 6400}
    assert group["rx_bps_l1"] == {0: 0.0, 1: 5120 + 1600, "total": 5120 + 1600}
    assert "missed_pkts" not in group
    assert book.flow_stats()["global"] == {"rx_err": {0: 0, 1: 0}, "tx_err": {0: 0, 1: 0}}
    assert book.latency() == {
        "global": {"old_flow": 4, "bad_hdr": 0},
        12: {
            "err_cntrs": {"dropped": 10, "out_of_order": 0, "dup": 0, "seq_too_high": 0, "seq_too_low": 0},
            "latency": {
                "jitter": 3,
                "average": 2.5,
                "total_max": 90,
                "total_min": 1,
                "last_max": 40,
                "histogram": {0: 100},
            },
        },
    }


def test_cleared_groups_count_from_there(server: MockTransport) -> None:
    book = PgidBook()
    read(book, server)
    book.clear(flow_stats=True, latency=True)
    server.answer("get_pgid_stats", groups(130, histogram={"0": 100, "20": 30}))
    read(book, server)
    assert book.flow_stats()[7]["tx_pkts"]["total"] == 30
    latency = book.latency()[12]
    assert latency["err_cntrs"]["dropped"] == 3
    assert latency["latency"]["histogram"] == {20: 30}
    assert latency["latency"]["total_max"] == 40


def test_packets_that_a_group_missed_are_told_by_our_server(server: MockTransport) -> None:
    book = PgidBook()
    for missed in (5, 12):
        answer = groups(100)
        answer["flow_stats"]["7"]["missed"] = {"0": missed, "1": 0}
        server.answer("get_pgid_stats", answer)
        read(book, server)
        if missed == 5:
            assert book.flow_stats()[7]["missed_pkts"] == {0: 5, 1: 0, "total": 5}
            book.clear(flow_stats=True, latency=True)
    assert book.flow_stats()[7]["missed_pkts"] == {0: 7, 1: 0, "total": 7}


def test_clearing_one_part_leaves_the_other(server: MockTransport) -> None:
    book = PgidBook()
    read(book, server)
    book.clear(flow_stats=True, latency=False)
    read(book, server)
    assert book.flow_stats()[12]["tx_pkts"]["total"] == 0
    assert book.latency()[12]["latency"]["histogram"] == {0: 100}


def test_percentiles_are_those_since_the_group_was_cleared(server: MockTransport) -> None:
    # By hand: a thousand packets of 1 µs, then a hundred of 5 µs and one of 7 µs.
    before = {"packets": 1000, "sum_ns": 1_500_000, "p50": 1.5, "p99_9": 1.5, "hdrh": histogram({1: 1000})}
    after = {"packets": 1101, "sum_ns": 2_057_500, "p50": 1.5, "p99_9": 7.5}
    after["hdrh"] = histogram({1: 1000, 5: 100, 7: 1})

    def answer(lat: dict[str, Any]) -> dict[str, Any]:
        answered = groups(100)
        answered["latency"]["12"]["lat"].update(lat)
        return answered

    book = PgidBook()
    server.answer("get_pgid_stats", answer(before))
    read(book, server)
    assert book.latency()[12]["latency"]["p50"] == 1.5
    book.clear(flow_stats=False, latency=True)
    server.answer("get_pgid_stats", answer(after))
    read(book, server)
    latency = book.latency()[12]["latency"]
    assert (latency["total_min"], latency["p50"], latency["p99"], latency["p99_9"]) == (5, 5, 5, 7)
    assert (latency["average"], latency["total_max"]) == (5.52, 7)
    assert latency["hdrh"] == after["hdrh"]
    server.answer("get_pgid_stats", answer(before))
    book.clear(flow_stats=False, latency=True)
    read(book, server)
    assert book.latency()[12]["latency"]["p50"] == 0


def test_a_group_that_was_made_anew_has_no_reference(server: MockTransport) -> None:
    book = PgidBook()
    read(book, server)
    book.clear(flow_stats=True, latency=True)
    server.answer("get_pgid_stats", groups(5, version=2))
    read(book, server)
    assert book.flow_stats()[7]["tx_pkts"]["total"] == 5


def test_the_client_shows_them(server: MockTransport) -> None:
    client = STLClient(transport=server)
    client.connect()
    assert client.get_active_pgids() == {"flow_stats": [7], "latency": [12]}
    assert client.get_pgid_stats()["ver_id"] == {7: 1, 12: 1}
    client.disconnect()
