"""Clients that are killed at the worst moment, or fight for a port: the server goes on as if nothing was."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from allosaur.server import LocalServer

PACKETS = 10_000
PPS = 40_000

PEER = '''
"""The beginning of each program that is killed or fights: a client of its own, of ZeroMQ and JSON only."""
import json, struct, sys, time, zlib
import zmq

peer = zmq.Context().socket(zmq.DEALER)
peer.connect(f"tcp://{sys.argv[1]}:{sys.argv[2]}")

def send(messages):
    text = json.dumps(messages).encode()
    peer.send_multipart([b"", struct.pack(">II", 0xABE85CEA, len(text)) + zlib.compress(text)])

def request(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

def call(method, **params):
    peer.send_multipart([b"", json.dumps(request(method, **params)).encode()])
    return json.loads(peer.recv_multipart()[-1])

api_h = call("api_sync_v2", name="STL", major=5, minor=1)["result"]["api_h"]

def acquire(port, user, session):
    reply = call("acquire", api_h=api_h, port_id=port, user=user, session_id=session, force=True)
    return {"api_h": api_h, "port_id": port, "handler": reply["result"]}

def stream(mode, **rate):
    return {
        "enabled": True, "self_start": True, "flags": 0, "action_count": 0, "isg": 0.0, "next_stream_id": -1,
        "mode": {**mode, "rate": {"type": "pps", "value": rate["pps"]}}, "vm": {"instructions": []},
        "packet": {"binary": "A" * 80, "meta": ""}, "flow_stats": {"enabled": False},
    }

START = {"mul": {"type": "raw", "op": "abs", "value": 1.0}, "duration": -1, "force": True}
'''


class Caller:
    """Plain requests, without a client's memory of anything."""

    def __init__(self, server: LocalServer) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, 30_000)
        self._socket.connect(f"tcp://{server.host}:{server.rpc_port}")
        self.api_handle = ""
        self.api_handle = self.call("api_sync_v2", name="STL", major=5, minor=1)["api_h"]

    def try_to(self, method: str, **params: Any) -> Any:
        """Make a request; give the whole reply."""
        if self.api_handle:
            params["api_h"] = self.api_handle
        self._socket.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        )
        return json.loads(self._socket.recv())

    def call(self, method: str, **params: Any) -> Any:
        """Make a request that must succeed."""
        reply = self.try_to(method, **params)
        assert "result" in reply, (method, params, reply)
        return reply["result"]

    def events(self, session: int) -> list[Any]:
        return list(self.call("get_async_events", session_id=session)["data"])

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture
def caller(server: LocalServer) -> Iterator[Caller]:
    caller = Caller(server)
    yield caller
    caller.close()


