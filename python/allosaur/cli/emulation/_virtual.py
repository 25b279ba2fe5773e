"""Emulated clients in virtual time: a process of the server's program, and a way for requests to it.

A line to it is a message, and a line back its reply; one line lets time pass.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from allosaur.cli._binary import exit_code_of, last_words, server_binary
from allosaur.cli._errors import CommandError

if TYPE_CHECKING:
    from allosaur.rpc._transport import Subscription


class VirtualServer:
    """The server of a simulation: a transport for `EMUClient`, inside a `with` block."""

    address = "simulation"

    def __init__(self, words: Sequence[str]) -> None:
        """Make one with the words of its command line."""
        self._command = [server_binary(), "sim-emulation", *words]
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> VirtualServer:
        with contextlib.ExitStack() as opened:
            self._errors = opened.enter_context(tempfile.TemporaryFile())
            # In a session of its own: Ctrl-C is for us, who look at it between two steps.
            self._process = opened.enter_context(
                subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    start_new_session=True,
                )
            )
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._started()
        try:
            if kind is None:
                process.communicate()
                if process.returncode:
                    raise self._failure()
        finally:
            process.kill()
            process.wait()
            self._opened.close()

    def run_until(self, end_s: float) -> dict[str, int]:
        """Let time pass up to here; return how many packets were sent so far (`packets`, `lost_packets`)."""
        counted: dict[str, int] = json.loads(self._ask(b'{"run_until_s":%s}' % repr(float(end_s)).encode()))
        return counted

    # The transport.

    def open(self, timeout_s: float) -> None:
        """Be there."""

    def request(self, payload: bytes, timeout_s: float) -> bytes:
        """Have a message answered, which takes no virtual time."""
        from allosaur.rpc._rpc import unpack

        return self._ask(unpack(payload).replace(b"\n", b" "))

    def subscribe(self) -> Subscription:
        """Listen to nothing: such a server publishes nothing."""
        raise NotImplementedError("a simulation publishes nothing")

    def close(self) -> None:
        """Let the process go on until the end of the block."""

    def _ask(self, line: bytes) -> bytes:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            process.wait()
            raise self._failure()
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "inside of a with block"
        return self._process

    def _failure(self) -> CommandError:
        assert self._errors is not None, "inside of a with block"
        self._errors.seek(0)
        message = last_words(self._errors.read().decode(errors="replace"))
        return CommandError(message, exit_code_of(self._started().returncode))


def words(ports: int, packets_max: int, output: Any) -> list[str]:
    """Return the command line of a simulation; `output` is a path, or `None` for no capture."""
    found = ["--ports", str(ports), "--limit", str(packets_max)]
    return found + (["--pcap", str(output)] if output is not None else [])
