"""What a short command answers: text for people, or one JSON object with the same content."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from allosaur.cli._errors import EXIT_OK


@dataclass(frozen=True)
class Answer:
    """The result of a command that went well."""

    text: str
    fields: dict[str, Any] = field(default_factory=dict)


def give(options: argparse.Namespace, answer: Answer) -> int:
    """Print the answer as the options say; return the exit code."""
    if options.json:
        result = {"command": options.command, "server": str(options.server), "ok": True, **answer.fields}
        print(json.dumps(result, indent=2))
    else:
        print(answer.text)
    return EXIT_OK


def listed(names: Sequence[object], word: str) -> str:
    """Return names with their noun: `Profile 'web'`, `Ports 0, 1`."""
    return f"{word if len(names) == 1 else word + 's'} {', '.join(map(str, names))}"


def where(options: argparse.Namespace) -> str:
    """Return the options that name the same server again."""
    address = options.server
    given = "" if str(address) == "localhost:4501" else f" --server {address}"
    return given + ("" if options.pub_port is None else f" --pub-port {options.pub_port}")
