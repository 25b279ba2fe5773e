"""`allosaur ndr` and `allosaur compare`: their limits, results and files, how they end, what they refuse."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from allosaur.cli._errors import CommandError
from allosaur.cli._main import main
from allosaur.cli.ndr import _bench, _cases, _plugin, _rates, _rfc2544
from allosaur.cli.ndr._bench import Scale
from allosaur.cli.ndr._command import goals
from allosaur.cli.ndr._rfc2544 import Sample
from allosaur.report._counters import PortCounters
from allosaur.report._streams import StreamCounters, StreamLatency
from allosaur.run import _thresholds
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._groups import Grouping, Row
from allosaur.run.streams._load import StreamLoad
from allosaur.run.streams._result import StreamResult
from allosaur.search import Trial
from allosaur.server import LocalServer

from .conftest import Allosaur, Ended, environment

SCHEMA = json.loads((files("allosaur") / "schemas" / "ndr.json").read_text(encoding="utf-8"))
needs_server = pytest.mark.usefixtures("binary")

#: Trials so short and so slow that a busy machine makes them in time.
QUICK = ("-d", "200ms", "--first-trial", "100ms", "--max", "5kpps", "--precision", "5%")
LOCAL = ("constant_stream", "--local", *QUICK)
LINE_BPS = 40e6
LINE_PPS = LINE_BPS / 8 / 84
"""The shortest frame takes 84 bytes of a line."""


@pytest.fixture
def allosaur(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Allosaur:
    """The command, in this process: a search is many requests, and nothing of it is a process of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Ended:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ended(code, *capsys.readouterr())

    return run


def checked(text: str) -> dict[str, Any]:
    value = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    assert isinstance(value, dict)
    return value


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@needs_server
def test_a_link_that_carries_everything(allosaur: Any, tmp_path: Path) -> None:
    words = (*LOCAL, "--points", "50%,100%", "-l", "200", "--tests", "frame-loss", "--both")
    files = ("--out", "out.json", "--csv", "out.csv", "--report", "out.html")
    ended = allosaur("ndr", *words, *files, "--json")
    result = checked(ended.out)
    assert ended.code == 0, ended
    assert checked((tmp_path / "out.json").read_text(encoding="utf-8")) == result
    assert (result["mode"], result["ports"], result["ok"], result["interrupted"]) == (
        "stateless",
        [0, 1],
        True,
        False,
    )
    (case,) = result["cases"]
    assert [(one["goal"], one["upper"]) for one in case["limits"]] == [("ndr", None), ("pdr", None)]
    for limit in case["limits"]:
        assert limit["lower"]["load"] == pytest.approx(5000)
        assert limit["lower"]["bps_l1"] == pytest.approx(5000 * 84 * 8, rel=0.01)
    assert [one["share"] for one in case["points"]] == [0.5, 1.0]
    for point in case["points"]:
        assert point["latency"]["p99_us"] > 0
        # Each port sends its load; the timed packets are part of it.
        assert point["offered"] == pytest.approx(2 * point["load"] * point["duration_s"], rel=0.1)
        assert point["lost"] == 0
    assert [one["lost"] for one in case["tests"]["frame-loss"]["trials"]] == [0, 0]
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["kind"] for row in rows} == {"limit", "trial", "point"}
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    for words_of_page in (
        "Limits of constant_stream.py",
        "Loss by load",
        "The search",
        "Frame loss rate",
        "p99",
    ):
        assert words_of_page in page or words_of_page == "p99"
    assert "--tests frame-loss" in result["command_line"]
    assert "allosaur ndr" in page


