"""Ten thousand spoilt requests of all methods while traffic runs: all are answered, no packet is lost."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from allosaur import STLClient, STLPktBuilder, STLStream, STLTXSingleBurst
from allosaur.server import LocalServer

REFERENCE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "rpc.md"
MAGIC = struct.pack(">I", 0xABE85CEA)
MESSAGES = 10_000
TIDY_EVERY = 250
"""Messages after which the attacker gives back what it got hold of, so that there is room for the next."""

BURST_PACKETS = 10_000
BURST_PPS = 50_000

ATTACKED_PORT = 2
BUSY_PORT = 0
"""The ports of the user whose traffic must not be disturbed are this one and its peer, 1."""

EXAMPLE = re.compile(r"### `(\w+)`(?: \((\w+)\))?\n.*?```json\n([^\n]*)\n", re.DOTALL)


def commands() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, access and example parameters of each command of the table, from its generated page."""
    found = [
        (name, access, json.loads(params)) for name, access, params in EXAMPLE.findall(REFERENCE.read_text())
    ]
    assert len(found) >= 45, "the reference page has another form"
    name, access, example = next(command for command in found if command[0] == "add_stream")
    rich = {**example, "stream_id": 2, "stream": {**example["stream"], **RICH}}
    return [*found, (name, access, rich)]


