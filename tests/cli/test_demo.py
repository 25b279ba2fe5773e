"""`allosaur demo`: it passes, its report is there, and it would fail if packets were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli.demo import _checks, _flows, _profile
from allosaur.report._counters import PortCounters
from allosaur.report._flow_counters import FlowCounters, SideCounters
from allosaur.run import judge
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._result import FlowResult
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._result import StreamResult

RATE_PPS = 12_000.0


def test_the_demo_passes_and_writes_its_report(allosaur: Any, binary: str, tmp_path: Path) -> None:
    ended = allosaur("demo", "--seconds", "3", "--rate", "12kpps", "--report", "here.html", "--json")
    assert ended.code == 0, ended
    result = ended.json()
    assert result["ok"] is True
    assert [check["what"] for check in result["checks"] if not check["ok"]] == []
    assert (result["lost_packets"], result["missed_packets"]) == (0, 0)
    mix_and_bursts = 2 * (3 * RATE_PPS + _profile.CHAIN_PACKETS)
    assert result["total"]["tx_packets"] == pytest.approx(mix_and_bursts, rel=0.001)
    page = (tmp_path / "here.html").read_text(encoding="utf-8")
    assert "Passed." in page
    assert len(page) < 200_000
    flows = result["conversations"]
    assert flows["ok"] is True
    assert flows["offered_flows"] == pytest.approx(1500, abs=1)
    assert (
        flows["servers"]["tx_data_bytes"]
        == flows["clients"]["rx_data_bytes"]
        == (flows["offered_flows"] * 32_000)
    )
    assert "Flows over time" in page


def test_the_demo_tells_people_what_it_did(allosaur: Any, binary: str, tmp_path: Path) -> None:
    ended = allosaur("demo", "--seconds", "2", "--rate", "10kpps")
    assert ended.code == 0, ended
    for shown in (
        *("PASSED: all ", "Report: report.html", "Next:", "the burst chain ran to its end"),
        *("offered flows", "connections completed, and every byte of them was received"),
    ):
        assert shown in ended.out, shown
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("seconds", ["1", "0", "forever", "x"])
def test_too_short_or_without_end(allosaur: Any, seconds: str) -> None:
    allosaur("demo", f"--seconds={seconds}").refused("--seconds")


def test_a_report_that_cannot_be_written(allosaur: Any, tmp_path: Path) -> None:
    allosaur("demo", "--report", "no/folder/x.html").refused("no/folder", "make it first")
    allosaur("demo", "--report", tmp_path).refused("is a folder")


def test_a_rate_that_is_none(allosaur: Any) -> None:
    allosaur("demo", "--rate", "1gbps").refused("--rate", "200kpps")


# The checks themselves: each must fail when what it is about is wrong.


def good() -> PortCounters:
    """What one port counts in two seconds at RATE_PPS when all is well."""
    sizes = {"64": 14_000, "128-255": 3000, "512-1023": 8000, "1024-1518": 2000}
    packets, octets = sum(sizes.values()), 14_000 * 64 + 3000 * 200 + 8000 * 594 + 2000 * 1518
    counted = (packets, octets, packets, octets, 0, 0)
    return PortCounters(
        *counted, tx_lost_packets=0, rx_lost_packets=0, tx_by_size=sizes, rx_by_size=dict(sizes)
    )


def failed(ports: Mapping[int, PortCounters]) -> list[str]:
    outcome = StreamResult(Plan([0, 1], "1", 2.0, [0, 1]), ports, {}, elapsed_s=2.0)
    return [check.what for check in _checks.check(outcome, RATE_PPS) if not check.ok]


def test_all_is_well() -> None:
    assert failed({0: good(), 1: good()}) == []


def test_one_lost_packet_is_found() -> None:
    port = good()
    sizes = {**(port.rx_by_size or {}), "64": 13_999}
    lossy = replace(port, rx_packets=port.rx_packets - 1, rx_bytes=port.rx_bytes - 64, rx_by_size=sizes)
    assert failed({0: port, 1: lossy}) == [
        "port 0 to 1, packets received",
        "port 0 to 1, bytes received",
        "port 0 to 1, packets of each size",
    ]
    outcome = StreamResult(Plan([0, 1], "1", 2.0, [0, 1]), {0: port, 1: lossy}, {}, elapsed_s=2.0)
    assert not judge(outcome).ok


def test_a_packet_that_changed_its_size_is_found() -> None:
    port = good()
    sizes = {**(port.rx_by_size or {}), "64": 13_999, "65-127": 1}
    changed = replace(port, rx_bytes=port.rx_bytes + 6, rx_by_size=sizes)
    assert failed({0: port, 1: changed}) == [
        "port 0 to 1, bytes received",
        "port 0 to 1, packets of each size",
    ]


def test_a_missed_packet_is_found() -> None:
    assert failed({0: good(), 1: replace(good(), missed_packets=1)}) == ["port 1, nothing missed"]


def test_a_wrong_mix_and_a_short_chain_are_found() -> None:
    sizes = {"64": 14_020, "128-255": 2999, "512-1023": 7981, "1024-1518": 2000}
    odd = replace(good(), tx_by_size=sizes, rx_by_size=sizes)
    assert failed({0: odd, 1: odd}) == [
        "port 0, 64-byte packets as asked",
        "port 0, 594-byte packets as asked",
        "port 0, the burst chain ran to its end",
        "port 1, 64-byte packets as asked",
        "port 1, 594-byte packets as asked",
        "port 1, the burst chain ran to its end",
    ]


def test_a_server_without_these_counters_cannot_pass() -> None:
    poor = replace(good(), missed_packets=None, tx_by_size=None, rx_by_size=None)
    wrong = failed({0: poor, 1: poor})
    assert "port 0, nothing missed" in wrong
    assert "port 0 to 1, packets of each size" in wrong


# Of the conversations, too.


def talked(**changes: Any) -> FlowResult:
    """What a good run counts, with changes on the client's side."""
    flows = 1500
    good = {
        "begun_flows": flows,
        "connected_flows": flows,
        "tx_data_bytes": flows * 100,
        "rx_data_bytes": flows * 32_000,
    }
    client = SideCounters(**{**good, **changes})
    server = SideCounters(flows, flows, tx_data_bytes=flows * 32_000, rx_data_bytes=flows * 100)
    return FlowResult(FlowPlan(duration_s=3.0), FlowCounters(client, server, 0), elapsed_s=3.0)


@pytest.mark.parametrize(
    ("done", "wrong"),
    [
        (talked(), []),
        (talked(rx_data_bytes=1), ["bytes of answers received"]),
        (talked(begun_flows=1600), ["connections as asked", "flows that completed"]),
        (replace(talked(), counters=replace(talked().counters, missed_flows=3)), ["flows that were missed"]),
        (
            replace(talked(), counters=replace(talked().counters, errors={"client": {"tcps_conndrops": 1}})),
            ["error counters"],
        ),
    ],
)
def test_what_is_wrong_with_conversations_is_found(done: FlowResult, wrong: list[str]) -> None:
    failed_checks = [one.what for one in _flows.check(done) if not one.ok]
    expected = {f"flows, {what}" for what in wrong}
    assert expected <= set(failed_checks)
    assert bool(failed_checks) == bool(wrong)
