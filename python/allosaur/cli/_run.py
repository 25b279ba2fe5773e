"""What a run has in common, of streams or of flows: its server, its result, and the facts of its report."""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _result
from allosaur.cli._access import Client, connected
from allosaur.cli._errors import EXIT_SETUP, EXIT_USAGE, CommandError, brief
from allosaur.cli._options import FOREVER
from allosaur.server import LocalServer

if TYPE_CHECKING:
    from allosaur.server import LocalServer


@contextlib.contextmanager
def client_of_run(
    options: argparse.Namespace,
    remote: Callable[[argparse.Namespace], AbstractContextManager[Client]],
    local: Callable[[], LocalServer],
) -> Iterator[Client]:
    """Connect to the server that the options name, or start one; disconnect, and stop it, at the end."""
    if not options.local:
        with remote(options) as client:
            yield client
        return
    with started(local()) as server:
        own: Any = server.client()  # of the kind that the server is for
        with connected(own, "the server of this run") as client:
            yield client


def local_ports(options: argparse.Namespace, count: int) -> list[str]:
    """Return the ports of a server for one run: those of `--local-ports`, or as many as are needed."""
    if options.local_ports:
        return [spec.strip() for spec in options.local_ports.split(",")]
    return ["memory"] * count


def give(options: argparse.Namespace, mode: str, text: str, fields: dict[str, Any]) -> None:
    """Print the result of a run, for people or as one JSON object, and write its files."""
    result = {
        **_result.heading("run"),
        "mode": mode,
        "profile": options.profile,
        **fields,
        "report": options.report,
    }
    files = options.files
    files.write(result)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(text)
    if options.report is not None:
        print(f"Report: {options.report}")
    for line in files.told():
        print(line)


def server_name(options: argparse.Namespace) -> str:
    """Return what a result says of the server."""
    return "local" if options.local else str(options.server)


def facts(options: argparse.Namespace, asked: str, duration_s: float, ran: str) -> dict[str, str]:
    """Return what a report says of the run, above its results."""
    seconds = "forever" if duration_s == FOREVER else f"{duration_s:g}"
    return {
        "When": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "Server": "in-memory ports of its own" if options.local else str(options.server),
        "Asked": f"{asked}, for {seconds} s",
        "Ran": ran,
        "Python": platform.python_version(),
    }


def source(path: Path) -> str:
    """Return the text of a profile, as far as people can read it."""
    return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""


_HELP_OF_BINARY = re.compile(r" \(see allosaur-server[^)]*\)")


@contextlib.contextmanager
def started(server: LocalServer) -> Iterator[LocalServer]:
    """Run a server inside the block. Raises :class:`CommandError` when it does not start."""
    from allosaur import STLError
    from allosaur._errors import ServerStartError

    try:
        server.start()
    except ServerStartError as error:
        reason = _HELP_OF_BINARY.sub("", " ".join(error.reason.split()))
        # What the user wrote behind --local-ports is --ports of the server.
        reason = re.sub(r"^--ports\b", "--local-ports", reason)
        code = EXIT_USAGE if error.exit_code == EXIT_USAGE else EXIT_SETUP
        raise CommandError(f"the server of this run did not start: {reason}", code) from error
    except STLError as error:
        raise CommandError(brief(error)) from error
    try:
        yield server
    finally:
        server.stop()
