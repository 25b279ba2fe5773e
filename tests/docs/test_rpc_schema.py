"""The schema of the RPC, `docs/reference/rpc.schema.json`, holds for examples, recordings and a server.

Tests with a server hold it to what their clients say (`fits_the_schema` of conftest.py).
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from allosaur import STLClient
from allosaur.server import LocalServer

#: Where replies of TRex's servers are not what the schema says. Most of it is what only ours have; the list
#: only shrinks.
TREX_DIFFERS = {
    "capture": {"reply is array that does not fit: anyOf"},
    "get_global_stats": {"reply.m_total_missed_packets is missing"},
    "get_latency_stats": {
        "reply.data.port-*.hist.p50 is missing",
        "reply.data.port-*.hist.p90 is missing",
        "reply.data.port-*.hist.p99 is missing",
        "reply.data.port-*.hist.p99_9 is missing",
        "reply.data.port-*.stats.dropped is missing",
        "reply.data.port-*.stats.duplicates is missing",
        "reply.data.port-*.stats.impossible_times is missing",
        "reply.data.port-*.stats.out_of_order is missing",
    },
    "get_pgid_stats": {
        "reply.flow_stats.*.missed is missing",
        "reply.latency.*.lat.max is missing",
        "reply.latency.*.lat.min is missing",
        "reply.latency.*.lat.packets is missing",
        "reply.latency.*.lat.sum_ns is missing",
    },
    "get_port_stats": {
        "reply.missed_packets is missing",
        "reply.queue_full is missing",
        "reply.rx_lost_packets is missing",
    },
    "get_version": {"reply.modes is missing"},
    # A multiplier that is no number there.
    "start_traffic": {"reply.multiplier is null, not number"},
}


def without_required(schema: Any) -> Any:
    """Examples leave fields out: the types of those that are there are checked."""
    match schema:
        case dict():
            return {key: without_required(value) for key, value in schema.items() if key != "required"}
        case list():
            return [without_required(value) for value in schema]
    return schema


def test_examples_are_what_the_schema_says(rpc_schema: Any) -> None:
    loose = without_required(rpc_schema.document)
    for place, command in enumerate(rpc_schema.document["commands"]):
        example = command["example"]
        assert list(rpc_schema.misfits(place, "request", example["params"])) == [], command["name"]
        reply = {**loose["commands"][place]["reply"], "$defs": loose["$defs"]}
        jsonschema.Draft202012Validator(reply).validate(example["result"])


def conversation(path: Path) -> Iterator[tuple[str, Any, Any]]:
    """What was asked in a recorded conversation and what came: method, parameters, result."""
    asked: dict[Any, Any] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        message = json.loads(line).get("msg")
        for one in message if isinstance(message, list) else [message]:
            match one:
                case {"id": id, "method": str(), "params": _} if id is not None:
                    asked[id] = one
                case {"id": id, "result": result} if id in asked:
                    request = asked.pop(id)
                    yield request["method"], request["params"], result


def test_what_trex_said_fits_the_schema(rpc_schema: Any, recorded: Path) -> None:
    differs: dict[str, set[str]] = {}
    answered = 0
    for path in sorted((recorded / "rpc-transcripts").glob("*.jsonl.gz")):
        mode = "stateful" if path.name.startswith("astf") else "stateless"
        for method, params, result in conversation(path):
            for place in rpc_schema.commands(method, mode):
                answered += 1
                found = [*rpc_schema.misfits(place, "request", params)]
                found += rpc_schema.misfits(place, "reply", result)
                if found:
                    differs.setdefault(method, set()).update(found)
    assert differs == TREX_DIFFERS
    assert answered > 2_500


def test_requests_of_goldens_fit_the_schema(rpc_schema: Any, recorded: Path) -> None:
    paths = sorted((recorded / "golden-stateless").glob("*.json"))
    requests = [request for path in paths for request in json.loads(path.read_text())["commands"]]
    for request in requests:
        (place,) = rpc_schema.commands(request["method"], "stateless")
        assert list(rpc_schema.misfits(place, "request", request["params"])) == []
    assert len(requests) > 80


def asked(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The commands that change nothing and need a port's number at most, with parameters."""
    for command in document["commands"]:
        name = command["request"]["$ref"].rpartition("/")[2]
        required = set(document["$defs"][name].get("required", []))
        reads = command["name"].startswith(("get_", "ping")) and command["access"] in ("open", "api")
        if command["mode"] != "stateful" and reads and required <= {"port_id"}:
            yield command["name"], dict.fromkeys(required, 0)


def test_replies_of_a_server_are_what_the_schema_says(rpc_schema: Any, server: LocalServer) -> None:
    with STLClient(server=server.host, sync_port=server.rpc_port, async_port=server.pub_port) as client:
        client.reset(ports=[0])
        refused = []
        asked_for = list(asked(rpc_schema.document))
        for name, params in asked_for:
            try:
                client._connection.session().rpc.call(name, **params)
            except Exception as error:
                refused.append(f"{name}: {error}")
        assert len(asked_for) - len(refused) > 15, refused


def test_a_reply_of_another_type_does_not_fit(rpc_schema: Any) -> None:
    (place,) = rpc_schema.commands("get_status")
    assert "reply.ports is missing" in rpc_schema.misfits(place, "reply", {"mode": "STL"})


def test_what_a_server_says_in_another_form_is_seen(
    rpc_schema: Any, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = type(rpc_schema)()
    (place,) = schema.commands("ping")
    schema.document["commands"][place]["reply"] = {"type": "string"}
    watch = schema.watch(monkeypatch)
    with STLClient(server=server.host, sync_port=server.rpc_port, async_port=server.pub_port) as client:
        client._connection.session().rpc.call("ping")
    assert set(watch.misfits) == {"ping: reply is object, not string"}
