"""Commands of the console for scripts: one line, done with the client that the script has.

A command that fails raises `STLError`. What it was asked for is printed, as in the console; that something
was done goes to the client's log at level "info", as with TRex's client.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from allosaur._errors import STLError
from allosaur.cli._errors import CommandError
from allosaur.cli._modes import MODES, STATELESS
from allosaur.cli.console import _line
from allosaur.cli.console._command import DONE, ConsoleCommand
from allosaur.cli.console._session import Session, Settings, Target
from allosaur.cli.console.commands import of_mode
from allosaur.cli.console.commands._emulation import PREFIX
from allosaur.cli.console.commands._emulation_list import all_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from allosaur import ASTFClient, EMUClient, STLClient

_INFO_LEVELS = ("info", "debug")


class _ClientSession(Session):
    """A session of the console whose client is a script's, which connects and disconnects it."""

    _script_client: Any = None

    @property
    def client(self) -> STLClient:
        return cast("STLClient", self._script_client)

    @property
    def emulation(self) -> EMUClient:
        return cast("EMUClient", self._script_client)

    @property
    def flows(self) -> ASTFClient:
        return cast("ASTFClient", self._script_client)

    def connect(self, mode: str | None = None) -> None:
        self._script_client.connect()
        self.ignored = None

    def acquire(self, ports: Sequence[int] | None = None, force: bool = False) -> None:
        super().acquire(ports, force)
        self.settings.readonly = False

    def close(self) -> None:
        self._script_client.disconnect()
        self.ignored = None

    def events(self, kinds: list[str] | None, forget: bool) -> list[str]:
        events = [str(event) for event in self.client.get_events(kinds)]
        if forget:
            self.client.clear_events()
        return events


def do(client: STLClient | EMUClient, command: str, line: str) -> bool:
    """Do a command with a client. Raises `STLError`."""
    if not isinstance(line, str):
        raise STLError(
            f"the line of '{command}' is of type '{type(line).__name__}': give the options as text"
        )
    session = _session_of(client)
    found = _commands(session.mode)[command]
    if found.needs_server:
        # Says how to connect, in the words of the client.
        session.client.get_acquired_ports()
    try:
        parser = _line.parser_of(found)
        options, unknown = parser.parse_known_args(_line.words(f"{command} {line}", {command: found})[1:])
        if unknown:
            options.parser.refuse_words(unknown)
        options.session = session
        answer = found.answer(session, options)
    except SystemExit:  # --help ends this way
        return True
    except CommandError as error:
        raise STLError(str(error)) from error
    if answer.text.endswith(DONE):
        if client.get_verbose() in _INFO_LEVELS:
            client.logger.log(logging.INFO, answer.text)
    elif answer.text:
        print(answer.text, flush=True)
    return True


def emulation_commands() -> dict[str, str]:
    """Return the commands of emulated clients by their names without the prefix."""
    return {name.removeprefix(PREFIX): name for name in all_commands()}


def _commands(mode: str | None) -> Mapping[str, ConsoleCommand]:
    """Return the commands of a client; a stateful one has those of the streams beside its flows, too."""
    if mode is None:
        return {**all_commands()}
    return {**of_mode(STATELESS), **of_mode(mode)}


def _session_of(client: Any) -> _ClientSession:
    """Return the session of a client: the same for all its lines, for some remember what others did."""
    session: _ClientSession | None = getattr(client, "_console_session", None)
    if session is None:
        mode = client.get_mode()
        session = _ClientSession(_target(client), Settings(), mode if mode in MODES else None)
        session._script_client = client
        client._console_session = session
    return session


def _target(client: Any) -> Target:
    return Target(*client._server_address())
