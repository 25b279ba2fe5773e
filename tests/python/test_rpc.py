"""Framing, JSON-RPC, and real ZeroMQ sockets against a scripted server."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from allosaur import STLClient, STLConnectionError, STLRpcError, STLTimeoutError
from allosaur.rpc._rpc import BATCH_BYTES_MAX, ZIP_BYTES_MIN, Rpc, pack, unpack
from allosaur.rpc._transport import Signal, ZmqTransport


class Script:
    """A transport whose answers are made by a function from the decoded request."""

    address = "script"

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.requests: list[Any] = []
        self.sizes: list[int] = []
        self._answer = answer

    def request(self, payload: bytes, _timeout_s: float) -> bytes:
        text = unpack(payload)
        assert (text != payload) == (len(text) >= ZIP_BYTES_MIN), "large requests are zipped"
        self.requests.append(json.loads(text))
        self.sizes.append(len(text))
        answer = self._answer(self.requests[-1])
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    open = subscribe = close = None


def echo(request: Any) -> Any:
    """Answer each request with its parameters; a batch of one like the server: without a list."""
    answers = [
        {"jsonrpc": "2.0", "id": item["id"], "result": item["params"]}
        for item in (request if isinstance(request, list) else [request])
    ]
    return answers if len(answers) > 1 else answers[0]


def rpc(answer: Callable[[Any], Any], **settings: float) -> tuple[Rpc, Script]:
    script = Script(answer)
    return Rpc(script, **settings), script  # type: ignore[arg-type]


def test_zipped_messages_come_back() -> None:
    text = b'{"a": 1}' * 100
    frame = pack(text)
    assert struct.unpack(">II", frame[:8]) == (0xABE85CEA, len(text))
    assert zlib.decompress(frame[8:]) == text
    assert unpack(frame) == text
    assert unpack(b"{}") == b"{}", "plain text passes"
    assert unpack(text) == text


@pytest.mark.parametrize(
    "frame",
    [
        pack(b"hello")[:-3],
        pack(b"hello")[:8] + b"garbage",
        struct.pack(">II", 0xABE85CEA, 4) + zlib.compress(b"hello"),
        struct.pack(">II", 0xABE85CEA, 0xFFFFFFFF) + zlib.compress(b"hello"),
    ],
)
def test_damaged_envelopes_are_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        unpack(frame)


def test_a_call_carries_the_api_handle() -> None:
    caller, script = rpc(echo)
    assert caller.call("ping", x=1) == {"x": 1}
    caller.api_handle = "key"
    assert caller.call("ping") == {"api_h": "key"}
    assert [request["method"] for request in script.requests] == ["ping", "ping"]
    assert all(request["jsonrpc"] == "2.0" and request["id"] for request in script.requests)
    assert script.requests[0]["id"] != script.requests[1]["id"]


def test_a_batch_keeps_its_order_and_a_batch_of_one_is_plain() -> None:
    caller, script = rpc(echo)
    assert [reply.result for reply in caller.batch([("m", {"n": n}) for n in range(3)])] == [
        {"n": 0},
        {"n": 1},
        {"n": 2},
    ]
    assert caller.batch([("m", {"n": 9})])[0].result == {"n": 9}
    assert isinstance(script.requests[1], dict)
    assert caller.batch([]) == []
    assert len(script.requests) == 2


def test_large_batches_are_split() -> None:
    caller, script = rpc(echo)
    calls = [("m", {"n": n, "data": "x" * 60_000}) for n in range(20)]
    assert [reply.result["n"] for reply in caller.batch(calls)] == list(range(20))
    assert len(script.requests) > 1
    assert max(script.sizes) <= BATCH_BYTES_MAX + 2, "two brackets are all that a batch adds"


def test_errors_prefer_what_is_specific() -> None:
    error = {"code": -32000, "message": "Failed", "specific_err": "port is taken"}
    caller, _ = rpc(lambda request: {"jsonrpc": "2.0", "id": request["id"], "error": error})
    with pytest.raises(STLRpcError, match=r"^port is taken$") as caught:
        caller.call("acquire")
    assert (caught.value.code, caught.value.method) == (-32000, "acquire")


def test_one_error_does_not_hide_the_other_replies() -> None:
    def second_fails(requests: Any) -> Any:
        replies = echo(requests)
        replies[1] = {"jsonrpc": "2.0", "id": requests[1]["id"], "error": {"code": 1, "message": "no"}}
        return replies

    caller, _ = rpc(second_fails)
    replies = caller.batch([("m", {"n": n}) for n in range(3)])
    assert [reply.error is None for reply in replies] == [True, False, True]


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400", {"jsonrpc": "2.0"}, [], 5, {"id": "other", "result": {}}]
)
def test_what_is_no_answer_is_a_connection_error(answer: Any) -> None:
    caller, _ = rpc(lambda _request: answer)
    with pytest.raises(STLConnectionError, match="script"):
        caller.call("ping")


def test_try_again_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allosaur.rpc._rpc._RETRY_INTERVAL_S", 0)
    codes = [-32001, -32001, None]

    def busy(request: Any) -> Any:
        code = codes.pop(0)
        if code is None:
            return echo(request)
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "Try again later"}}

    caller, script = rpc(busy)
    assert caller.call("get_port_status", port_id=0) == {"port_id": 0}
    assert [request["method"] for request in script.requests] == ["get_port_status"] * 3


def test_a_long_task_is_followed_by_its_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allosaur.rpc._rpc._RETRY_INTERVAL_S", 0)

    def working(request: Any) -> Any:
        if request["method"] == "get_async_results":
            assert request["params"] == {"ticket_id": 17}
            return {"jsonrpc": "2.0", "id": request["id"], "result": "done"}
        error = {"code": -32002, "message": "Work in progress", "specific_err": "17"}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}

    caller, _ = rpc(working)
    assert caller.call("set_l2") == "done"


def test_a_task_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allosaur.rpc._rpc._RETRY_INTERVAL_S", 0)
    error = {"code": -32001, "message": "Try again later"}
    caller, _ = rpc(lambda request: {"id": request["id"], "error": error}, task_timeout_s=0.0)
    with pytest.raises(STLTimeoutError, match="'set_l2' on the server"):
        caller.call("set_l2")


@pytest.fixture
def sockets() -> Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes], ZmqTransport]]:
    """A REP and a PUB socket, and a transport to them."""
    context: zmq.Context[Any] = zmq.Context()
    rep, pub = context.socket(zmq.REP), context.socket(zmq.PUB)
    ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (rep, pub)]
    transport = ZmqTransport("127.0.0.1", *ports)
    transport.open(timeout_s=5)
    yield rep, pub, transport
    transport.close()
    context.destroy(linger=0)


def test_requests_travel_and_recover_after_silence(sockets: Any) -> None:
    rep, _pub, transport = sockets
    with pytest.raises(STLConnectionError, match=r"no answer from tcp://127\.0\.0\.1:\d+ within 0\.5 s"):
        transport.request(b"lost", timeout_s=0.5)

    def answer() -> None:
        # The first message still waits; its answer finds nobody and is dropped.
        for _ in range(2):
            rep.send(b"re: " + rep.recv())

    server = threading.Thread(target=answer)
    server.start()
    assert transport.request(b"found", timeout_s=10) == b"re: found"
    server.join()


def test_the_way_to_the_server_is_a_part_of_the_time_that_a_request_has(
    sockets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _rep, _pub, transport = sockets
    now_ms = 0
    looks: list[int] = []

    def look(is_slow: bool, timeout_s: float) -> None:
        nonlocal now_ms
        looks.append(now_ms)
        # A network that swallows everything: each look takes all the time that it may.
        now_ms += round(timeout_s * 1000) if is_slow else 0

    class Silent:
        def send(self, payload: bytes) -> None: ...

        def close(self, linger: int) -> None: ...

        def poll(self, timeout_ms: int) -> int:
            nonlocal now_ms
            now_ms += timeout_ms
            return 0

    def admitted(deadline: float) -> Silent:
        nonlocal now_ms
        now_ms += admitted_ms
        return Silent()

    monkeypatch.setattr("allosaur.rpc._transport.time", SimpleNamespace(monotonic=lambda: now_ms / 1000))
    monkeypatch.setattr(transport, "_admitted_socket", admitted)
    for admitted_ms, is_slow, looks_ms in (
        (0, False, [250, 750, 1750]),
        (2000, False, [2250, 2750]),
        (3500, False, []),
        (0, True, [250, 1250, 2750]),
    ):
        now_ms = 0
        monkeypatch.setattr(transport, "_see_server", partial(look, is_slow))
        with pytest.raises(STLConnectionError, match="within 3 s"):
            transport.request(b"lost", timeout_s=3.0)
        assert now_ms == max(3000, admitted_ms)
        assert looks == looks_ms
        looks.clear()


def test_a_request_to_a_server_that_is_gone_does_not_wait(sockets: Any) -> None:
    rep, _pub, transport = sockets
    gone: list[str] = []

    def ask() -> None:
        # The first is on its way when the server ends, the second comes later.
        for payload in (b"lost", b"late"):
            with pytest.raises(STLConnectionError) as caught:
                transport.request(payload, timeout_s=3600)
            gone.append(str(caught.value))

    client = threading.Thread(target=ask)
    client.start()
    assert rep.recv() == b"lost"
    rep.close(linger=0)
    client.join()
    words = f"nothing listens at {transport.address} any more: see why the server ended, and start it again"
    assert gone == [words, words]


def test_frames_ring_and_a_lost_server_is_noticed(sockets: Any) -> None:
    _rep, pub, transport = sockets
    subscription = transport.subscribe()
    signals: list[Signal] = []
    rang = threading.Event()

    def listen() -> None:
        while not signals or signals[-1] is not Signal.CLOSED:
            signals.append(subscription.receive())
            rang.set()

    listener = threading.Thread(target=listen)
    listener.start()
    while not rang.wait(0.01):
        pub.send(b"{}")
    assert signals[0] is Signal.FRAME
    pub.close(linger=0)
    while Signal.DISCONNECTED not in signals:
        assert listener.is_alive()
        rang.wait(0.01)
    subscription.close()
    listener.join()
    assert signals[-1] is Signal.CLOSED


def test_no_server_is_reported_at_once_with_the_remedy() -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        socket.unbind(f"tcp://127.0.0.1:{port}")
    client = STLClient(server="127.0.0.1", sync_port=port)
    with pytest.raises(
        STLConnectionError, match=rf"no server answers at tcp://127\.0\.0\.1:{port} .*refused.*start"
    ):
        client.connect()
    assert not client.is_connected()


def test_a_silent_publisher_is_reported(sockets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allosaur.rpc._events._SUBSCRIBE_TIMEOUT_S", 0.05)
    rep, _pub, transport = sockets
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            if rep.poll(20):
                request = json.loads(unpack(rep.recv()))
                rep.send_json({"jsonrpc": "2.0", "id": request["id"], "result": {"api_h": "x"}})

    server = threading.Thread(target=serve)
    server.start()
    try:
        with pytest.raises(STLConnectionError, match="nothing arrives from its publisher"):
            STLClient(transport=transport).connect()
    finally:
        stop.set()
        server.join()
