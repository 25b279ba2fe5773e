"""The schema of the RPC, `docs/reference/rpc.schema.json`, holds for examples and for a server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from allosaur import STLClient
from allosaur.server import LocalServer

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "rpc.schema.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text())
    return loaded


def within(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "$defs": document["$defs"]}


def check(instance: Any, schema: dict[str, Any]) -> None:
    """Validate without checking the schema itself, which is long, each time."""
    jsonschema.Draft202012Validator(schema).validate(instance)


def without_required(schema: Any) -> Any:
    """Examples leave fields out: the types of those that are there are checked."""
    match schema:
        case dict():
            return {key: without_required(value) for key, value in schema.items() if key != "required"}
        case list():
            return [without_required(value) for value in schema]
    return schema


def test_examples_are_what_the_schema_says(document: dict[str, Any]) -> None:
    loose = without_required(document)
    for command, of_types in zip(document["commands"], loose["commands"], strict=True):
        if "reply" in command:
            check(command["example"]["params"], within(document, command["request"]))
            check(command["example"]["result"], within(loose, of_types["reply"]))


def asked(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The commands that change nothing and need a port's number at most, with parameters."""
    for command in document["commands"]:
        if "reply" not in command:
            continue
        name = command["request"]["$ref"].rpartition("/")[2]
        required = set(document["$defs"][name].get("required", []))
        reads = command["name"].startswith(("get_", "ping")) and command["access"] in ("open", "api")
        if command["mode"] != "stateful" and reads and required <= {"port_id"}:
            yield command["name"], dict.fromkeys(required, 0), command["reply"]


def test_replies_of_a_server_are_what_the_schema_says(document: dict[str, Any], server: LocalServer) -> None:
    with STLClient(server=server.host, sync_port=server.rpc_port, async_port=server.pub_port) as client:
        client.reset(ports=[0])
        refused = []
        asked_for = list(asked(document))
        for name, params, schema in asked_for:
            try:
                reply = client._connection.session().rpc.call(name, **params)
            except Exception as error:
                refused.append(f"{name}: {error}")
                continue
            check(reply, within(document, schema))
        assert len(asked_for) - len(refused) > 15, refused


def test_a_reply_of_another_type_is_none(document: dict[str, Any]) -> None:
    (schema,) = (command["reply"] for command in document["commands"] if command["name"] == "get_status")
    with pytest.raises(jsonschema.ValidationError):
        check({"mode": "STL"}, within(document, schema))
