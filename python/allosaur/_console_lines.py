"""The console's commands as methods of clients: ``client.start_line("-f imix.py -m 10mpps --port 0 1")``.

TRex's clients have one for each command, and people's scripts call them. The console, which does the command,
stands above the clients: it is imported when a line is given.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any


def console_line(command: str) -> Callable[[Any, str], bool]:
    """A method that does a command of the console; ``line`` has its options."""

    def do(self: Any, line: str) -> bool:
        done: bool = _console().do(self, command, line)
        return done

    do.__doc__ = (
        f"Do the console's ``{command}``, whose options are in ``line``; ``--help`` among them prints them."
    )
    do.console_command = command  # type: ignore[attr-defined]
    return do


def methods_of(client: object) -> dict[str, Callable[[str], bool]]:
    """The methods of a client that do commands, by the names of the commands."""
    kind = type(client)
    found: dict[str, Callable[[str], bool]] = {}
    for name in dir(kind):
        command = getattr(inspect.getattr_static(kind, name), "console_command", None)
        if command is not None:
            found[command] = getattr(client, name)
    return found


def commands_of_plugins(client: Any) -> dict[str, Callable[[str], bool]]:
    """All commands of emulated clients, as functions of a line, by their names without ``emu_``."""
    console = _console()
    commands: dict[str, str] = console.emulation_commands()
    return {name: functools.partial(console.do, client, command) for name, command in commands.items()}


def _console() -> Any:
    """The console, by its name: what is a client's must not import what stands above it."""
    return importlib.import_module("allosaur.cli.console._client_lines")
