"""The schema of the RPC, `docs/reference/rpc.schema.json`, as tests hold requests and replies to it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from allosaur.rpc import _rpc
from allosaur.rpc._transport import ZmqTransport
from jsonschema.exceptions import best_match

SCHEMA = Path(__file__).parent.parent / "docs" / "reference" / "rpc.schema.json"


class RpcSchema:
    """The commands of each mode, and whether what was said fits them."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
        self._of: dict[str, list[dict[str, Any]]] = {}
        for command in self.document["commands"]:
            self._of.setdefault(command["name"], []).append(command)
        self._validator = cache(self._make_validator)

    def commands(self, method: str, mode: str | None = None) -> list[int]:
        """The places in the schema of the commands with that name, in that mode of the server or in any."""
        return [
            place
            for place, command in enumerate(self.document["commands"])
            if command["name"] == method and mode in (None, command["mode"], *_IN_ALL[command["mode"]])
        ]

    def misfits(self, place: int, part: str, said: Any) -> Iterator[str]:
        """Where the `request` or the `reply` of a command does not fit, without what is data in its path."""
        for error in self._validator(place, part).iter_errors(said):
            # Of several forms, what is said comes closest to one.
            wrong = best_match([error]) if error.context else error
            steps = (re.sub(r"\d+", "*", str(step)) for step in (wrong or error).absolute_path)
            yield f"{'.'.join([part, *steps])}{_problem(error if wrong is None else wrong)}"

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> Watch:
        """Watch what is said from now on, for as long as `monkeypatch` lasts."""
        return Watch(self, monkeypatch)

    def _make_validator(self, place: int, part: str) -> jsonschema.Draft202012Validator:
        schema = self.document["commands"][place][part]
        return jsonschema.Draft202012Validator({**schema, "$defs": self.document["$defs"]})


#: The modes in which commands of a mode are there, too.
_IN_ALL = {"any": ("stateless", "stateful"), "stateless": (), "stateful": ()}


def _problem(error: jsonschema.ValidationError) -> str:
    match error.validator:
        case "required":
            return f".{error.message.split(chr(39))[1]} is missing"
        case "type":
            return f" is {_kind(error.instance)}, not {error.validator_value}"
        case "enum" | "const":
            return f" is {error.instance!r:.40}"
    return f" is {_kind(error.instance)} that does not fit: {error.validator}"


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return names.get(type(value), "null")


class Watch:
    """Holds to the schema what clients of this process and servers say to each other.

    The first exchanges of each method are looked at, those with short requests: the time that this takes
    has a limit.
    """

    COUNT_MAX = 10
    BYTES_MAX = 20_000

    def __init__(self, schema: RpcSchema, monkeypatch: pytest.MonkeyPatch) -> None:
        self.misfits: list[str] = []
        seen: Counter[str] = Counter()
        exchange = _rpc.Rpc._exchange

        def watched(rpc: Any, requests: Any) -> list[Any]:
            replies = exchange(rpc, requests)
            if isinstance(rpc._transport, ZmqTransport):
                for request, reply in zip(requests, replies, strict=True):
                    seen[request.method] += 1
                    if seen[request.method] <= self.COUNT_MAX and len(request.text) <= self.BYTES_MAX:
                        self._look(schema, request, reply)
            return replies

        monkeypatch.setattr(_rpc.Rpc, "_exchange", watched)

    def _look(self, schema: RpcSchema, request: Any, reply: Any) -> None:
        if reply.error is not None:
            return
        params = json.loads(request.text)["params"]
        found = [
            [*schema.misfits(place, "request", params), *schema.misfits(place, "reply", reply.result)]
            for place in schema.commands(request.method)
        ]
        if found and all(found):
            self.misfits += [f"{request.method}: {misfit}" for misfit in found[0]]
