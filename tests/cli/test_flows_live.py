"""`allosaur run` and friends with stateful profiles and real traffic, and `t-rex-64 --astf`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import ASTFClient
from allosaur.server import LocalServer

ROOT = Path(__file__).resolve().parents[2]
STATEFUL = ROOT / "profiles" / "stateful"
HTTP = STATEFUL / "http.py"
LAUNCHER = ROOT / "scripts" / "wheel-data" / "scripts" / "t-rex-64"
#: What a machine that stands still for long may say, and nothing else may.
NOT_IN_TIME = "load not reached"

pytestmark = pytest.mark.usefixtures("binary")
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def stateful() -> Iterator[LocalServer]:
    with LocalServer(stateful=True) as server:
        yield server


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command that does not end by itself; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: object) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe = subprocess.PIPE
        command = [sys.executable, *map(str, words)]
        started.append(
            subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=tmp_path)
        )
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def good(ended: Any) -> dict[str, Any]:
    """The result of a run, which was good but for what the machine could not do in time."""
    result: dict[str, Any] = ended.json()
    assert result["ok"] or (NOT_IN_TIME in result["verdict"] and ";" not in result["verdict"]), result
    assert ended.code == (0 if result["ok"] else 1)
    assert result["errors"] == []
    return result


def grown(client: ASTFClient, more: int = 1) -> None:
    """Wait for more connections; give up after a time that is far too long."""
    before = client.get_flow_rates()["established"]
    until = time.monotonic() + 60
    while client.get_flow_rates()["established"] < before + more:
        assert time.monotonic() < until, "no connections"
        time.sleep(0.05)


def test_a_run_of_its_own_server(allosaur: Any) -> None:
    result = good(
        allosaur(
            "run", HTTP, "--local", "-m", "200", "-d", "1", "-t", "response=20000", "--json", in_time=True
        )
    )
    assert result["mode"] == "stateful"
    assert result["offered_flows"] == pytest.approx(200, abs=1)
    flows = result["clients"]["begun_flows"]
    assert flows + result["missed_flows"] == result["offered_flows"]
    assert flows == result["servers"]["begun_flows"] == result["clients"]["closed_flows"]
    assert result["clients"]["tx_data_bytes"] == result["servers"]["rx_data_bytes"] == flows * 100
    assert result["servers"]["tx_data_bytes"] == result["clients"]["rx_data_bytes"] == flows * 20_000
    assert result["clients"]["tx_packets"] == result["servers"]["rx_packets"] > flows * 5
    assert result["duration_s"] == 1.0


@pytest.mark.parametrize("name", ["dns", "template_groups", "http_browsing", "http_ipv6"])
def test_other_profiles(allosaur: Any, name: str) -> None:
    result = good(
        allosaur("run", STATEFUL / f"{name}.py", "--local", "-m", "20", "-d", "1", "--json", in_time=True)
    )
    assert result["clients"]["connected_flows"] > 0
    if name == "template_groups":
        assert set(result["groups"]) == {"down", "up"}
        groups = sum(one["clients"]["begun_flows"] for one in result["groups"].values())
        assert groups == result["clients"]["begun_flows"]
    if name == "dns":
        assert result["lost_messages"] == 0


def test_a_profile_in_json(allosaur: Any, tmp_path: Path) -> None:
    from allosaur import ASTFProfile

    path = tmp_path / "http.json"
    path.write_text(ASTFProfile.load(HTTP, rate=50).to_json_str(), encoding="utf-8")
    assert good(allosaur("run", path, "--local", "-d", "1", "--json", in_time=True))["offered_flows"] >= 49


def test_latency_and_two_pairs_of_ports(allosaur: Any) -> None:
    words = ["--local", "--local-ports", "memory,memory,memory,memory", "--clients", "2", "--latency", "100"]
    result = good(allosaur("run", HTTP, *words, "-m", "50", "-d", "1.5", "--json", in_time=True))
    assert result["clients"]["connected_flows"] > 0
    assert result["latency"]
    for one in result["latency"].values():
        assert 0 < one["received"] <= one["sent"]
        assert one["p50_us"] <= one["p90_us"] <= one["p99_us"] <= one["p99_9_us"] <= one["max_us"] + 1


def test_a_report_of_a_real_run(allosaur: Any, tmp_path: Path) -> None:
    good(
        allosaur(
            "run", HTTP, "--local", "-m", "50", "-d", "3", "--report", "flows.html", "--json", in_time=True
        )
    )
    page = (tmp_path / "flows.html").read_text(encoding="utf-8")
    for shown in ("Flows over time", "Data of servers", "opened flows", "allosaur run"):
        assert shown in page


def test_nobody_serves(allosaur: Any) -> None:
    """Port 1 is a sink: nobody answers, and the run says so, with what to look at."""
    ended = allosaur("run", HTTP, "--local", "--local-ports", "memory", "-m", "20", "-d", "1", "--nc")
    assert ended.code != 0, ended


def test_traffic_that_goes_on_by_itself(allosaur: Any, stateful: LocalServer) -> None:
    address = where(stateful)
    assert allosaur("start", HTTP, "-m", "20", "--pid", "web", *address).code == 0
    with stateful.client(username="looks") as client:
        until = time.monotonic() + 60
        while not client.get_traffic_stats(pid_input="web")["client"].get("tcps_connects"):
            assert time.monotonic() < until, "no connections"
    ended = allosaur("stats", "--pid", "web", "--counters", *address, "--json")
    assert ended.json()["states"]["web"] == "STATE_TX"
    assert ended.json()["counters"]["client"]["tcps_connects"] > 0
    assert allosaur("update", "-m", "60", "--pid", "web", *address, "--json").json()["updated"] == ["web"]
    allosaur("start", HTTP, "--pid", "web", *address).failed(3, "runs already")
    assert allosaur("stop", "--pid", "web", *address, "--json").json()["stopped"] == ["web"]
    seen = allosaur("stats", "--pid", "web", *address, "--json").json()
    assert seen["clients"]["active_flows"] == 0
    assert seen["clients"]["closed_flows"] == seen["clients"]["begun_flows"] > 0
    assert allosaur("clear", "--pid", "web", *address).code == 0
    allosaur("stats", "--pid", "web", *address).refused("no profile 'web'")


def test_ctrl_c_stops_the_flows_and_says_what_came_of_them(start: Start, stateful: LocalServer) -> None:
    running = start(
        "-m", "allosaur.cli", "run", HTTP, "-m", "50", "-d", "forever", *where(stateful), "--json"
    )
    with stateful.client(username="looks") as client:
        grown(client, 10)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 130, err
        result = json.loads(out)
        assert result["interrupted"] is True
        assert result["clients"]["closed_flows"] == result["clients"]["begun_flows"] >= 10
        client.sync()
        assert client.get_profiles_state() == {"_": "STATE_IDLE"}


def test_each_kind_of_profile_wants_its_kind_of_server(allosaur: Any, stateful: LocalServer) -> None:
    streams = ROOT / "profiles" / "imix.py"
    allosaur("run", streams, *where(stateful)).refused("runs flows", "allosaur server")
    with LocalServer(options=["--stateless"]) as stateless:
        allosaur("run", HTTP, *where(stateless)).refused("sends streams", "allosaur server --stateful")
        allosaur("stop", "--pid", "web", *where(stateless)).refused("--pid", "stateful profiles")
    allosaur("ping", "192.0.2.1", *where(stateful)).refused("runs flows")


# TRex's launcher


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "trex_cfg.yaml"
    path.write_text(
        "- version: 2\n  interfaces: ['memory', 'memory']\n  port_limit: 2\n"
        "  zmq_rpc_port: 0\n  zmq_pub_port: 0\n",
        encoding="utf-8",
    )
    return path


def test_the_launcher_starts_a_stateful_server(start: Start, config: Path) -> None:
    process = start(LAUNCHER, "-i", "--astf", "--cfg", config, "--iom", "0")
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("ready "))
    facts = dict(word.partition("=")[::2] for word in line.split()[1:])
    ports = [int(facts[name].rpartition(":")[2]) for name in ("rpc", "pub")]
    with ASTFClient(server="127.0.0.1", sync_port=ports[0], async_port=ports[1]) as client:
        client.reset()
        client.load_profile(HTTP)
        client.start(mult=50, duration=0.5)
        client.wait_on_traffic(timeout=60)
        assert client.get_traffic_stats()["client"]["tcps_connects"] > 0
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err


def test_the_launcher_runs_a_profile_and_ends(start: Start, config: Path) -> None:
    words = ["--astf", "-f", HTTP, "-m", "50", "-d", "1", "-l", "50", "-t", "response=5000", "-c", "1"]
    process = start(LAUNCHER, *words, "--cfg", config)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 or NOT_IN_TIME in out, err
    for shown in ("offered flows", "connected flows", "latency", "50"):
        assert shown in out, shown
