"""A program in the network namespace of a node, with the terminal, the signals and the exit code of this one.

The network namespace belongs to a thread, and a program that a thread starts begins in that thread's. So a
thread enters the namespace, starts the program and ends: this process is never elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from allosaur.cli._errors import CommandError

_FOLDER = Path("/run/netns")
_CLONE_NEWNET = 0x4000_0000
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C comes to the program by itself: it is of the terminal's foreground group, as this one is."""
_NOT_FOUND, _NOT_STARTED = 127, 126
"""As a shell and env(1) end."""


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it printed, where that was kept."""

    exit_code: int
    stdout: str | None
    stderr: str | None


def run(namespace: str, program: Sequence[str], keep: bool) -> Ended:
    """Run a program in a namespace until it ends; with `keep` what it prints is kept.

    Raises :class:`CommandError`.
    """
    stream = subprocess.PIPE if keep else None

    def start() -> subprocess.Popen[str]:
        _enter(namespace)
        return subprocess.Popen(program, stdout=stream, stderr=stream, text=True, errors="replace")

    try:
        with ThreadPoolExecutor(1) as thread:
            process = thread.submit(start).result()
    except FileNotFoundError as error:
        raise CommandError(
            f"there is no program {program[0]}: install it, or give its path", _NOT_FOUND
        ) from error
    except OSError as error:
        raise CommandError(f"{program[0]}: {error.strerror}", _NOT_STARTED) from error
    with _signals_to(process):
        stdout, stderr = process.communicate()
    code = process.returncode
    # By a signal, as a shell counts it.
    return Ended(code if code >= 0 else 128 - code, stdout, stderr)


def _enter(namespace: str) -> None:
    """Have this thread in a namespace. Raises :class:`CommandError`."""
    try:
        descriptor = os.open(_FOLDER / namespace, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise CommandError(
            f"the namespace {namespace} is not on this machine: run this where the server runs"
        ) from None
    except OSError as error:
        raise CommandError(f"{_FOLDER / namespace}: {error.strerror}") from error
    libc = ctypes.CDLL(None, use_errno=True)
    entered = libc.setns(descriptor, _CLONE_NEWNET)
    number = ctypes.get_errno()
    os.close(descriptor)
    if entered != 0:
        raise CommandError(
            f"cannot enter the namespace {namespace} ({os.strerror(number)}): that takes the capability "
            'CAP_SYS_ADMIN; run `sudo env "PATH=$PATH" allosaur node exec ...`'
        )


@contextlib.contextmanager
def _signals_to(process: subprocess.Popen[str]) -> Iterator[None]:
    """Leave signals to a program inside the block: it says how it ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, _: object) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
