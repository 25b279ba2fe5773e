"""How flows are judged: each way in which they end, on ends that are ours or not, by the run and thresholds.

Against a mock server; what real peers do is in `tests/ports/test_endings.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from allosaur.cli.ndr import _flows as ndr_flows
from allosaur.report._flow_counters import FlowCounters, SideCounters
from allosaur.report._flow_outcomes import FAILED, Outcomes, SideOutcomes
from allosaur.run import Verdict, _summary, _thresholds, judge, judge_by
from allosaur.run.flows import _access
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._metrics import METRICS
from allosaur.run.flows._result import FlowResult
from allosaur.run.flows._verdict import failed_flows
from allosaur.testing import MockStatefulTransport

ROOT = Path(__file__).resolve().parents[2]
HTTP = ROOT / "profiles" / "stateful" / "http.py"
SAID = {
    "reset": "were reset by the peer",
    "closed_early": "were closed by the peer before their end",
    "timed_out": "timed out",
    "refused": "were refused",
    "cut_off": "were cut off by the end of the test",
    "aborted": "were given up here",
    "unanswered": "got no data",
}
CLIENT = SideCounters(begun_flows=40, connected_flows=40, tx_data_bytes=400, rx_data_bytes=9_000)
SERVER = SideCounters(begun_flows=40, connected_flows=40, tx_data_bytes=9_000, rx_data_bytes=400)
COMPLETED = SideOutcomes(completed=40)


def ended(
    client: SideOutcomes | None = COMPLETED, server: SideOutcomes | None = COMPLETED, **more: Any
) -> FlowResult:
    """A run of 40 flows; without outcomes of a side, that side is not ours."""
    counters = FlowCounters(
        CLIENT if client else SideCounters(),
        SERVER if server else SideCounters(),
        0,
        more.pop("errors", {}),
        Outcomes(client or SideOutcomes(), server or SideOutcomes(), more.pop("times", {})),
    )
    plan = FlowPlan(**{"duration_s": 2.0, "client_mask": 0xFFFFFFFF if client else 0, **more.pop("plan", {})})
    return FlowResult(plan, counters, elapsed_s=2.0, **more)


def by(result: FlowResult, *words: str) -> Verdict:
    thresholds = _thresholds.read(words, METRICS)
    return judge_by(thresholds, result, _summary.document(result, judge(result)))


def some(name: str, count: int) -> SideOutcomes:
    return SideOutcomes(**{"completed": 40 - (0 if name == "unanswered" else count), name: count})


@pytest.mark.parametrize("ours", ["client", "server", "both"])
@pytest.mark.parametrize("name", FAILED)
def test_each_way_to_end_fails_the_run(name: str, ours: str) -> None:
    client = None if ours == "server" else some(name, 3)
    server = None if ours == "client" else some(name, 2)
    result = ended(client, server)
    verdict = judge(result)
    assert not verdict.ok
    told = {
        "client": f"3 flows {SAID[name]} (7.5 %)",
        "server": f"2 flows {SAID[name]} (5 %)",
        "both": f"3 flows {SAID[name]} at clients (7.5 %), 2 at servers (5 %)",
    }
    assert told[ours] in verdict.reasons
    text = _summary.text(result, verdict)
    assert f"FAILED: {verdict.summary}." in text
    assert f"! {'server' if ours == 'server' else 'client'} {name} " in text, "with what to do about it"
    document = _summary.document(result, verdict)
    assert [one["outcome"] for one in document["failures"]] == [name] * (2 if ours == "both" else 1)
    assert all(one["hint"] for one in document["failures"])
    assert failed_flows(result) == (2 if ours == "server" else 3)


@pytest.mark.parametrize("name", FAILED)
def test_one_flow_of_many_fails_the_run(name: str) -> None:
    (reason,) = judge(ended(some(name, 1), None)).reasons
    assert reason == f"1 flow {SAID[name].replace('were', 'was').replace('their end', 'its end')} (2.5 %)"


@pytest.mark.parametrize("name", FAILED)
def test_a_threshold_decides_on_its_way_to_end_and_no_other(name: str) -> None:
    result = ended(some(name, 3), some(name, 2))
    for words in ([f"{name}>10%"], [f"{name}.flows>5"], ["completed<90%"], ["completed.flows<30"]):
        verdict = by(result, *words)
        assert verdict.ok, verdict.summary
        assert SAID[name] in verdict.summary and "which the thresholds allow" in verdict.summary
    assert not by(result, f"{name}>6%").ok
    assert not by(result, f"{name}.flows>2").ok
    assert not by(result, "completed<95%").ok
    assert not by(result, f"{name}.flows{{side=client}}>5").ok, "it says nothing of the servers"
    assert by(result, f"{name}.flows{{side=client}}>5", f"{name}.flows{{side=server}}>5").ok
    other = "reset" if name != "reset" else "refused"
    assert not by(result, f"{other}>10%").ok


def test_a_flow_without_data_is_unanswered_however_it_ended() -> None:
    # A server that closes in order without a byte, where the program waits for the close.
    closed = ended(SideOutcomes(completed=40, unanswered=40), None)
    assert judge(closed).reasons == ["40 flows got no data (100 %)"]
    assert by(closed, "unanswered>0%").thresholds[0].reading.value == 100.0
    assert by(closed, "unanswered.flows>40").ok
    assert not by(closed, "completed<95%").ok, "they completed, without an answer"
    reset = ended(SideOutcomes(completed=30, reset=10, unanswered=10), None)
    assert judge(reset).reasons == ["10 flows were reset by the peer (25 %)", "10 flows got no data (25 %)"]
    assert by(reset, "reset>50%").ok, "they may be reset, so they may lack an answer"
    assert not by(reset, "unanswered>50%").ok, "they may lack an answer, and were reset"
    assert judge(ended(None, SideOutcomes(completed=40, unanswered=2))).ok, "a client may have no request"


def test_what_the_user_cuts_off_is_told_and_no_failure() -> None:
    cut = SideOutcomes(completed=30, cut_off=10, unanswered=4)
    for more in ({"plan": {"no_close": True}}, {"plan": {"close_s": 0.5}}, {"exit_code": 130}):
        result = ended(cut, None, **more)
        verdict = judge(result)
        assert verdict.ok, verdict.summary
        assert "completed, but for 10 that were cut off by the end, as asked" in verdict.summary
        text = _summary.text(result, verdict)
        assert "cut off by the end" in text
        assert "! client cut_off" not in text
    assert not judge(ended(cut, None)).ok
    assert not judge(ended(replace(cut, reset=1), None, exit_code=130)).ok


def test_flows_that_nobody_answered_fail_although_they_are_cut_off_as_asked() -> None:
    cut = SideOutcomes(cut_off=40, unanswered=40)
    for more in ({"plan": {"no_close": True}}, {"plan": {"close_s": 0.5}}, {"exit_code": 130}):
        verdict = judge(ended(cut, None, **more))
        assert verdict.reasons == ["40 flows got no data (100 %)"], verdict.summary
    one_answered = SideOutcomes(cut_off=40, unanswered=39)
    assert judge(ended(one_answered, None, plan={"no_close": True})).ok


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("http_4xx", "40 responses of class 4xx (100 %)"),
        ("http_5xx", "40 responses of class 5xx (100 %)"),
    ],
)
def test_bad_responses_of_strangers_fail_and_those_of_our_own_servers_do_not(name: str, said: str) -> None:
    client = SideOutcomes(**{"completed": 40, name: 40})
    assert judge(ended(client, None)).reasons == [said]
    assert judge(ended(client, COMPLETED)).ok, "a profile may send what it likes"
    metric = name.replace("_", ".")
    assert by(ended(client, None), f"{metric}>100%").ok
    assert by(ended(client, None), f"{metric}.responses>40").ok
    assert not by(ended(client, None), f"{metric}>99%").ok
    assert failed_flows(ended(client, None)) == 40


def test_responses_that_are_no_http_are_told_and_fail_by_a_threshold_only() -> None:
    client = SideOutcomes(completed=40, http_other=40)
    verdict = judge(ended(client, None))
    assert verdict.ok and "40 responses were no HTTP" in verdict.summary
    assert not by(ended(client, None), "http.other>0%").ok


def test_good_responses_are_named() -> None:
    verdict = judge(ended(SideOutcomes(completed=40, http_2xx=38, http_3xx=2), None))
    assert verdict.summary == (
        "all flows that were offered began and completed, all responses were of class 2xx or 3xx, "
        "and no errors were counted"
    )


def test_one_stranger_at_our_server_makes_no_servers_ours() -> None:
    result = ended(SideOutcomes(completed=40, http_5xx=40), None)
    counters = replace(result.counters, server=SideCounters(begun_flows=1, connected_flows=1))
    assert not judge(replace(result, counters=counters)).ok


def test_a_good_verdict_says_what_was_looked_at() -> None:
    assert judge(ended()).summary == (
        "all flows that were offered began and completed on both ends, all that was sent was received, "
        "and no errors were counted"
    )
    assert judge(ended(COMPLETED, None)).summary == (
        "all flows that were offered began and completed, and no errors were counted"
    )
    assert judge(ended(None)).summary == "all flows that came completed, and no errors were counted"


def test_bytes_that_did_not_arrive_fail_where_both_ends_are_ours() -> None:
    result = ended()
    for side in ("client", "server"):
        less = replace(result.counters.side(side), rx_data_bytes=300)
        verdict = judge(replace(result, counters=replace(result.counters, **{side: less})))
        lost = {"client": 8_700, "server": 100}[side]
        assert verdict.reasons == [f"{lost:,} bytes of TCP were sent and not received"]
    server = replace(result.counters.server, rx_data_bytes=300)
    lost_some = replace(result, counters=replace(result.counters, server=server))
    assert by(lost_some, "lost.bytes>100").ok
    assert not by(lost_some, "lost.bytes>99").ok
    assert judge(replace(lost_some, plan=FlowPlan(no_close=True))).ok, "some were under way"
    assert judge(replace(lost_some, plan=FlowPlan(resetting=frozenset(["client"])))).ok
    more = replace(result.counters.server, rx_data_bytes=500)
    assert judge(replace(result, counters=replace(result.counters, server=more))).ok


def test_which_programs_reset() -> None:
    from allosaur import (
        ASTFIPGen,
        ASTFIPGenDist,
        ASTFProfile,
        ASTFProgram,
        ASTFTCPClientTemplate,
        ASTFTCPServerTemplate,
        ASTFTemplate,
    )

    def profile(side: str) -> ASTFProfile:
        programs = {name: ASTFProgram() for name in ("client", "server")}
        programs["client"].send(b"x")
        programs["server"].recv(1)
        if side:
            programs[side].reset()
        clients, servers = (ASTFIPGenDist([f"{net}.0.0.1", f"{net}.0.0.9"]) for net in (16, 48))
        ips = ASTFIPGen(dist_client=clients, dist_server=servers)
        template = ASTFTemplate(
            client_template=ASTFTCPClientTemplate(program=programs["client"], ip_gen=ips),
            server_template=ASTFTCPServerTemplate(program=programs["server"]),
        )
        return ASTFProfile(default_ip_gen=ips, templates=template)

    for side in ("client", "server", ""):
        assert _access.resetting(profile(side)) == ({side} if side else set())


def test_a_server_that_does_not_tell_is_judged_by_drops_and_bytes() -> None:
    result = ended(COMPLETED, None)
    silent = replace(result, counters=replace(result.counters, outcomes=None))
    verdict = judge(silent)
    assert verdict.ok and verdict.summary.endswith("this server does not tell how flows ended")
    client = replace(silent.counters.client, dropped_flows=40)
    verdict = judge(replace(silent, counters=replace(silent.counters, client=client)))
    assert verdict.reasons == [
        "40 established connections were dropped, at clients (tcps_drops); "
        "this server does not tell how flows ended"
    ]
    text = _summary.text(silent, judge(silent))
    assert "completed" not in text
    assert _summary.document(silent, verdict)["outcomes"] is None


def test_a_trial_with_failed_flows_has_no_capacity() -> None:

    def lost(result: FlowResult) -> int:
        return ndr_flows.counted(result).lost

    assert lost(ended()) == 0
    assert lost(ended(some("reset", 3), some("reset", 2))) == 3
    assert lost(ended(SideOutcomes(completed=40, http_5xx=7), None)) == 7
    assert lost(ended(SideOutcomes(completed=40, unanswered=5), None)) == 5
    assert lost(ended(some("cut_off", 3), None)) == 3
    result = ended()
    server = replace(result.counters.server, rx_data_bytes=300)
    assert lost(replace(result, counters=replace(result.counters, server=server))) == 1


def test_times_are_a_table_and_thresholds() -> None:
    times = {"count": 40, "min_us": 300_100.0, "average_us": 301_000.0, "max_us": 310_000.0}
    times |= {"p50_us": 300_500.0, "p90_us": 303_000.0, "p99_us": 309_000.0, "p99_9_us": 310_000.0}
    told = {"connect": {"count": 0}, "first_byte": times, "program": {"count": 0}}
    result = ended(COMPLETED, None, times=told)
    text = _summary.text(result, judge(result))
    assert "time of flows" in text and "first byte" in text
    assert by(result, "first_byte.p99>400ms").ok
    assert not by(result, "first_byte.p50>300ms").ok
    assert "was not measured" in by(result, "program.max>1s").summary


# From end to end, with a server that is a mock.


@pytest.fixture
def mock() -> MockStatefulTransport:
    made = MockStatefulTransport(auto_finish=True)
    made.counters = {"client": {"tcps_connattempt": 40, "tcps_connects": 40}, "server": {}}
    return made


@pytest.fixture
def where(serve: Any, mock: MockStatefulTransport) -> Iterator[list[str]]:
    with serve(mock) as served:
        yield ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]


def test_all_ways_to_tell_a_run_agree(
    allosaur: Any, where: list[str], mock: MockStatefulTransport, tmp_path: Path
) -> None:
    mock.outcomes["client"] = {"reset": 30, "closed_early": 10, "unanswered": 12, "http_5xx": 28}
    files = ["--report", "r.html", "--junit", "j.xml", "--out", "o.json"]
    done = allosaur("run", HTTP, "-d", "1", *where, *files)
    assert done.code == 1, done
    reasons = [
        "30 flows were reset by the peer (75 %)",
        "10 flows were closed by the peer before their end (25 %)",
        "12 flows got no data (30 %)",
        "28 responses of class 5xx (100 %)",
    ]
    assert f"FAILED: {'; '.join(reasons)}." in done.out
    for row in ("completed flows", "reset by the peer", "closed early by the peer", "HTTP 5xx responses"):
        assert row in done.out, row
    assert "recv_until_close()" in done.out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for said in (*reasons, "How flows ended", "recv_until_close()"):
        assert said.replace("(", "(") in page or said.capitalize() in page, said
    (case,) = ElementTree.parse(tmp_path / "j.xml").getroot().iter("testcase")
    failure = case.find("failure")
    assert failure is not None and failure.attrib["message"] == "; ".join(reasons)
    document = allosaur("run", HTTP, "-d", "1", *where, "--json").json()
    assert document["reasons"] == reasons
    assert document["outcomes"]["clients"]["reset"] == 30
    assert document["outcomes"]["clients"]["completed"] == 0


def test_what_was_started_by_itself_is_judged_by_stats_and_stop(
    allosaur: Any, where: list[str], mock: MockStatefulTransport
) -> None:
    assert allosaur("start", HTTP, *where).code == 0
    assert "OK: no flow failed so far, and no errors were counted." in allosaur("stats", *where).out
    mock.outcomes["client"] = {"reset": 4, "cut_off": 2}
    told = allosaur("stats", *where, "--json").json()
    assert told["verdict"] == {
        "ok": False,
        "summary": "4 flows were reset by the peer (10 %)",
        "reasons": ["4 flows were reset by the peer (10 %)"],
    }
    assert told["outcomes"]["clients"]["cut_off"] == 2
    assert "! client reset 4: " in allosaur("stats", *where).out
    ended_by = allosaur("stop", *where, "--json").json()
    assert ended_by["verdicts"]["_"]["ok"] is False
    mock.outcomes["client"] = {"cut_off": 2}
    told = allosaur("stats", *where).out
    assert "completed, but for 2 that were cut off by the end, as asked" in told


def test_a_server_without_the_method(allosaur: Any, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(MockStatefulTransport, "_do_get_flow_outcomes")
    mock = MockStatefulTransport(auto_finish=True)
    mock.counters = {"client": {"tcps_connattempt": 40, "tcps_connects": 40}, "server": {}}
    with serve(mock) as served:
        there = ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]
        done = allosaur("run", HTTP, "-d", "1", *there)
        assert done.code == 0 and "this server does not tell how flows ended" in done.out
        allosaur("run", HTTP, *there, "--fail-if", "reset.flows>0").refused("reset.flows>0", "TRex")
        mock.counters["client"]["tcps_drops"] = 5
        done = allosaur("run", HTTP, "-d", "1", *there)
        assert done.code == 1 and "5 established connections were dropped, at clients" in done.out
