"""`allosaur server`: runs the server binary, says how to reach it, and ends it cleanly.

The server is a process of its own; this one only watches it. What the server logs goes straight to the
error stream.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
from types import FrameType, TracebackType
from typing import Any

from allosaur.cli._binary import server_binary
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, CommandError, bad_input

_ASKS_MAX = 2
"""So many times Ctrl-C asks; after that it kills."""


def execute(options: argparse.Namespace) -> int:
    """Do what `allosaur server` says; return the exit code when the server ended."""
    for name in ("rpc_port", "pub_port"):
        if not 0 <= getattr(options, name) <= 65535:
            raise bad_input(
                f"--{name.replace('_', '-')} {getattr(options, name)}: a port is a number of 0 to 65535"
            )
    binary = server_binary()
    command = [binary, "serve", "--ports", options.ports, "--listen", options.listen]
    command += ["--rpc-port", str(options.rpc_port), "--pub-port", str(options.pub_port)]
    if options.cores is not None:
        command += ["--cores", str(options.cores)]
    with _Signals() as signals:
        # A session of its own: Ctrl-C reaches this process, which asks the server once, and not both at once.
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        with server:
            signals.hand_on_to(server)
            return _watch(server, options.listen)


def _watch(server: subprocess.Popen[str], listen: str) -> int:
    assert server.stdout is not None, "stdout is a pipe"
    for line in server.stdout:
        # The line itself comes first: a script that starts a server waits for it.
        print(line, end="", flush=True)
        words = line.split()
        if words[:1] == ["ready"]:
            facts = dict(word.partition("=")[::2] for word in words[1:])
            print(_welcome(facts, listen), flush=True)
    status = server.wait()
    if status < 0:
        raise CommandError(f"the server was ended by {signal.Signals(-status).name}", EXIT_FAILED)
    if status == EXIT_OK:
        print("The server has stopped.", flush=True)
    return status


def _welcome(facts: dict[str, str], listen: str) -> str:
    """Return what to do next, from the words of the server's `ready` line."""
    rpc, pub = facts.get("rpc", "?"), facts.get("pub", "?")
    rpc_port, pub_port = rpc.rpartition(":")[2], pub.rpartition(":")[2]
    host = "127.0.0.1" if listen in ("127.0.0.1", "0.0.0.0", "localhost", "*") else listen
    server_option = "" if (rpc_port, host) == ("4501", "127.0.0.1") else f" --server {host}:{rpc_port}"
    if pub_port != str(int(rpc_port) - 1):
        server_option += f" --pub-port {pub_port}"
    lines = [
        f"Allosaur is ready: {facts.get('ports', '?')} ports, {facts.get('cores', '?')} sending threads.",
        f"  requests  {rpc}",
        f"  events    {pub}",
        "Send something from another terminal:",
        f"  allosaur run profiles/imix.py -m 100kpps -d 10{server_option}",
        "or from Python:",
        f'  STLClient(server="{host}", sync_port={rpc_port}, async_port={pub_port})',
        "Ctrl-C stops the server.",
    ]
    return "\n".join(lines)


class _Signals:
    """Hands Ctrl-C, SIGTERM and a closed terminal on to the server; the third one kills it."""

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        self._before = {number: signal.signal(number, self._note) for number in self._NUMBERS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hand_on_to(self, server: subprocess.Popen[str]) -> None:
        """Name the process that the signals are for; one that came before reaches it now."""
        self._server = server
        if self._received:
            self._pass()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received += 1
        self._pass()

    def _pass(self) -> None:
        if self._server is not None:
            with contextlib.suppress(ProcessLookupError):
                self._server.send_signal(signal.SIGTERM if self._received <= _ASKS_MAX else signal.SIGKILL)
