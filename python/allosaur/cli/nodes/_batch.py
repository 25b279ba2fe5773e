"""A batch of commands for the nodes of a port: how far it is is told, and Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from allosaur.cli import _live
from allosaur.cli._errors import CommandError
from allosaur.cli._interrupt import Interrupt

if TYPE_CHECKING:
    from allosaur import NSCmds, STLClient


def done(client: STLClient, port: int, cmds: NSCmds) -> list[Any]:
    """Have a batch done; return its results. Raises `STLError` when a command failed."""
    started_s = time.monotonic()
    with _interrupt() as interrupt, _live.showing(None, _line, _line) as show:

        def note(progress: dict[str, Any]) -> None:
            show(time.monotonic() - started_s, progress)
            if interrupt:
                client.cancel_async_task(port)
                raise CommandError(
                    f"port {port}: stopped after {progress['exec_cmds']} of {progress['total_cmds']} "
                    "commands; the nodes that were added or changed stay so",
                    interrupt.exit_code or 0,
                )

        client.set_namespace_start(port, cmds)
        return client.wait_for_async_results(port, cb=note)


def _line(progress: dict[str, Any]) -> str:
    failed = f", {progress['errs_cmds']:,} failed" if progress["errs_cmds"] else ""
    return f"{progress['exec_cmds']:,} of {progress['total_cmds']:,} commands done{failed}"


@contextlib.contextmanager
def _interrupt() -> Iterator[Interrupt]:
    """Signals are noticed between two questions; only the main thread of a program may say so."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    with interrupt:
        yield interrupt
