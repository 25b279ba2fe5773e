"""How traffic ends when a command is killed, its terminal is closed, or somebody takes its ports over."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import STLClient
from allosaur.server import LocalServer

from .conftest import Ended

ROOT = Path(__file__).resolve().parents[2]
IMIX = ROOT / "profiles" / "imix.py"
HTTP = ROOT / "profiles" / "stateful" / "http.py"
#: However slow the machine is; the tests wait for what must happen, not for a time.
PATIENCE_S = 120

pytestmark = pytest.mark.usefixtures("binary")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture(autouse=True)
def terminals_may_close() -> Iterator[None]:
    """What runs under nohup passes an ignored SIGHUP on to all that it starts; here it must end them."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start the command line; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: object, **more: Any) -> subprocess.Popen[str]:
        settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        command = [sys.executable, "-m", "allosaur.cli", *map(str, words)]
        started.append(subprocess.Popen(command, text=True, env=environment(), cwd=tmp_path, **settings))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def stateful() -> Iterator[LocalServer]:
    with LocalServer(stateful=True) as server:
        yield server


def ended_of(running: subprocess.Popen[str]) -> Ended:
    """What a command that was started printed, when it has ended."""
    out, err = running.communicate(timeout=PATIENCE_S)
    return Ended(running.returncode, out, err)


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]


def until(holds: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def port_of(client: STLClient, port: int = 0) -> dict[str, Any]:
    one: dict[str, Any] = client.get_status()["ports"][port]
    return one


def sends(client: STLClient) -> bool:
    return bool(port_of(client)["state"] == "TX" and client.get_stats(ports=[0])[0]["opackets"] > 10_000)


def run_streams(start: Any, server: LocalServer, client: STLClient, *words: str, **more: Any) -> Any:
    running = start("run", IMIX, "-m", "10kpps", "-d", "forever", *where(server), *words, **more)
    until(lambda: sends(client), "nothing is sent")
    return running


# killed, and closed terminals


def test_a_run_that_is_killed_stops_with_its_lease(start: Any, server: LocalServer) -> None:
    with server.client(username="looks") as client:
        running = run_streams(start, server, client)
        assert port_of(client)["owner"]["lease_s"] == 10
        running.kill()
        until(lambda: port_of(client)["owner"] is None, "the port was not released")
        assert port_of(client)["state"] == "STREAMS", "it does not send any more"
        words = [str(event) for event in client.get_events()]
        assert any("Port 0 has stopped" in word for word in words), words
        assert any("Port 0 was released" in word for word in words), words
    assert "lease" in server.stderr


def test_flows_of_a_run_that_is_killed_stop_with_its_lease(start: Any, stateful: LocalServer) -> None:
    with stateful.client(username="looks") as client:
        running = start("run", HTTP, "-m", "20", "-d", "forever", *where(stateful))
        until(lambda: client.get_status()["profiles"][0]["run"], "nothing runs")
        running.kill()
        until(lambda: port_of(client)["owner"] is None, "the server was not released")
        assert client.get_status()["profiles"][0]["run"] is None


def test_a_run_that_hangs_up_stops_its_traffic_as_on_sigterm(start: Any, server: LocalServer) -> None:
    with server.client(username="looks") as client:
        running = run_streams(start, server, client, "--json")
        running.send_signal(signal.SIGHUP)
        out, err = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 129, err
        assert json.loads(out)["interrupted"] is True
        assert port_of(client)["owner"] is None
        assert port_of(client)["state"] == "IDLE"


def test_a_terminal_that_is_closed_stops_the_traffic(start: Any, server: LocalServer) -> None:
    def own_terminal() -> None:
        os.setsid()
        os.close(os.open(os.ttyname(0), os.O_RDWR))  # now it is the session's terminal

    ours, theirs = pty.openpty()
    with server.client(username="looks") as client:
        running = run_streams(
            start, server, client, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=own_terminal
        )
        os.close(theirs)
        os.close(ours)
        assert running.wait(PATIENCE_S) == 129
        assert port_of(client)["owner"] is None
        assert port_of(client)["state"] == "IDLE"


def test_who_asks_for_no_lease_has_none(server: LocalServer, allosaur: Any) -> None:
    with server.client() as client:
        client.acquire([0])
        assert port_of(client)["owner"]["lease_s"] is None
        client.acquire([1], lease_s=3.5)
        assert port_of(client, 1)["owner"]["lease_s"] == 3.5


# taken over, and servers that die


def test_a_run_that_is_taken_over_says_by_whom_and_shows_what_it_measured(
    start: Any, server: LocalServer
) -> None:
    with server.client(username="bob") as bob:
        running = run_streams(start, server, bob, "--json", "--report", "report.html")
        bob.reset(ports=[0])
        out, err = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 3, err
        result = json.loads(out)
        assert result["cut_short"].startswith("user bob (session ")
        assert ") took port 0 over at " in result["cut_short"]
        assert result["verdict"].startswith(result["cut_short"])
        assert result["ok"] is False
        assert result["ports"]["0"]["tx_packets"] > 0
        assert "acquire" not in err
        assert bob.get_acquired_ports() == [0], "it is still bob's"


def test_flows_that_are_taken_over_say_by_whom(start: Any, stateful: LocalServer, tmp_path: Path) -> None:
    with stateful.client(username="bob") as bob:
        running = start("run", HTTP, "-m", "20", "-d", "forever", *where(stateful), "--report", "report.html")
        until(lambda: bob.get_status()["profiles"][0]["run"], "nothing runs")
        until(lambda: bob.get_traffic_stats()["client"].get("tcps_connects", 0) > 20, "no connections")
        bob.reset()
        out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 3, err
    assert "user bob (session " in out
    assert ") took the server over at " in out
    assert "opened flows" in out
    assert "took the server over at " in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("how", "words"), [(signal.SIGTERM, "the server stopped at "), (signal.SIGKILL, "the server ")]
)
def test_a_run_whose_server_dies_shows_what_it_measured(start: Any, how: int, words: str) -> None:
    with LocalServer() as server:
        with server.client(username="looks") as client:
            running = run_streams(start, server, client, "--json")
        assert server.pid is not None
        os.kill(server.pid, how)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 3, err
    result = json.loads(out)
    assert result["cut_short"].startswith(words)
    assert "connect()" not in out + err
    assert result["ports"]["0"]["tx_packets"] > 0