@needs_server
@pytest.mark.parametrize("search", ["mlr", "binary"])
def test_a_link_with_a_limit(allosaur: Any, search: str) -> None:
    """Above its line rate a link in memory takes no more: what is not sent in time is lost to the load."""
    ended = allosaur(
        *("ndr", "constant_stream", "--local", "--local-ports", f"memory:rate={LINE_BPS:.0f}bps,memory"),
        *("--max", "200%", "--force", "--search", search, "-d", "500ms", "--first-trial", "250ms"),
        *("--loss", "15%", "--precision", "5%", "--json"),
    )
    result = checked(ended.out)
    assert ended.code == 0, ended
    (case,) = result["cases"]
    assert case["load_max"] == pytest.approx(2 * LINE_PPS, rel=0.01)
    (limit,) = case["limits"]
    # 15 % may be lost; and for 30 ms after the end, and out of its ring, a port sends what it owes.
    assert limit["lower"]["load"] < LINE_PPS / 0.85 * 1.15
    assert limit["upper"]["load"] > limit["lower"]["load"]
    failed = [one for one in case["trials"] if one["load"] >= limit["upper"]["load"]]
    assert failed
    assert all(one["missed"] > 0 for one in failed if one["load"] > 1.5 * LINE_PPS)


@needs_server
def test_a_link_that_loses_always(allosaur: Any) -> None:
    words = (
        "--local-ports",
        "memory:loss=10%:seed=1,memory",
        "--loss",
        "0",
        "--min",
        "4kpps",
        "--search",
        "binary",
    )
    ended = allosaur("ndr", *LOCAL, *words)
    assert ended.code == 1, ended
    assert "FAILED: constant_stream: no load passes for ndr" in ended.out
    assert re.search(r"pps lost \d", ended.out)
    passed = allosaur("ndr", *LOCAL, *words[:2], "--loss", "40%", "--json")
    assert passed.code == 0, passed
    (case,) = checked(passed.out)["cases"]
    assert case["trials"][-1]["loss_ratio"] == pytest.approx(0.1, abs=0.05)


@needs_server
def test_frame_sizes_are_cases_of_their_own(allosaur: Any) -> None:
    ended = allosaur("ndr", *LOCAL, "--sizes", "128,imix", "--loss", "0.5%", "--json")
    result = checked(ended.out)
    assert ended.code == 0, ended
    assert [(one["name"], one["frame_bytes"]) for one in result["cases"]] == [
        ("128 bytes", 128),
        ("imix", None),
    ]
    assert result["cases"][0]["limits"][0]["lower"]["bps_l2"] == pytest.approx(5000 * 128 * 8)


@needs_server
def test_flows_are_searched_by_their_multiplier(allosaur: Any, tmp_path: Path) -> None:
    words = (
        "udp_exchange",
        "--local",
        "--max",
        "400",
        "--min",
        "100",
        "-d",
        "300ms",
        "--first-trial",
        "200ms",
    )
    ended = allosaur("ndr", *words, "--loss", "50%", "--precision", "20%", "--json", "--report", "flows.html")
    result = checked(ended.out)
    assert ended.code == 0, ended
    assert result["mode"] == "stateful"
    (case,) = result["cases"]
    assert case["unit"] == "times"
    assert case["limits"][0]["lower"]["load"] > 0
    assert case["limits"][0]["lower"]["flows_per_second"] > 0
    assert all(one["offered"] > 0 for one in case["trials"])
    assert "udp_exchange" in (tmp_path / "flows.html").read_text(encoding="utf-8")


#: The first trial is over as soon as there are bounds; the one that decides goes on for long.
LONG = ("constant_stream", "-d", "60", "--first-trial", "100ms", "--max", "1kpps")
BOUNDED = "ndr: 1.00 kpps or more"


def started(server: LocalServer, folder: Path, *words: str) -> subprocess.Popen[str]:
    """A search in a process of its own, as far as its first bounds."""
    address = ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]
    command = [sys.executable, "-m", "allosaur.cli", "ndr", *LONG, *address, *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=environment(), start_new_session=True
    )
    assert process.stderr is not None
    next(line for line in process.stderr if BOUNDED in line)
    return process


@needs_server
def test_ctrl_c_stops_the_traffic_and_shows_what_was_measured(tmp_path: Path) -> None:
    with LocalServer(ports=["memory", "memory"], cores=1) as server:
        process = started(server, tmp_path, "--json", "--out", "out.json")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        result = checked(out)
        assert checked((tmp_path / "out.json").read_text(encoding="utf-8")) == result
        assert (result["interrupted"], result["ok"]) == (True, False)
        assert result["cases"][0]["stopped"] == "stopped"
        (ndr, _) = result["cases"][0]["limits"]
        assert ndr["lower"]["load"] == pytest.approx(1000)
        assert not ndr["is_complete"]
        with server.client() as client:
            assert client.get_active_ports(owned=False) == []