RICH = {
    "random_seed": 7,
    "mode": {
        "type": "multi_burst",
        "pkts_per_burst": 3,
        "ibg": 10.0,
        "count": 2,
        "rate": {"type": "pps", "value": 9},
    },
    "vm": {
        "cache": 0,
        "instructions": [
            {"type": "flow_var", "name": "a", "size": 4, "op": "random", "step": 1, "init_value": 1}
            | {"min_value": 1, "max_value": 9, "next_var": None, "split_to_cores": True},
            {"type": "flow_var", "name": "b", "size": 2, "op": "inc", "step": 1, "value_list": [60, 61, 62]},
            {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": -1, "is_big_endian": True},
            {"type": "fix_checksum_ipv4", "pkt_offset": 14},
            {"type": "trim_pkt_size", "name": "b"},
        ],
    },
}
"""What makes a stream rich in things to spoil."""


class Attacker:
    """Asks what nobody should ask, as the owner of one port."""

    def __init__(self, server: LocalServer) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, 30_000)
        self._socket.connect(f"tcp://{server.host}:{server.rpc_port}")
        self.api_handle = self.call("api_sync_v2", name="STL", major=5, minor=1)["api_h"]
        self.handler = ""
        self.tidy()

    def ask(self, *frames: bytes) -> Any:
        """Send a message of these frames; give the reply, which must be strict JSON."""
        self._socket.send_multipart(frames)
        reply = self._socket.recv()
        if reply.startswith(MAGIC):
            assert struct.unpack(">I", reply[4:8])[0] == len(zlib.decompress(reply[8:]))
            reply = zlib.decompress(reply[8:])
        return json.loads(reply.decode(), parse_constant=not_json)

    def call(self, method: str, **params: Any) -> Any:
        """Make a proper request, which must succeed."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.ask(json.dumps(request).encode())["result"]

    def tidy(self) -> None:
        """Take the port back from whoever the last requests made its owner, and clear it."""
        known = {"api_h": self.api_handle, "port_id": ATTACKED_PORT}
        self.handler = self.call("acquire", user="eve", session_id=9, force=True, **known)
        self.call("stop_traffic", handler=self.handler, profile_id="*", **known)
        profiles = self.call("get_profile_list", **known)
        for profile in profiles:
            self.call("remove_all_streams", handler=self.handler, profile_id=profile, **known)

    def valid(self, name: str, access: str, example: dict[str, Any]) -> dict[str, Any]:
        """A request of a method as a well-behaved client would make it."""
        params = dict(example)
        if access:
            params["api_h"] = self.api_handle
        if access == "owner" or "handler" in params:
            params["handler"] = self.handler
        if "port_id" in params:
            params["port_id"] = ATTACKED_PORT
        return {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}

    def close(self) -> None:
        self._context.destroy(linger=0)


def not_json(constant: str) -> float:
    raise AssertionError(f"a reply has {constant}, which is no JSON")


class Spoiler:
    """Makes bad messages out of good requests, all by one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kinds = [
            self.text,
            self.truncated,
            self.another_value,
            self.another_value,
            self.another_value,
            self.without_a_field,
            self.deeply_nested,
            self.not_utf8,
            self.flipped_bytes,
            self.broken_zip,
            self.wrong_length,
            self.batch,
            self.several_frames,
            self.odd_envelope,
        ]

    def spoil(self, requests: list[dict[str, Any]]) -> list[bytes]:
        """The frames of one bad message."""
        kind = self.chance.choice(self.kinds)
        made = kind(requests) if kind == self.batch else kind(self.chance.choice(requests))
        frames = made if isinstance(made, list) else [made]
        if len(frames) == 1 and self.chance.random() < 0.3 and not frames[0].startswith(MAGIC):
            frames = [zipped(frames[0])]
        return frames

    def text(self, request: Any) -> bytes:
        """Nothing is wrong with it: without such requests there would be nothing to spoil."""
        return json.dumps(request).encode()

    def truncated(self, request: Any) -> bytes:
        text = self.text(request)
        return text[: self.chance.randrange(len(text))]

    def another_value(self, request: Any) -> bytes:
        """Another type or an absurd number in the place of one value."""
        spoilt = json.loads(self.text(request))
        places = list(leaves(spoilt["params"]))
        if places:
            holder, key = self.chance.choice(places)
            holder[key] = "SPOILT"
        return self.text(spoilt).replace(b'"SPOILT"', self.chance.choice(VALUES))

    def without_a_field(self, request: Any) -> bytes:
        spoilt = json.loads(self.text(request))
        places = [(holder, key) for holder, key in leaves(spoilt["params"]) if isinstance(holder, dict)]
        if places:
            holder, key = self.chance.choice(places)
            del holder[key]
        spoilt["params"][self.chance.choice(["port_id", "x", "stream"])] = self.chance.choice(
            [None, [], {}, 3]
        )
        return self.text(spoilt)

    def deeply_nested(self, request: Any) -> bytes:
        depth = self.chance.choice([10, 127, 128, 129, 1000, 50_000])
        inner = (
            b"[" * depth + b"]" * depth
            if self.chance.random() < 0.5
            else b'{"a":' * depth + b"1" + b"}" * depth
        )
        return self.text({**request, "params": "HERE"}).replace(b'"HERE"', b'{"port_id":' + inner + b"}")

    def not_utf8(self, request: Any) -> bytes:
        text = self.text(request)
        at = text.index(b'"method": "') + 11 + self.chance.randrange(3)
        return (
            text[:at] + self.chance.choice([b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x00", b"\xf8"]) + text[at:]
        )

    def flipped_bytes(self, request: Any) -> bytes:
        return self.flipped(self.text(request))

    def flipped(self, text: bytes) -> bytes:
        spoilt = bytearray(text)
        for _ in range(self.chance.randrange(1, 6)):
            spoilt[self.chance.randrange(len(spoilt))] = self.chance.randrange(256)
        return bytes(spoilt)

    def broken_zip(self, request: Any) -> bytes:
        whole = zipped(self.text(request))
        if self.chance.random() < 0.5:
            return whole[: self.chance.randrange(4, len(whole))]
        return whole[:8] + self.flipped(whole[8:])

    def wrong_length(self, request: Any) -> bytes:
        text = self.text(request)
        length = self.chance.choice([0, 1, len(text) - 1, len(text) + 1, 999_999, 2**31, 2**32 - 1])
        return MAGIC + struct.pack(">I", length) + zlib.compress(text)

    def batch(self, requests: list[Any]) -> bytes:
        kinds = [self.another_value, self.without_a_field]
        chosen = [self.chance.choice(requests) for _ in range(self.chance.randrange(20))]
        parts = [self.chance.choice(kinds)(request) for request in chosen]
        parts += [self.chance.choice(JUNK) for _ in range(self.chance.randrange(4))]
        self.chance.shuffle(parts)
        return b"[" + b",".join(parts) + b"]"

    def several_frames(self, request: Any) -> list[bytes]:
        text = self.text(request)
        cut = self.chance.randrange(len(text))
        return self.chance.choice(
            [[text[:cut], text[cut:]], [text, text], [b"", text, b""], [b""] * 5, [MAGIC, text]]
        )

    def odd_envelope(self, request: Any) -> bytes:
        field = self.chance.choice(["jsonrpc", "id", "method", "params"])
        text = self.text({**request, field: "SPOILT"})
        return text.replace(b'"SPOILT"', self.chance.choice(VALUES))


VALUES = [
    *(b"null", b"true", b"false", b'""', b'"x"', b"[]", b"{}", b"[1,2,3]", b'{"type":"x"}', b'"\\ud800"'),
    *(b"-1", b"0", b"1", b"0.5", b"1.0", b"-0.0", b"255", b"256", b"65536", b"4294967295", b"4294967296"),
    *(
        b"18446744073709551615",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1e308",
        b"-1e308",
        b"1e-320",
    ),
    *(b"1e999", b"NaN", b"Infinity", b"-Infinity", b"0x10", b"01", b"9" * 400, b'"' + b"y" * 20_000 + b'"'),
    *(b'"_"', b'"*"', b'"0"', b'"raw"', b'"' + base64.b64encode(bytes(9_300)) + b'"'),
]
"""What may stand in the place of a value. Some of it is no JSON."""

JUNK = [b"7", b"null", b"[]", b'"text"', b"{}", b'{"jsonrpc":"2.0"}', b'{"id":1}', b"[[[]]]", b"-0"]


def leaves(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each value of a tree as its holder and its key, branches too."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from leaves(value)


def zipped(text: bytes) -> bytes:
    return MAGIC + struct.pack(">I", len(text)) + zlib.compress(text)


def parsed(frames: list[bytes]) -> Any:
    """A message as a server may understand it, or None."""
    text = b"".join(frames)
    if text.startswith(MAGIC):
        try:
            text = zlib.decompressobj().decompress(text[8:])
        except zlib.error:
            return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_allowed(message: Any, table: list[tuple[str, str, dict[str, Any]]]) -> bool:
    """Whether this is only a nuisance. To end the server, or to change the other user's port by what needs no
    ownership, is anybody's right as in TRex, and not what is tested here.
    """
    free = {name for name, access, _ in table if access != "owner" and not name.startswith("get_")}
    for request in message if isinstance(message, list) else [message]:
        if not isinstance(request, dict) or not isinstance(request.get("params"), dict):
            continue
        method, params = request.get("method"), request["params"]
        if method == "shutdown" and params.get("force") is True:
            return False
        if isinstance(method, str) and method in free and params.get("port_id") in (0, 1):
            return False
    return True


def check_reply(message: Any, reply: Any) -> Counter[str]:
    """Every part of a message has one proper answer. Counts them by kind."""
    if isinstance(message, list) and isinstance(reply, list):
        assert len(reply) == len(message)
    elif isinstance(message, list) and len(message) > 1:
        # Python reads more as JSON than the standard allows: NaN, halves of characters, 1e999.
        assert reply["error"]["code"] == -32700, reply
    answers = reply if isinstance(reply, list) else [] if reply is None else [reply]
    seen: Counter[str] = Counter()
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer), answer
        if "error" in answer:
            error = answer["error"]
            assert isinstance(error["code"], int) and error["code"] < 0
            assert error["message"]
            assert error.get("specific_err", "text"), answer
            if error["code"] == -32602:
                assert re.search(r"'[\w.\[\]]+'", error["specific_err"]), answer
            seen[str(error["code"])] += 1
        else:
            seen["result"] += 1
    return seen


class Traffic:
    """A user whose bursts run one after the other; each must be whole."""

    def __init__(self, client: STLClient) -> None:
        self._client = client
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.runs: list[tuple[int, int, int]] = []
        """For each burst what was sent, what was received, and what was missed."""

    def __enter__(self) -> Traffic:
        client = self._client
        client.reset(ports=[BUSY_PORT])
        frame = bytes(12) + b"\x08\x00" + bytes(46)
        mode = STLTXSingleBurst(pps=BURST_PPS, total_pkts=BURST_PACKETS)
        client.add_streams(STLStream(packet=STLPktBuilder(pkt_buffer=frame), mode=mode), ports=[BUSY_PORT])
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._enough.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._enough.is_set():
            before = self._counters()
            self._client.start(ports=[BUSY_PORT])
            self._client.wait_on_traffic(ports=[BUSY_PORT])
            after = self._counters()
            sent, received, missed = (now - then for now, then in zip(after, before, strict=True))
            self.runs.append((sent, received, missed))

    def _counters(self) -> tuple[int, int, int]:
        deadline = time.monotonic() + 10
        while True:
            stats = self._client.get_stats(ports=[0, 1])
            here, there = stats[BUSY_PORT], stats[BUSY_PORT + 1]
            if here["opackets"] == there["ipackets"] or time.monotonic() > deadline:
                return here["opackets"], there["ipackets"], here["missed_packets"]
            time.sleep(0.01)


def resident_bytes(server: LocalServer) -> int:
    """The memory that the server's process has."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def four_ports() -> Iterator[LocalServer]:
    with LocalServer(ports=["memory"] * 4) as server:
        yield server


def test_ten_thousand_spoilt_requests(four_ports: LocalServer) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    spoiler = Spoiler(seed)
    table = commands()
    answers: Counter[str] = Counter()
    attacker = Attacker(four_ports)
    try:
        with four_ports.client(username="alice") as alice, Traffic(alice) as traffic:
            sent, resident = 0, 0
            requests: list[dict[str, Any]] = []
            while sent < MESSAGES:
                if sent % TIDY_EVERY == 0:
                    attacker.tidy()
                    requests = [attacker.valid(*command) for command in table]
                if sent == MESSAGES // 5:
                    resident = resident_bytes(four_ports)
                frames = spoiler.spoil(requests)
                message = parsed(frames)
                if not is_allowed(message, table):
                    continue
                sent += 1
                answers += check_reply(message if len(frames) == 1 else None, attacker.ask(*frames))
        grown = resident_bytes(four_ports) - resident
    finally:
        attacker.close()
    print(f"{answers}, {len(traffic.runs)} bursts, {grown} bytes more than {resident}")
    assert four_ports.is_running()
    # Not everything was refused, and not all at the door.
    assert all(answers[kind] > 100 for kind in ("result", "-32700", "-32600", "-32602", "-32000")), answers
    assert traffic.runs
    assert set(traffic.runs) == {(BURST_PACKETS, BURST_PACKETS, 0)}
    assert grown < resident / 2 + 32e6, f"the server grew by {grown} bytes, from {resident}"
    assert "panicked" not in four_ports.stderr
