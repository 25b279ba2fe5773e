"""A recorded conversation of TRex's client with a real server of emulated clients, played to ours.

Each request must be the next one that TRex's client sent (its number apart), and is answered as it was.
Requests may come one by one or as a batch.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from allosaur.rpc._rpc import decode, encode

FOLDER = Path(__file__).resolve().parents[1] / "data" / "emu" / "rpc"


class OtherRequestError(AssertionError):
    """A request that TRex's client did not send."""


class Replay:
    """The server of a conversation, as a transport."""

    address = "recorded://server"

    def __init__(self, name: str) -> None:
        text = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())
        lines = [json.loads(line) for line in text.splitlines()]
        self.left = [line for line in lines if line.get("via") == "client"]

    @property
    def next(self) -> tuple[str, dict[str, Any]]:
        """The method and the parameters of the request that comes next."""
        request = self.left[0]["req"]
        params = {name: value for name, value in request["params"].items() if name != "api_h"}
        return request["method"], params

    def params(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the requests of a method that are still to come."""
        return [line["req"]["params"] for line in self.left if line["req"]["method"] == method]

    def open(self, timeout_s: float) -> None:
        """Be there."""

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Answer one message."""
        body = decode(payload)
        answers = [self._answer(one) for one in (body if isinstance(body, list) else [body])]
        return encode(answers if isinstance(body, list) else answers[0])

    def subscribe(self) -> Any:
        """Nothing is published by such a server."""
        raise OtherRequestError("the client listens to what nobody publishes")

    def close(self) -> None:
        """Go away."""

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self.left:
            raise OtherRequestError(f"one more than was recorded: {request}")
        line = self.left.pop(0)
        wanted, answer = line["req"], line["rep"]
        if (request["method"], request["params"]) != (wanted["method"], wanted["params"]):
            raise OtherRequestError(f"request {line['n']} was {wanted!s:.300}, and is {request!s:.300}")
        return {**answer, "id": request["id"]}