@needs_server
def test_a_server_that_goes_away(tmp_path: Path) -> None:
    with LocalServer(ports=["memory", "memory"], cores=1) as server:
        process = started(server, tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "the search ended before its time: the server" in out


PLUGIN = """
import stl_path
class PlugIn:
    def pre_iteration(self, finding_max_rate, run_results=None, **kwargs):
        assert (run_results is None) == finding_max_rate
        if run_results is not None:
            assert run_results["rate_p"] > 0
    def post_iteration(self, finding_max_rate, run_results, **kwargs):
        print("after", run_results["drop_rate_percentage"], kwargs["most"])
        return kwargs["most"] == 1
def register():
    return PlugIn()
"""


@needs_server
def test_a_plug_in_of_trex_ends_the_search(allosaur: Any, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    words = ("ndr", *LOCAL, "--plugin", "plugin.py", "--json")
    ended = allosaur(*words, "--plugin-tunable", "most=1")
    result = checked(ended.out)
    assert ended.code == 0, ended
    assert len(result["cases"][0]["trials"]) == 1
    assert result["cases"][0]["stopped"] == "the plug-in ended it"
    assert "after 0.0 1" in ended.err
    allosaur("ndr", *LOCAL, "--plugin", "plugin.py").refused("plug-in", "KeyError", "most")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing_like_it",), "nothing_like_it"),
        (("constant_stream", "--max", "fast"), "is not a rate"),
        (("constant_stream", "--sizes", "12"), "is no frame size"),
        (("imix", "--sizes", "64"), "size"),
        (("constant_stream", "--fail-if", "latency.p99>100"), "latency.p99 needs a unit"),
        (("constant_stream", "--fail-if", "speed>1"), "there is no metric 'speed'"),
        (("constant_stream", "--loss", "0,0"), ""),
        (("constant_stream", "--loss", "100%"), "is not a share of 0 up to 1"),
        (("constant_stream", "--precision", "0"), "precision of 0"),
        (("constant_stream", "--tests", "speed"), "there is no test 'speed'"),
        (("constant_stream", "--tests", "reset"), "--reset-command"),
        (("constant_stream", "--reset-command", "true"), "is for --tests reset"),
        (("constant_stream", "--plugin", "none.py"), "no such file"),
        (("constant_stream", "--out", "none/out.json"), "no folder none"),
        (("constant_stream", "--clients", "0"), "is for stateful profiles"),
        (("constant_stream", "--cores", "2"), "are for --local"),
        (("http",), "--max is missing"),
        (("http", "--max", "5mpps"), "a rate is for streams"),
        (("http", "--max", "5", "--sizes", "64"), "are for streams"),
        (("http", "--max", "5", "--servers-only"), "a search opens flows"),
    ],
)
def test_what_is_refused(allosaur: Any, words: tuple[str, ...], message: str) -> None:
    if message:
        allosaur("ndr", *words).refused(message)


@needs_server
def test_what_is_refused_with_a_server(allosaur: Any) -> None:
    timed = ("--fail-if", "latency.p99>1ms")
    allosaur("ndr", *LOCAL, *timed).refused("no packet is timed; give -l PPS")
    allosaur("ndr", *LOCAL, "--min", "6kpps").refused("are no range; give --min below --max")
    allosaur("ndr", *LOCAL, "--local-ports", "memory").failed(3, "no port receives what is sent")


