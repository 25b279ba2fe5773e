"""`allosaur top` over a real server with streams and flows at once: its screens, keys, documents and ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from allosaur import (
    ASTFClient,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
)
from allosaur.cli.top._reader import Clients
from allosaur.cli.top._source import Source
from allosaur.cli.top._state import State
from allosaur.server import LocalServer
from allosaur.testing import MockTransport
from scapy.all import IP, UDP, Ether

WAIT_S = 60
HTTP = Path(__file__).resolve().parents[2] / "profiles" / "stateful" / "http.py"
Run = Callable[..., Any]


def stream(number: int, flow_stats: Any, pps: int = 1000) -> STLStream:
    packet = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=number) / bytes(22)
    return STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=pps), flow_stats=flow_stats)


@pytest.fixture(scope="module")
def busy() -> Iterator[LocalServer]:
    """A server of both modes: streams on ports 0 and 1, which nobody owns, flows on 2 and 3, ann's."""
    with (
        LocalServer(ports=["memory"] * 4, cores=1) as server,
        connected(server, ASTFClient) as flows,
    ):
        with connected(server, STLClient) as streams:
            streams.reset([0, 1])
            streams.add_streams(
                [stream(12, STLFlowStats(pg_id=7)), stream(13, STLFlowLatencyStats(pg_id=8))], ports=[0]
            )
            streams.start(ports=[0])
            streams.disconnect(stop_traffic=False)
        flows.acquire(ports=[2, 3])
        flows.load_profile(str(HTTP))
        flows.start(mult=10, duration=-1)
        flows.start_latency(mult=100)
        yield server


@contextlib.contextmanager
def connected(server: LocalServer, kind: type[STLClient]) -> Iterator[Any]:
    client = kind(username="ann", server=server.host, sync_port=server.rpc_port, async_port=server.pub_port)
    client.connect()
    try:
        yield client
    finally:
        with contextlib.suppress(STLError):
            client.disconnect(stop_traffic=False)


@contextlib.contextmanager
def source_of(server: LocalServer, readonly: bool = False) -> Iterator[tuple[Source, State]]:
    with contextlib.ExitStack() as stack:

        def connect() -> Clients:
            stack.close()
            return Clients(
                stack.enter_context(connected(server, STLClient)),
                stack.enter_context(connected(server, ASTFClient)),
            )

        yield Source(f"{server.host}:{server.rpc_port}", connect), State(readonly=readonly)


class Shown:
    """A dashboard without a terminal, with what is on its screen."""

    def __init__(self, app: Any, pilot: Any) -> None:
        self.app, self._pilot = app, pilot

    @property
    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)

    async def see(self, is_there: str | Callable[[str], bool]) -> str:
        """Wait for words, or for a text of which something holds."""
        deadline = time.monotonic() + WAIT_S
        holds = is_there if callable(is_there) else lambda text: is_there in text
        while not holds(self.text):
            assert time.monotonic() < deadline, f"{is_there!r} did not come, but:\n{self.text}"
            await self._pilot.pause(0.05)
        return self.text


