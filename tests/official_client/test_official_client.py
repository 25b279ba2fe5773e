"""TRex's official client, unchanged, works against our server: the calls that automation scripts make."""

from __future__ import annotations

from typing import Any

import pytest
from allosaur.server import LocalServer


@pytest.fixture
def run(official: Any) -> Any:
    """Run one scenario of session.py against a fresh server, and return what it printed."""
    return official


def check_nothing_lost(run: dict[str, dict[str, int]]) -> None:
    """What one port sent, the other received, in packets and bytes, without an error."""
    for here, there in (("0", "1"), ("1", "0")):
        assert run[here]["opackets"] == run[there]["ipackets"]
        assert run[here]["obytes"] == run[there]["ibytes"]
        assert run[here]["oerrors"] == run[here]["ierrors"] == 0
    assert run["total"]["opackets"] == run["0"]["opackets"] + run["1"]["opackets"]
    assert run["total"]["ipackets"] == run["total"]["opackets"]


# Packets of 64 bytes with FCS: 5.12 Mbit/s are 10,000 a second; so are 6.72 Mbit/s with preamble and gap.
RATES_PPS = {"100": 10_000, "20kpps": 20_000, "5.12mbps": 10_000, "6.72mbpsl1": 10_000}


def test_starts_at_each_kind_of_multiplier(run: Any) -> None:
    seen = run("multipliers")
    rates = RATES_PPS | {"0.01%": 0.0001 * seen["line_rate_gbps"] * 1e9 / (84 * 8)}
    assert set(seen["runs"]) == set(rates)
    for mult, pps in rates.items():
        counted = seen["runs"][mult]
        check_nothing_lost(counted)
        for port in ("0", "1"):
            # Asked for half a second; what a busy machine could not send in time is told, not hidden.
            offered = counted[port]["opackets"] + counted[port]["missed"]
            assert offered == pytest.approx(pps / 2, rel=0.001, abs=1), mult
            assert counted[port]["opackets"] > 0
            assert counted[port]["obytes"] == 64 * counted[port]["opackets"]
    assert seen["warnings"] == []


def test_waits_for_the_end_of_a_chain_of_bursts(run: Any) -> None:
    seen = run("bursts")
    chain = seen["runs"]["chain"]
    check_nothing_lost(chain)
    for port in ("0", "1"):
        assert chain[port]["opackets"] == 300 + 4 * 50
        assert chain[port]["obytes"] == 300 * 64 + 4 * 50 * 128
    assert seen["warnings"] == []


def test_stops_traffic_and_clears_statistics(run: Any) -> None:
    seen = run("stop_early")
    assert seen["active_while_running"] == [0, 1]
    assert seen["active_after_stop"] == []
    stopped = seen["runs"]["stopped"]
    check_nothing_lost(stopped)
    assert stopped["total"]["opackets"] >= 500
    assert seen["runs"]["later"]["total"] == stopped["total"], "packets were sent after stop() came back"
    assert seen["runs"]["cleared"]["total"] == {"opackets": 0, "ipackets": 0}


def test_second_user_is_refused_and_takes_a_port_by_force(run: Any) -> None:
    seen = run("two_users")
    assert "taken" in seen["refused"]
    assert "first" in seen["refused"]
    assert seen["second_sees_running"] == [0, 1]
    assert seen["first_has"] == [1]
    assert seen["second_has"] == [0]
    assert seen["first_is_refused"] is not None
    assert seen["port_1_goes_on"]


def test_refused_calls_say_why_and_leave_the_server_working(run: Any) -> None:
    seen = run("refusals")
    assert seen["no_streams"]
    assert seen["over_line_rate"]
    assert "fly_to_the_moon" in seen["unknown_method"]
    check_nothing_lost(seen["runs"]["after"])
    assert seen["runs"]["after"]["total"]["opackets"] > 0


def test_starts_ports_together_on_chosen_cores(run_on: Any) -> None:
    with LocalServer(ports=["memory", "memory"], cores=2, options=["--captures-folder", "/"]) as server:
        seen = run_on(server, "together")
    assert set(seen["runs"]) == {"split", "pin", "single"}
    for counted in seen["runs"].values():
        check_nothing_lost(counted)
        for port in ("0", "1"):
            assert counted[port]["opackets"] + counted[port]["missed"] == 200
    assert seen["warnings"] == []


def test_pauses_resumes_and_updates_while_traffic_runs(run: Any) -> None:
    seen = run("changes")
    assert seen["idle"] is not None
    moves = ("starts", "resumes", "stream_resumes")
    stops = ("paused_still", "streams_still")
    assert {name: seen[name] for name in moves + stops} == dict.fromkeys(moves + stops, True)
    assert seen["paused_while_one_runs"] == []
    assert seen["paused"] == [0]
    assert seen["transmitting"] == [0]
    assert "exceeds port line rate" in seen["too_fast"]
    assert "is not continuous" in seen["burst"]
    counted = seen["counters"]
    assert counted["0"]["opackets"] == counted["1"]["ipackets"] > 0


def test_streams_are_counted_and_measured_without_loss(run: Any) -> None:
    seen = run("groups")
    assert seen["active"] == {"flow_stats": [7], "latency": [12]}
    assert seen["active_after"] == {"flow_stats": [], "latency": []}
    assert "which stream 2 of profile_id(_) on port 0 has" in seen["twice"]
    for stats in seen["runs"]:
        counted, measured = stats["flow_stats"]["7"], stats["flow_stats"]["12"]
        everywhere = {"0": 2000, "1": 2000, "total": 4000}
        assert counted["tx_pkts"] == counted["rx_pkts"] == everywhere
        assert counted["tx_bytes"] == counted["rx_bytes"] == {port: 64 * n for port, n in everywhere.items()}
        assert measured["tx_pkts"] == {"0": 500, "1": 0, "total": 500}
        assert measured["rx_pkts"] == {"0": 0, "1": 500, "total": 500}
        latency = stats["latency"]["12"]
        assert set(latency["err_cntrs"].values()) == {0}
        assert sum(latency["latency"]["histogram"].values()) == 500
        assert latency["latency"]["hdrh"].startswith("HISTFAAA")
        assert stats["latency"]["global"] == {"bad_hdr": 0, "old_flow": 0}
