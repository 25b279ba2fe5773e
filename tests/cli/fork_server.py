"""Commands as processes that are forked from one which has imported Scapy and the package already.

To import both takes Python a second or two of a CPU, and tests of the command line start a thousand commands.
A command still has a process, a working folder, an environment and standard streams of its own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

_MESSAGE_BYTES_MAX = 1 << 17


class ForkServer:
    """A process that runs commands, one at a time; it ends when it is closed."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._one_at_a_time = threading.Lock()

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], folder: Path, environment: dict[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m WORDS`. Raises ``subprocess.TimeoutExpired`` when it does not end in time."""
        message = json.dumps({"words": words, "folder": str(folder), "environment": environment}).encode()
        with self._one_at_a_time, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with Path(os.devnull).open() as nothing:
                streams = [nothing.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(self._channel, [message], streams)
            command = int(self._answer())
            self._channel.settimeout(timeout_s)
            try:
                status = int(self._answer())
            except TimeoutError:
                os.kill(command, signal.SIGKILL)
                self._channel.settimeout(None)
                self._answer()
                raise subprocess.TimeoutExpired(list(words), timeout_s, _text(out), _text(err)) from None
            finally:
                self._channel.settimeout(None)
            code = os.waitstatus_to_exitcode(status)
            return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))

    def _answer(self) -> bytes:
        answer = self._channel.recv(_MESSAGE_BYTES_MAX)
        assert answer, "the process that forks commands is gone"
        return answer


def _text(stream: object) -> str:
    stream.seek(0)  # type: ignore[attr-defined]
    text: str = stream.read().decode().replace("\r\n", "\n")  # type: ignore[attr-defined]
    return text


def _serve(channel: socket.socket) -> None:
    """Fork a process for each command; returns in that process, to run it."""
    while True:
        message, streams, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES_MAX, 3)
        if not message:
            sys.exit(0)
        command = os.fork()
        if command == 0:
            channel.close()
            request = json.loads(message)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            sys.path[0] = request["folder"]
            sys.argv = request["words"]
            return
        for stream in streams:
            os.close(stream)
        channel.send(str(command).encode())
        _, status = os.waitpid(command, 0)
        channel.send(str(status).encode())


def _import_all() -> None:
    import allosaur
    import scapy.all  # noqa: F401

    for module in pkgutil.walk_packages(allosaur.__path__, "allosaur."):
        if "__main__" not in module.name and not module.name.startswith("allosaur.profiles"):
            importlib.import_module(module.name)
    gc.freeze()


def _end(stop: SystemExit) -> None:
    """Do what Python does at the end of a program, but for freeing all objects.

    They are those of all modules that were imported before the fork: to free them would copy their memory
    first, and take three quarters of the time that a command takes.
    """
    if not isinstance(stop.code, int | None):
        raise stop
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        raise stop from None
    os._exit((stop.code or 0) & 0xFF)


if __name__ == "__main__":
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        _end(stop)
