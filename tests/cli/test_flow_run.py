"""`allosaur run` and friends with stateful profiles, against a mock server: what they ask and say.

What real traffic does is in `test_flows_live.py`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur.cli._errors import CommandError
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._profile_kind import is_emulation, is_stateful
from allosaur.report._flow_counters import FlowCounters, FlowRates, FlowSampler, SideCounters, SideRates
from allosaur.run import _drive, _summary, drive_one, judge
from allosaur.run._progress import progress
from allosaur.run.flows import _load, _readings
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._hints import hint
from allosaur.run.flows._load import FlowLoad
from allosaur.run.flows._progress import FlowMoment
from allosaur.run.flows._result import FlowResult
from allosaur.testing import MockStatefulTransport, MockTransport
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
HTTP = ROOT / "profiles" / "stateful" / "http.py"
#: What both sides of 100 good connections count.
GOOD = {
    "client": {
        "tcps_connattempt": 100,
        "tcps_connects": 100,
        "tcps_closed": 100,
        "tcps_sndbyte_ok": 10_000,
        "tcps_rcvbyte": 3_276_800,
    },
    "server": {
        "tcps_accepts": 100,
        "tcps_connects": 100,
        "tcps_closed": 100,
        "tcps_sndbyte_ok": 3_276_800,
        "tcps_rcvbyte": 10_000,
    },
}


@pytest.fixture
def mock() -> MockStatefulTransport:
    made = MockStatefulTransport(auto_finish=True)
    made.counters = {side: dict(values) for side, values in GOOD.items()}
    return made


@pytest.fixture
def where(serve: Any, mock: MockStatefulTransport) -> Iterator[list[str]]:
    with serve(mock) as served:
        yield ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]


def started(mock: MockStatefulTransport) -> dict[str, Any]:
    """What the last start asked for."""
    return [params for method, params in mock.calls if method == "start"][-1]


def test_a_good_run(allosaur: Any, where: list[str]) -> None:
    ended = allosaur("run", HTTP, "-m", "5", "-d", "2", "-t", "rate=20", *where)
    assert ended.code == 0, ended
    for shown in (
        "clients",
        "servers",
        "offered flows",
        "missed flows",
        "3,276,800",
        "Ran ",
        "OK: all flows",
    ):
        assert shown in ended.out, shown


def test_what_is_asked_reaches_the_server(
    allosaur: Any, where: list[str], mock: MockStatefulTransport
) -> None:
    options = ["-m", "2.5", "-d", "3", "--latency", "10", "--ipv6", "--nc", "--pid", "web"]
    options += ["--clients", "0", "--establish-within", "4s", "--close-within", "500ms", "-t", "response=500"]
    ended = allosaur("run", HTTP, *options, *where, "--json")
    assert ended.code == 0, ended
    asked = started(mock)
    assert asked["profile_id"] == "web"
    assert (asked["mult"], asked["duration"], asked["latency_pps"]) == (2.5, 3, 10)
    assert (asked["ipv6"], asked["nc"], asked["client_mask"]) == (True, True, 1)
    assert (asked["e_duration"], asked["t_duration"]) == (4, 0.5)
    assert "web" not in mock._states, "the profile of a run goes with it"
    result = ended.json()
    assert result["profile_id"] == "web"
    assert result["tunables"] == {"response": 500}
    assert result["clients"]["begun_flows"] == result["offered_flows"] == 100
    assert result["missed_flows"] == 0


def test_servers_only_begin_nothing(allosaur: Any, where: list[str], mock: MockStatefulTransport) -> None:
    mock.counters["client"] = {}
    ended = allosaur("run", HTTP, "--servers-only", "-d", "1", *where)
    assert ended.code == 0, ended
    assert started(mock)["client_mask"] == 0
    assert "OK: all flows that came completed, and no errors were counted." in ended.out


def test_counters_of_errors_fail_the_run_by_name_with_a_hint(
    allosaur: Any, where: list[str], mock: MockStatefulTransport
) -> None:
    mock.counters["client"]["tcps_rexmttimeo"] = 7
    ended = allosaur("run", HTTP, "-d", "1", *where)
    assert ended.code == 1, ended
    assert f"! client tcps_rexmttimeo 7: {hint('tcps_rexmttimeo')}" in ended.out
    assert (
        "FAILED: errors were counted: retransmission timeouts, at clients: 7 (tcps_rexmttimeo)." in ended.out
    )
    result = allosaur("run", HTTP, "-d", "1", *where, "--json").json()
    assert result["ok"] is False
    assert [(one["side"], one["counter"], one["count"]) for one in result["errors"]] == [
        ("client", "tcps_rexmttimeo", 7)
    ]


def test_missed_flows_fail_the_run_and_are_never_hidden(
    allosaur: Any, where: list[str], mock: MockStatefulTransport
) -> None:
    mock.missed_flows = 25
    ended = allosaur("run", HTTP, "-d", "1", *where)
    assert ended.code == 1, ended
    assert "load not reached: 25 flows were not opened in time (20 %)" in ended.out
    assert "missed 25." in ended.out


def test_a_report_of_what_went_wrong(
    allosaur: Any, where: list[str], mock: MockStatefulTransport, tmp_path: Path
) -> None:
    mock.counters["client"]["tcps_rexmttimeo"] = 7
    ended = allosaur("run", HTTP, "-d", "1", *where, "--report", "flows.html")
    assert ended.code == 1, ended
    page = (tmp_path / "flows.html").read_text(encoding="utf-8")
    for shown in (
        "Totals of flows",
        "retransmission timeouts",
        "tcps_rexmttimeo",
        "Failed.",
        "class Http",
    ):
        assert shown in page, shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "5kpps"], ["-m 5kpps", "a factor of its own rates"]),
        (["--ports", "0"], ["--ports", "--clients"]),
        (["--clients", "1"], ["--clients 1", "odd ports are servers'"]),
        (["--clients", "6"], ["--clients 6", "ports 0 to 1"]),
        (["--pid", "two words"], ["--pid", "one word"]),
        (["--clients", "0", "--servers-only"], ["--servers-only"]),
        (["-t", "responce=5"], ["responce", "request, response, rate"]),
        (["--report", "missing/page.html"], ["--report", "no folder"]),
    ],
)
def test_what_is_asked_wrongly(
    allosaur: Any, where: list[str], mock: MockStatefulTransport, words: list[str], said: list[str]
) -> None:
    allosaur("run", HTTP, *words, *where).refused(*said)
    assert not [method for method, _ in mock.calls if method == "start"]


def test_options_of_conversations_with_streams(allosaur: Any) -> None:
    streams = ROOT / "profiles" / "imix.py"
    for words in (["--nc"], ["--pid", "a"], ["--servers-only"], ["--latency", "5"]):
        allosaur("run", streams, "--local", *words).refused(words[0], "is for stateful profiles")


def test_a_server_that_refuses_to_start(allosaur: Any, where: list[str], mock: MockStatefulTransport) -> None:
    mock.start_error = "fewer clients than cores"
    allosaur("run", HTTP, *where).refused("did not start", "fewer clients than cores")


def test_a_server_for_streams(allosaur: Any, serve: Any) -> None:
    with serve(MockTransport()) as served:
        address = ["--server", f"{served.host}:{served.rpc_port}", "--pub-port", str(served.pub_port)]
        allosaur("run", HTTP, *address).refused("sends streams", "allosaur server --stateful", "--local")
        allosaur("stats", "--counters", *address).refused("--counters", "stateful profiles")


def test_streams_for_a_stateful_server(allosaur: Any, where: list[str]) -> None:
    allosaur("run", ROOT / "profiles" / "imix.py", *where).refused("runs flows", "allosaur server")


def test_a_server_that_someone_else_has(allosaur: Any, where: list[str], mock: MockStatefulTransport) -> None:
    mock._context = "somebody"
    allosaur("run", HTTP, "-d", "1", *where).failed(3, "cannot take the server", "--force")
    assert allosaur("run", HTTP, "-d", "1", *where, "--force").code == 0


# start, stop, update, stats and clear


def test_a_profile_that_goes_on(allosaur: Any, where: list[str], mock: MockStatefulTransport) -> None:
    ended = allosaur("start", HTTP, "-m", "3", "--pid", "web", "--record-flows", "1s", *where)
    assert ended.code == 0, ended
    assert "Profile 'web' runs, until it is stopped." in ended.out
    assert "allosaur stop --server" in ended.out
    assert started(mock)["dump_interval"] == 1
    assert mock._states["web"] == 4, "it goes on"

    allosaur("start", HTTP, "--pid", "web", *where).failed(3, "runs already", "allosaur stop --pid web")
    ended = allosaur("update", "-m", "7", "--pid", "web", *where)
    assert (ended.code, ended.out) == (0, "Profile 'web': now at 7 times the profile's rates.\n")
    allosaur("clear", "--pid", "web", *where).failed(3, "'web' runs", "stop")
    ended = allosaur("stats", "--pid", "web", "--counters", "--flows", "--latency", "--groups", *where)
    assert ended.code == 0, ended
    for shown in ("web", "runs", "tcps_connattempt", "--record-flows", "--latency 10", "has no groups"):
        assert shown in ended.out, shown
    ended = allosaur("stop", "--all", *where, "--json")
    assert ended.json()["stopped"] == ["web"]
    assert allosaur("stop", *where).out == "Nothing ran.\n"
    assert allosaur("clear", "--all", *where, "--json").json()["cleared"] == ["_", "web"]
    assert "web" not in mock._states


def test_names_that_are_not_there(allosaur: Any, where: list[str]) -> None:
    for words in (["stop"], ["update", "-m", "2"], ["clear"], ["stats"]):
        allosaur(*words, "--pid", "nobody", *where).refused("no profile 'nobody'", "it has: _")
    allosaur("update", "-m", "2", *where).failed(3, "nothing runs", "allosaur start")


def test_start_refuses_streams(allosaur: Any, where: list[str]) -> None:
    allosaur("start", ROOT / "profiles" / "imix.py", *where).refused("runs flows", "allosaur server")


# The parts


def moment(elapsed_s: float, duration_s: float = 10.0, is_closing: bool = False) -> FlowMoment:
    side = SideRates(650_000.0, 99_999_999_999.0, 99_999_999_999.0, 12_345_678.0, 12_345_678.0)
    counters = FlowCounters(
        SideCounters(begun_flows=10**9, active_flows=1_000_000, established_flows=999_999),
        SideCounters(active_flows=1_000_000),
        123_456_789,
        {
            "client": dict.fromkeys(("tcps_rexmttimeo", "tcps_rcvoopack", "err_cwf"), 123456789),
            "server": {"err_no_syn": 1, "err_no_template": 2},
        },
    )
    rates = FlowRates(elapsed_s, 700_000.0, 650_000.0, side, side, 1_000_000, 999_999)
    return FlowMoment(elapsed_s, duration_s, counters, rates, is_closing, [1.0, 5e5] * 60)


def test_the_live_table_fits_80_columns() -> None:
    stream = io.StringIO()
    Console(file=stream, width=80).print(moment(3.25).view("a_profile_with_quite_a_long_name.py"))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    text = "\n".join(lines)
    for shown in ("3.2 of 10 s", "700 kflows/s", "650 kflows/s", "123,456,789", "1,000,000", "100 Gbps", "█"):
        assert shown in text, shown
    assert "! client tcps_rexmttimeo 123,456,789: " in text
    assert "and 1 more lines of errors" in text


def test_plain_lines_name_each_error_once() -> None:
    stream = io.StringIO()
    with progress(["x"], stream) as show:
        for quarter in range(1, 21):
            show([moment(quarter * 0.25)])
    lines = stream.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines if "offered" in line] == ["2.0 of 10 s", "4.0 of 10 s"]
    assert "offered 700 kflows/s, connected 650 kflows/s; missed 123,456,789" in lines[0]
    assert sum("err_no_syn" in line for line in lines) == 1


def test_the_clock_says_when_flows_close() -> None:
    assert moment(12.0, is_closing=True).clock == "12.0 s, closing"
    assert moment(12.0, FOREVER).clock == "12.0 s"


def outcome(counters: FlowCounters, plan: FlowPlan | None = None, **more: Any) -> FlowResult:
    return FlowResult(plan or FlowPlan(duration_s=2.0), counters, elapsed_s=2.0, **more)


def flows(begun: int, connected: int, **more: Any) -> FlowCounters:
    sides = SideCounters(begun_flows=begun, connected_flows=connected)
    return FlowCounters(sides, SideCounters(begun_flows=connected, connected_flows=connected), **more)


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (outcome(flows(0, 0)), "no flow began"),
        (outcome(flows(10, 8)), "2 flows found no other end (20 %)"),
        (outcome(flows(10, 10, missed_flows=10)), "10 flows were not opened in time (50 %)"),
        (outcome(flows(0, 0), FlowPlan(client_mask=0)), "no flow came"),
        (outcome(flows(5, 5), overdue=True), "long after the end"),
        (
            outcome(
                FlowCounters(
                    SideCounters(begun_flows=1, connected_flows=1, tx_messages=9, rx_messages=9),
                    SideCounters(begun_flows=1, connected_flows=1, tx_messages=9, rx_messages=7),
                )
            ),
            "2 UDP messages were sent and not received",
        ),
    ],
)
def test_each_way_to_fail_is_said(done: FlowResult, reason: str) -> None:
    verdict = judge(done)
    assert not verdict.ok
    assert reason in verdict.summary
    assert "FAILED: " in _summary.text(done, verdict)


def test_open_flows_are_no_failure_with_nc() -> None:
    assert judge(outcome(flows(10, 8), FlowPlan(no_close=True))).ok
    assert not judge(outcome(flows(10, 0), FlowPlan(no_close=True))).ok


def test_frames_under_way_are_no_failure_with_nc() -> None:
    late = flows(10, 10, errors={"client": {"err_cwf": 2}, "server": {"err_no_syn": 3}})
    assert judge(outcome(late, FlowPlan(no_close=True))).ok
    assert not judge(outcome(late)).ok


def test_a_server_that_does_not_count_missed_flows_is_not_said_to_have_none() -> None:
    done = outcome(flows(10, 10))
    assert "missed -." in _summary.text(done, judge(done))


def test_rates_are_differences() -> None:
    readings = iter(
        FlowCounters(SideCounters(begun_flows=count, connected_flows=count, tx_data_bytes=count * 100))
        for count in (100, 300)
    )
    now = iter([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    sampler = FlowSampler(lambda: next(readings), lambda: next(now))
    sampler.started()
    sampler.sample()
    sampler.sample()
    assert [one.begun_fps for one in sampler.rates()] == [100.0, 200.0]
    assert sampler.recent(0.5).client.tx_data_bps == 160_000.0


@pytest.mark.parametrize("path", sorted((ROOT / "profiles").rglob("*.py")), ids=lambda path: path.stem)
def test_profiles_of_each_kind_are_known(path: Path) -> None:
    assert is_emulation(path) == (path.parent.name == "emulation")
    if is_emulation(path):
        with pytest.raises(CommandError, match="allosaur emu load"):
            is_stateful(path)
        return
    has_flows = path.parent.name == "stateful" or (path.parent.name, path.stem) == ("new", "flows")
    assert is_stateful(path) == has_flows


def test_kinds_that_the_text_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("class Base:\n    def get_profile(self): ...\n", encoding="utf-8")
    derived = tmp_path / "derived.py"
    derived.write_text("from base import Base\ndef register():\n    return Base()\n", encoding="utf-8")
    assert is_stateful(derived)
    for name, text in {"a.json": '{"templates": []}', "b.json": "[]", "c.json": "{", "d.py": "def ("}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = [name for name in ("a.json", "b.json", "c.json", "d.py", "e.py") if is_stateful(tmp_path / name)]
    assert found == ["a.json"]


def test_flows_that_end_by_themselves_began_for_as_long_as_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client learns of the start 60 ms late, and so counts 9.94 s of 10."""
    now_s = [1000.0]

    def begin(client: Any, plan: FlowPlan) -> None:
        now_s[0] += 0.06

    class Client:
        def get_profiles_state(self) -> dict[str, str]:
            now_s[0] += 0.007
            return {"_": "STATE_TX" if now_s[0] < 1010.0 else "STATE_ASTF_LOADED"}

        def get_acquired_ports(self) -> list[int]:
            return [0, 1]

        def get_connection_info(self) -> dict[str, Any]:
            return {"server": "192.0.2.1"}

        def get_warnings(self) -> list[str]:
            return []

        def nothing(self, *_: Any, **__: Any) -> None:
            return None

        clear_stats = stop = why_lost = get_tg_names = nothing

    monkeypatch.setattr(_readings, "begin", begin)
    monkeypatch.setattr(_readings, "read", lambda client, name: flows(100, 100))
    monkeypatch.setattr(_drive.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(Interrupt, "sleep", lambda *_: None)
    monkeypatch.setattr(_load, "FlowSampler", lambda read: FlowSampler(read, lambda: now_s[0]))
    with Interrupt() as interrupt:
        load = FlowLoad(FlowPlan(duration_s=10.0), Client())  # type: ignore[arg-type]
        done = drive_one(load, interrupt, lambda _: None)
    assert done.elapsed_s == 10.0
    assert done.closing_s == pytest.approx(0.0, abs=0.02)