@contextmanager
def peer(server: LocalServer, program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs PEER and this program; killed at the end, if it still runs."""
    words = [sys.executable, "-c", PEER + program, server.host, str(server.rpc_port), *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def said(process: subprocess.Popen[str]) -> str:
    """The next line that a process printed; empty when it ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_for(holds: Callable[[], bool]) -> None:
    """Wait until something holds. The patience is for a busy machine; nothing is measured."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.005)


def counters(caller: Caller) -> tuple[int, int, int]:
    """What port 0 sent, what port 1 received, and what port 0 missed."""
    here, there = (caller.call("get_port_stats", port_id=port) for port in (0, 1))
    return here["opackets"], there["ipackets"], here["missed_packets"]


RUNNER = f"""
mine = acquire(0, "runner", int(sys.argv[3]))
call("remove_all_streams", **mine)
burst = {{"type": "single_burst", "total_pkts": {PACKETS}}}
assert "result" in call("add_stream", stream_id=1, stream=stream(burst, pps={PPS}), **mine)
assert "result" in call("start_traffic", **START, **mine)
print("running", flush=True)
time.sleep(60)
"""


def test_a_run_goes_on_to_its_end_when_its_client_is_killed(server: LocalServer, caller: Caller) -> None:
    caller.events(session=77)
    heard: list[Any] = []
    for n in range(4):
        before = counters(caller)
        with peer(server, RUNNER, str(100 + n)) as runner:
            assert said(runner) == "running"
            runner.send_signal(signal.SIGKILL)
        ended: list[Any] = []
        while 4 not in [event["type"] for event in ended]:
            ended += caller.events(session=77)
            time.sleep(0.005)
        heard += ended
        assert [event["type"] for event in ended] == [5, 10, 0, 14, 4]
        wait_for(lambda: counters(caller)[0] == counters(caller)[1])
        after = counters(caller)
        changed = tuple(now - then for now, then in zip(after, before, strict=True))
        assert changed == (PACKETS, PACKETS, 0)
        status = caller.call("get_port_status", port_id=0)
        assert (status["owner"], status["state"]) == ("runner", "STREAMS")
    assert [event["seq"] for event in heard] == list(range(len(heard)))


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)
READY_BODY = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 3) + b"REQ"
READY = b"\x04" + bytes([len(READY_BODY)]) + READY_BODY
BODY = struct.pack(">II", 0xABE85CEA, 40_000) + b"\x78\x9c" + bytes(5_000)
MESSAGE = b"\x01\x00" + b"\x02" + struct.pack(">Q", len(BODY)) + BODY
"""ZMTP 3.0 by hand: the greeting, the handshake, and a request of an empty frame and a long one."""


def open_files(server: LocalServer) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_half_a_message_is_forgotten_with_its_connection(
    server: LocalServer, caller: Caller, reset: bool
) -> None:
    whole = GREETING + READY + MESSAGE
    files = open_files(server)
    for n in range(150):
        # At every place of what comes before the request, and at many within it.
        cut = n if n < len(whole) - len(BODY) else len(whole) - len(BODY) * (n % 10 + 1) // 11
        with socket.create_connection((server.host, server.rpc_port), timeout=30) as half:
            if reset:
                half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            half.sendall(whole[:cut])
            if n % 3 == 0:
                half.recv(10)
        if n % 10 == 0:
            assert caller.call("ping")["ts"] > 0
    wait_for(lambda: open_files(server) <= files)


BATCH = 400
FLOOD = f"""
mine = acquire(0, "flood", int(sys.argv[3]))
one = stream({{"type": "continuous"}}, pps=10)
for n in range(40):
    send([
        request("add_stream", profile_id=f"{{sys.argv[3]}}-{{n}}", stream_id=k, stream=one, **mine)
        for k in range({BATCH})
    ])
    if n == 2:
        print("flooding", flush=True)
time.sleep(60)
"""


def test_a_batch_whose_client_is_killed_is_done_whole_or_not_at_all(
    server: LocalServer, caller: Caller
) -> None:
    whole = 0
    for n in range(6):
        with peer(server, FLOOD, str(100 + n)) as flood:
            assert said(flood) == "flooding"
            flood.send_signal(signal.SIGKILL)
        streams = caller.call("get_all_streams", port_id=0, profile_id="*")["profiles"]
        counts = {profile: len(ids) for profile, ids in streams.items()}
        assert set(counts.values()) <= {BATCH}, counts
        whole += len(counts)
        owner = {"port_id": 0, "user": "tidy", "session_id": 1, "force": True}
        handler = caller.call("acquire", **owner)
        # What the client had sent and the server had received may come even now: before or after, but whole.
        caller.call("remove_all_streams", port_id=0, handler=handler, profile_id="*")
        left = caller.call("get_all_streams", port_id=0, profile_id="*").get("profiles", {})
        assert left == {}, "a batch of the former owner was taken"
    assert whole > 0, "no batch was done"


DEAF = """
for n in range(int(sys.argv[3])):
    send([request("get_supported_cmds", api_h=api_h)] * 200)
print("asked", flush=True)
time.sleep(60)
"""


def test_replies_that_nobody_reads_hold_up_nobody(server: LocalServer, caller: Caller) -> None:
    with peer(server, DEAF, "400") as deaf:
        assert said(deaf) == "asked"
        for _ in range(200):
            assert caller.call("ping")["ts"] > 0
    assert caller.call("ping")["ts"] > 0


FIGHTER = """
name, session, rounds = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
one = stream({"type": "continuous"}, pps=100)
done = {"add_stream": 0, "start_traffic": 0, "stop_traffic": 0}
for n in range(rounds):
    mine = acquire(0, name, session)
    for method, params in (
        ("stop_traffic", {"profile_id": "*"}),
        ("add_stream", {"stream_id": session * 100_000 + n, "stream": one}),
        ("start_traffic", START),
    ):
        reply = call(method, **params, **mine)
        if "result" in reply:
            done[method] += 1
        else:
            # The other one has taken the port since.
            assert "not owned by you" in reply["error"]["specific_err"], reply
print(json.dumps({"handler": mine["handler"], "done": done}), flush=True)
"""


def test_two_clients_fight_for_a_port_and_each_change_is_its_owner_s(
    server: LocalServer, caller: Caller
) -> None:
    rounds = 200
    heard = caller.events(session=77)
    with (
        server.client(username="reader") as reader,
        peer(server, FIGHTER, "red", "11", str(rounds)) as red,
        peer(server, FIGHTER, "blue", "12", str(rounds)) as blue,
    ):
        while red.poll() is None or blue.poll() is None:
            stats = reader.get_stats()
            assert stats["total"]["opackets"] == stats[0]["opackets"]
            assert caller.call("get_owner", port_id=0)["owner"] in ("<FREE>", "red", "blue")
            heard += caller.events(session=77)
        results = [json.loads(said(fighter)) for fighter in (red, blue)]
    heard += caller.events(session=77)
    done = {method: sum(result["done"][method] for result in results) for method in results[0]["done"]}
    check_events_of_a_fight(heard, rounds, done)
    # One of the two has the port; the other one has nothing.
    allowed = {"port_id": 0, "profile_id": "*"}
    replies = [caller.try_to("stop_traffic", handler=result["handler"], **allowed) for result in results]
    assert sorted("result" in reply for reply in replies) == [False, True]
    assert len(caller.call("get_stream_list", port_id=0)) == done["add_stream"]
    wait_for(lambda: counters(caller)[0] == counters(caller)[1])


def check_events_of_a_fight(heard: list[Any], rounds: int, done: dict[str, int]) -> None:
    """A bystander hears of every acquisition and every start, without a gap, and in a possible order."""
    assert [event["seq"] for event in heard] == list(range(len(heard)))
    taken = [event["data"] for event in heard if event["type"] == 5]
    assert [data["who"] for data in taken].count("red") == rounds
    assert [data["who"] for data in taken].count("blue") == rounds
    assert [data["force"] for data in taken] == [False] + [True] * (2 * rounds - 1)
    assert [event["type"] for event in heard].count(10) == done["start_traffic"] > 0
    changes = [event["type"] for event in heard if event["type"] in (0, 1, 10, 11)]
    cycle = [10, 0, 11, 1]
    assert changes == [cycle[n % 4] for n in range(len(changes))]


def fetch_until_the_end(server: LocalServer, farewell: Callable[[], None]) -> list[Any]:
    """The events that a listening session gets after `farewell`, which makes the server end."""
    context = zmq.Context()
    doorbell = context.socket(zmq.SUB)
    doorbell.setsockopt(zmq.SUBSCRIBE, b"")
    doorbell.setsockopt(zmq.RCVTIMEO, 30_000)
    doorbell.connect(f"tcp://{server.host}:{server.pub_port}")
    listener = Caller(server)
    try:
        listener.events(session=5)
        while not doorbell.poll(20):
            listener.call("publish_now", key=1, baseline=False)
        while doorbell.poll(100):
            doorbell.recv()
        farewell()
        while doorbell.recv() != b"{}":
            pass
        return listener.events(session=5)
    finally:
        listener.close()
        context.destroy(linger=0)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_who_listens_is_told_that_a_signal_ends_the_server(server: LocalServer, name: str) -> None:
    pid = server.pid
    assert pid is not None
    events = fetch_until_the_end(server, lambda: os.kill(pid, signal.Signals[name]))
    assert [(event["type"], event["data"]) for event in events] == [
        (100, {"cause": f"received signal {name}"})
    ]
    wait_for(lambda: not server.is_running())


def test_who_listens_is_told_who_ended_the_server(server: LocalServer, caller: Caller) -> None:
    events = fetch_until_the_end(server, lambda: caller.call("shutdown", user="ann", force=False))
    assert [event["type"] for event in events] == [100]
    assert "ann" in events[0]["data"]["cause"]
    wait_for(lambda: not server.is_running())