def test_criteria() -> None:
    times = StreamLatency(10.0, 20.0, 400.0, 3.0, 18.0, 50.0, 150.0, None)
    counted = StreamCounters(0, ["voip"], 1, 1000, rx_packets=990, lost_packets=10, latency=times)
    ports = {0: PortCounters(tx_packets=1000), 1: PortCounters(rx_packets=990)}
    grouping = Grouping([Row(0, 1, ["voip"], [0])])
    plan = Plan([0], "1", 1.0, [0, 1])
    result = StreamResult(plan, ports, {}, elapsed_s=1.0, grouping=grouping, streams=[counted])

    def why(text: str) -> list[str]:
        return _bench.unmet(_thresholds.read([text], StreamLoad.metrics), result)

    assert why("latency.p99>200us") == []
    assert (
        "latency.p99 is 150 µs (stream voip, port 0), and may not be > 100 µs"
        in why("latency.p99 > 0.1ms")[0]
    )
    assert "latency.p99.9 was not measured" in why("latency.p99.9>1s")[0]
    assert "out_of_order.packets was not measured" in why("out_of_order.packets>0")[0]
    assert "loss is 1 %" in why("loss>0.5%")[0]


def test_sizes_tests_and_goals() -> None:
    assert _cases.frame_sizes("64, IMIX,64") == ["64", "imix"]
    assert _cases.frame_sizes("rfc2544") == ["64", "128", "256", "512", "1024", "1280", "1518"]
    assert _cases.tests("recovery,reset") == ["recovery", "reset"]
    assert [one.name for one in goals([0.0, 0.005])] == ["ndr", "pdr"]
    assert [one.name for one in goals([0.001, 0.01])] == ["pdr 0.1 %", "pdr 1 %"]


RATE = {"max_pps": 1000.0, "max_bps_l2": 512e3, "max_bps_l1": 672e3, "max_line_util": 6.72}


@pytest.mark.parametrize(
    ("text", "pps"),
    [("5kpps", 5000), ("2", 2000), ("1.024mbps", 2000), ("1.344mbpsl1", 2000), ("67.2%", 10_000)],
)
def test_rates_in_packets(text: str, pps: float) -> None:
    assert _rates.packet_rate(text, RATE) == pytest.approx(pps)


def test_a_share_of_a_line_that_nobody_knows() -> None:
    with pytest.raises(CommandError, match="give a rate in pps"):
        _rates.packet_rate("50%", {**RATE, "max_line_util": 0.0})


def samples(*rows: tuple[float, int, int]) -> list[Sample]:
    return [Sample(*row) for row in rows]


def test_recovery_ends_with_the_last_loss() -> None:
    found = _rfc2544.recovered(
        samples((0.25, 90, 10), (0.5, 180, 20), (0.75, 250, 28), (1.0, 300, 30), (1.25, 350, 30)), 0.5, 100.0
    )
    assert found["seconds"] == pytest.approx(0.5)
    assert found["resolution_s"] == pytest.approx(0.25)
    assert _rfc2544.recovered(samples((0.25, 9, 0), (0.5, 18, 0)), 0.25, 100.0)["seconds"] is None
    assert _rfc2544.recovered([], None, 100.0)["seconds"] is None


def test_a_reset_is_the_time_without_packets() -> None:
    found = _rfc2544.outage(
        samples((0.25, 100, 0), (0.5, 200, 0), (0.75, 200, 0), (1.0, 200, 0), (1.25, 240, 0), (1.5, 340, 0))
    )
    assert found["seconds"] == pytest.approx(0.5)
    assert _rfc2544.outage(samples((0.25, 1, 0), (0.5, 2, 0)))["seconds"] is None
    assert "longer --reset-within" in _rfc2544.outage(samples((0.25, 1, 0), (0.5, 1, 0)))["summary"]


def test_what_a_plug_in_is_told() -> None:
    scale = Scale("pps", 2000.0, 1.0, 672.0, 512.0, 0.01)
    trial = Trial(1000.0, 2.0, 2000, 300, (), 2.1, {"sent": 1900, "missed": 100, "not_received": 190})
    told = _plugin.run_results(trial, scale, {"cpu_util": 12.0}, 3)
    assert told["rate_p"] == pytest.approx(50)
    assert told["queue_full_percentage"] == pytest.approx(5)
    assert told["drop_rate_percentage"] == pytest.approx(10)
    assert (told["tx_pps"], told["rx_pps"]) == (pytest.approx(950), pytest.approx(855))
    assert told["tx_bps"] == pytest.approx(950 * 512)
    assert (told["cpu_util"], told["iteration"]) == (12.0, 3)