def watched(
    source: Source,
    state: State,
    steps: Callable[[Shown], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    **more: Any,
) -> int | None:
    """Do steps on a dashboard; return its exit code, if it ended."""
    from allosaur.cli.top._app import Dashboard

    app = Dashboard(source, state, 0.2, **more)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await steps(Shown(app, pilot))

    asyncio.run(run())
    return app.return_value


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_each_view_shows_what_runs(busy: LocalServer, size: tuple[int, int]) -> None:
    async def steps(shown: Shown) -> None:
        text = await shown.see(lambda text: text.count("sends") >= 1 and "no errors" in text)
        assert "both modes" in text and "nobody" in text and "ann" in text
        await shown.press("s")
        text = await shown.see("Streams, by packet group")
        row = await shown.see(lambda text: any(line.split()[:1] == ["7"] for line in text.splitlines()))
        await shown.press("l")
        await shown.see(lambda text: "pg 8" in text and "port 2" in text)
        await shown.press("h")
        await shown.see("sum %")
        await shown.press("t")
        await shown.see("Flows: all profiles")
        await shown.see("m_active_flows")
        await shown.press("right")
        await shown.see("Flows: profile _")
        while "completed flows" not in shown.text:
            await shown.press("pagedown")
        await shown.press("u")
        await shown.see("Data cores")
        await shown.press("v", "v")
        await shown.see("Counters of the drivers")
        await shown.see("opackets" if "opackets" in shown.text else "port 0")
        await shown.press("i")
        await shown.see("src MAC")
        await shown.press("question_mark")
        await shown.see("packet groups: sent, received")
        lines = shown.text.splitlines()
        assert len(lines) == size[1] and max(map(len, lines)) <= size[0], row
        await shown.press("q")

    with source_of(busy) as (source, state):
        assert watched(source, state, steps, size) == 0


def test_keys_acquire_change_and_release(server: LocalServer) -> None:
    with connected(server, STLClient) as owner:
        owner.reset()
        owner.add_streams([stream(12, None)], ports=[0])
        owner.start(ports=[0], mult="2")

    def multiplier() -> float:
        with connected(server, STLClient) as asker:
            (profile,) = asker.get_status()["ports"][0]["profiles"]
            return float(profile["run"]["multiplier"])

    async def steps(shown: Shown) -> None:
        await shown.see("sends")
        await shown.press("p")
        await shown.see("A takes them")
        await shown.press("A")
        await shown.see("acquired")
        await shown.see(lambda text: "p pause" in text)
        await shown.press("plus")
        await shown.see("port 0: multiplier 2.1")
        assert multiplier() == pytest.approx(2.1)
        await shown.press("minus")
        await shown.see(lambda text: "multiplier 2" in text and "multiplier 2.1" not in text)
        await shown.press("p")
        await shown.see("paused")
        await shown.see(lambda text: "r resume" in text)
        await shown.press("r")
        await shown.see("resumed")
        await shown.press("c")
        await shown.see("counting from here")
        await shown.press("R")
        await shown.see("released")
        await shown.see("nobody")

    with source_of(server) as (source, state):
        watched(source, state, steps)


def test_a_readonly_dashboard_owns_nothing(busy: LocalServer) -> None:
    async def steps(shown: Shown) -> None:
        await shown.see("sends")
        await shown.press("A", "p")
        await shown.see("this is read-only")

    with source_of(busy, readonly=True) as (source, state):
        watched(source, state, steps)
        assert state.snapshot is not None and state.snapshot.ours == []


def test_a_server_that_goes_away_is_told_and_read_again_when_it_is_back() -> None:
    with LocalServer(ports=["memory", "memory"], cores=1) as first:
        rpc_port, pub_port = first.rpc_port, first.pub_port

        async def steps(shown: Shown) -> None:
            await shown.see("v0")
            await asyncio.to_thread(first.stop)
            await shown.see("server lost")
            await shown.see("trying again")
            with LocalServer(ports=["memory"] * 3, cores=1, rpc_port=rpc_port, pub_port=pub_port):
                await shown.press("a")
                await shown.see(lambda text: "lost" not in text)
                await shown.press("a")
                await shown.see(lambda text: any(line.startswith("   2 ") for line in text.splitlines()))
                await shown.press("q")

        with source_of(first) as (source, state):
            assert watched(source, state, steps) == 0


def test_a_console_owns_its_ports_again_when_the_server_is_back() -> None:
    from allosaur.cli.console._session import Settings, Target, opened
    from allosaur.cli.console.commands._dashboard import _clients
    from allosaur.cli.top._source import Lost

    with LocalServer(ports=["memory", "memory"], cores=1) as first:
        rpc_port, pub_port = first.rpc_port, first.pub_port
        target = Target(first.host, rpc_port, pub_port)
        with opened(target, Settings()) as session, contextlib.ExitStack() as connections:
            source = Source(str(target), lambda: _clients(session, connections))
            source.open()
            state = State()
            state.take(source.read(state.wanted))
            assert state.snapshot is not None and state.snapshot.ours == [0, 1]
            first.stop()
            with pytest.raises(Lost):
                source.read(state.wanted)
            with LocalServer(ports=["memory", "memory"], cores=1, rpc_port=rpc_port, pub_port=pub_port):
                deadline = time.monotonic() + WAIT_S
                state.lose("it is away")
                while state.lost is not None:
                    assert time.monotonic() < deadline
                    with contextlib.suppress(Lost):
                        state.take(source.read(state.wanted))
                assert state.snapshot.ours == [0, 1] and session.is_connected


def test_a_terminal_that_becomes_too_small_says_so_until_it_is_larger(busy: LocalServer) -> None:
    async def steps(shown: Shown) -> None:
        await shown.see("sends")
        await shown.resize(60, 20)
        await shown.see("60x20: enlarge to 80x24; q quits")
        await shown.resize(120, 30)
        await shown.see(lambda text: "sends" in text and len(text.splitlines()) == 30)
        await shown.press("q")

    with source_of(busy) as (source, state):
        assert watched(source, state, steps) == 0


@pytest.mark.parametrize("mode", ["--stateless", "--stateful"])
def test_a_server_of_one_mode_is_shown(allosaur: Run, mode: str) -> None:
    with LocalServer(options=[mode]) as one:
        told = allosaur("top", "--once", "--json", *where(one)).json()
    assert told["server"]["modes"] == [mode.removeprefix("--")]
    assert (told["flows"] is None) == (mode == "--stateless") and list(told["ports"]) == ["0", "1"]


def test_only_cells_that_changed_are_written_again() -> None:
    from allosaur.cli.top._lines import STRIPE, changes
    from allosaur.cli.top._table import Look

    def found(old: str, new: str) -> list[tuple[int, ...]]:
        before, after = ([[(letter, Look.PLAIN) for letter in text]] for text in (old, new))
        return [tuple(region) for region in changes(before, after)]

    assert found("port 0", "port 0") == []
    assert found("1.25 M  640 M  0", "1.26 M  640 M  3") == [(3, 0, 13, 1)]
    bold = [[(letter, Look.TITLE) for letter in "ab"]]
    assert list(changes([[("a", Look.TITLE), ("b", Look.PLAIN)]], bold)) == [(1, 0, 1, 1)]
    assert STRIPE == 8, "or say so in the guide, whose bytes were measured"


def test_a_server_of_trex_is_shown_with_what_it_tells() -> None:
    transport = MockTransport(port_count=2)
    transport.answer("get_supported_cmds", ["get_version", "get_port_status", "get_utilization"])
    transport.port_stats[0].update(opackets=500, m_total_tx_pps=1000.0)
    client = STLClient(transport=transport)
    client.connect()
    source, state = Source("trex:4501", lambda: Clients(client)), State()

    async def steps(shown: Shown) -> None:
        text = await shown.see(lambda text: "trex:4501" in text and "1.00 k" in text)
        assert "stateless" in text and "up 0:" not in text and "t flows" not in text

    watched(source, state, steps)
    assert "get_status" not in transport.methods()


def test_an_event_that_both_clients_heard_is_told_once(server: LocalServer) -> None:
    with source_of(server) as (source, state), connected(server, STLClient) as owner:
        source.open()
        owner.acquire([0])
        owner.release([0])
        owner.acquire([0])
        deadline = time.monotonic() + WAIT_S
        texts: list[str] = []
        while sum("was taken" in text for text in texts) < 2:
            assert time.monotonic() < deadline, texts
            texts = [note.text for note in source.read(state.wanted).notes]
        texts = [note.text for note in source.read(state.wanted).notes]
        assert (
            sum("was taken" in text for text in texts) == 2 and sum("released" in text for text in texts) == 1
        )


def test_once_prints_all_of_it(allosaur: Run, busy: LocalServer) -> None:
    ended = allosaur("top", "--once", *where(busy))
    assert ended.code == 0 and "\x1b" not in ended.out
    for words in (
        "Ports",
        "sends",
        "Streams",
        "Latency (usec)",
        "Flows: all profiles",
        "Data cores",
    ):
        assert words in ended.out


def test_once_as_json_is_one_object(allosaur: Run, busy: LocalServer, tmp_path: Path) -> None:
    told = allosaur("top", "--once", "--json", *where(busy)).json()
    assert told["ok"] and told["server"]["modes"] == ["stateless", "stateful"]
    assert {name: one["mode"] for name, one in told["ports"].items()} == {
        "0": "stateless",
        "1": "stateless",
        "2": "stateful",
        "3": "stateful",
    }
    assert told["flow_stats"]["7"]["tx_pkts"] > 0 and told["latency"]["pg 8"]["times_usec"]["p99"] > 0
    assert told["flows"]["client"]["tcps_connects"] > 0 and told["ports"]["2"]["owner"] == "ann"
    assert {run["profile"] for run in told["runs"]} == {"_"} and len(told["runs"]) == 2
    ended = allosaur("top", "--once", "--json", "one.json", *where(busy))
    assert ended.code == 0 and json.loads((tmp_path / "one.json").read_text())["command"] == "top"


def test_json_is_a_line_for_each_reading(busy: LocalServer) -> None:
    command = [sys.executable, "-m", "allosaur.cli", "top", "--json", "-i", "100ms", *where(busy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert first["ok"] and second["ok"]
        assert second["ports"]["0"]["counters"]["opackets"] > first["ports"]["0"]["counters"]["opackets"]
        assert [one for one in first["events"] if one in second["events"]] == []
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130


def test_wrong_words_and_terminals_are_refused(allosaur: Run, busy: LocalServer) -> None:
    allosaur("top", *where(busy)).failed(3, "is not a terminal", "--once")
    allosaur("top", "--json", "one.json", *where(busy)).refused("--json FILE", "--once")
    allosaur("top", "--once", "-i", "1ms", *where(busy)).refused("--interval", "100ms")
    allosaur("top", "--once", "--ports", "9", *where(busy)).refused("no port 9")
    ended = allosaur("top", "--once", "--json", "--server", "localhost:1")
    assert ended.code == 3 and not ended.json()["ok"] and "no server answers" in ended.json()["error"]


def where(server: LocalServer) -> list[str]:
    return ["--server", f"{server.host}:{server.rpc_port}", "--pub-port", str(server.pub_port)]