# a gateway that answers late


def test_the_launcher_waits_for_gateways(tmp_path: Path) -> None:
    config = tmp_path / "trex_cfg.yaml"
    config.write_text(
        "- version: 2\n  interfaces: ['memory', 'memory']\n  port_limit: 2\n"
        "  zmq_rpc_port: 0\n  zmq_pub_port: 0\n  port_info:\n"
        "    - {ip: 1.1.1.1, default_gw: 1.1.1.2}\n    - {ip: 1.1.1.2, default_gw: 1.1.1.1}\n",
        encoding="utf-8",
    )
    launcher = ROOT / "scripts" / "wheel-data" / "scripts" / "t-rex-64"
    words = ["--astf", "-f", HTTP, "-m", "10", "-d", "1", "--cfg", config]
    done = subprocess.run(
        [sys.executable, launcher, *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )
    assert "MAC address" not in done.stdout + done.stderr
    assert "connected flows" in done.stdout, done


@pytest.mark.parametrize("kind", ["streams", "flows"])
def test_a_gateway_that_does_not_answer_is_named(
    allosaur: Any, start: Any, tmp_path: Path, kind: str
) -> None:
    config = tmp_path / "allosaur.yaml"
    config.write_text(
        "version: 1\nports:\n  - {port: memory, ip: 1.1.1.1, default_gateway: 1.1.1.9}\n  - {port: memory}\n",
        encoding="utf-8",
    )
    is_stateful = kind == "flows"
    profile = (HTTP if is_stateful else IMIX, "-d", "1")
    with (
        LocalServer(config=config, stateful=is_stateful) as one,
        LocalServer(config=config, stateful=is_stateful) as other,
    ):
        running = start("run", *profile, *where(one))
        for ended in (allosaur("start", *profile, *where(other)), ended_of(running)):
            ended.failed(3, "port 0: gateway 1.1.1.9 did not answer ARP for 10 s", "allosaur arp --port 0")


def test_push_waits_for_the_gateway_that_its_frames_go_to(allosaur: Any, start: Any, tmp_path: Path) -> None:
    config, capture = tmp_path / "allosaur.yaml", tmp_path / "send.pcap"
    assert allosaur("sim", IMIX, "-o", capture, "--limit", "5").code == 0
    config.write_text(
        "version: 1\nports:\n  - {port: memory, ip: 1.1.1.1, default_gateway: 1.1.1.9}\n  - {port: memory}\n",
        encoding="utf-8",
    )
    with (
        LocalServer(config=config, options=["--captures-folder", "/"]) as server,
        LocalServer(config=config, options=["--captures-folder", "/"]) as other,
    ):
        push = ("push", capture, *where(server))
        running = start("push", capture, *where(other), "--remote")
        for ended in (allosaur(*push), ended_of(running)):
            ended.failed(3, "port 0: gateway 1.1.1.9 did not answer ARP for 10 s", "allosaur arp --port 0")
        # With the addresses of the capture there is nothing to wait for.
        ended = allosaur(*push, "--dst-mac-pcap")
        assert ended.code == 0, ended
        with server.client() as client:
            client.acquire([1])
            client.set_service_mode([1])
            client._layers.configure("set_l3", [1], src_addr="1.1.1.9", dst_addr="1.1.1.1")
            ended = allosaur(*push)
            assert ended.code == 0, ended


def test_a_ping_to_a_port_of_the_same_server_is_answered(allosaur: Any, tmp_path: Path) -> None:
    config = tmp_path / "allosaur.yaml"
    config.write_text(
        "version: 1\nports:\n  - {port: memory, ip: 1.1.1.1, default_gateway: 1.1.1.2}\n"
        "  - {port: memory, ip: 1.1.1.2, default_gateway: 1.1.1.1}\n",
        encoding="utf-8",
    )
    with LocalServer(config=config) as server:
        with server.client() as client:
            until(lambda: client.get_port_attr(0)["arp"] not in ("-", "unresolved"), "no gateway")
        result = allosaur("ping", "1.1.1.2", "-n", "1", *where(server), "--json").json()
        assert result["received"] == 1
        with server.client(username="bob") as bob:
            assert not bob.get_port(1).is_service, "as it was before"
            bob.acquire([1])
            allosaur("ping", "1.1.1.2", "-n", "1", *where(server)).failed(3, "port 1", "bob")


def test_the_port_of_events_is_found(start: Any, allosaur: Any) -> None:
    for _ in range(5):
        with LocalServer() as other:
            free = other.rpc_port  # nobody listens there when it has ended
        server = start("server", "--rpc-port", free)
        line = next((line for line in server.stdout if line.startswith("ready ")), "")
        if line:  # else another program has taken it, or the one before it, meanwhile
            break
    assert f"pub=tcp://127.0.0.1:{free - 1} " in line
    assert allosaur("status", "--server", f":{free}").code == 0
    server.send_signal(signal.SIGTERM)


# traffic that outlives the command


def test_streams_are_started_watched_changed_and_stopped(allosaur: Any, server: LocalServer) -> None:
    at = where(server)
    started = allosaur("start", IMIX, "-m", "1kpps", "--ports", "0,1", *at)
    assert started.code == 0, started
    assert "Ports 0, 1 send, until it is stopped." in started.out
    assert f"allosaur stop --server {server.host}:{server.rpc_port}" in started.out
    with server.client(username="looks") as client:
        until(lambda: port_of(client)["state"] == "TX", "nothing is sent")
        status = allosaur("status", *at, "--json").json()
        assert (status["mode"], status["ports"][0]["owner"]) == ("both", None)
        assert status["ports"][1]["profiles"][0]["run"]["since"].startswith("20")
        for shown in ("stateless", "2 ports", "sends", "nobody", "until stopped"):
            assert shown in allosaur("status", *at).out
        allosaur("start", IMIX, *at).failed(3, "port 0 sends already", "allosaur stop")
        allosaur("run", IMIX, *at).failed(3, "port 0 sends already", "--force")
        assert allosaur("update", "-m", "2kpps", *at, "--json").json()["updated"] == [0, 1]
        allosaur("clear", *at).failed(3, "port 0, 1 sends", "stop --clear")
        stats = allosaur("stats", *at, "--json").json()
        assert stats["ports"]["0"]["state"] == "sends"
        assert stats["ports"]["1"]["tx_packets"] > 0
        assert "sent packets" in allosaur("stats", "--groups", "--latency", *at).out
        assert allosaur("stop", "--ports", "1", *at, "--json").json()["stopped"] == [1]
        ended = allosaur("stop", "--clear", *at, "--json").json()
        assert (ended["stopped"], ended["cleared"]) == ([0], [0, 1])
        assert allosaur("stop", *at).out == "Nothing ran.\n"
        assert allosaur("clear", *at).out == "No port has streams.\n"
        allosaur("update", "-m", "2", *at).failed(3, "nothing runs", "allosaur start")
        allosaur("stop", "--pid", "web", *at).refused("no profile 'web'")
        assert client.get_status()["ports"][0]["owner"] is None


def test_status_of_flows(allosaur: Any, stateful: LocalServer) -> None:
    at = where(stateful)
    assert allosaur("start", HTTP, "-m", "5", "--pid", "web", *at).code == 0
    status = allosaur("status", *at, "--json").json()
    assert status["mode"] == "stateful"
    run = next(one for one in status["profiles"] if one["profile_id"] == "web")["run"]
    assert (run["multiplier"], run["duration_s"]) == (5.0, None)
    for shown in ("stateful", "web", "runs", "until stopped"):
        assert shown in allosaur("status", *at).out
    allosaur("stop", "--ports", "0", *at).refused("--ports", "streams")
    assert allosaur("stop", "--pid", "web", *at).code == 0
    with stateful.client() as client:
        assert client.get_status()["profiles"][1]["run"] is None
