"""What a console is joined to: a client of the mode that it is in, and how the console was started."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, cast

from allosaur.cli._command import Command
from allosaur.cli._errors import EXIT_HUNG_UP, EXIT_TERMINATED, CommandError, bad_input, explained
from allosaur.cli._modes import MODES, STATEFUL, STATELESS
from allosaur.cli._options import ServerAddress
from allosaur.cli.emulation import _access as _emulation_access

if TYPE_CHECKING:
    from allosaur import ASTFClient, EMUClient, STLClient
    from allosaur.cli.console._monitor import Monitor
    from allosaur.cli.console._plugins import PlugIn


@dataclass(frozen=True)
class Target:
    """The server, and who asks it."""

    host: str
    rpc_port: int
    pub_port: int
    user: str | None = None
    timeout_s: float | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.rpc_port}"


@dataclass
class Settings:
    """How a console was started; some commands change it."""

    ports: list[int] | None = None
    """The ports to own, or all."""
    force: bool = False
    readonly: bool = False
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    emulation: ServerAddress | None = None
    """Where emulated clients are, if this console is for them too."""
    only_emulation: bool = False
    """Whether it is for emulated clients alone."""
    is_trex: bool = False
    """Whether the prompt and the exit codes are those of `trex-console`."""

    @property
    def level(self) -> str:
        """How much the client shall say."""
        if self.verbose:
            return "debug"
        return "none" if self.quiet else "error" if self.json else "info"


@dataclass
class Session:
    """A console's client and what goes with it. There is a client before it is connected."""

    target: Target
    settings: Settings
    mode: str | None = None
    """STATELESS or STATEFUL; `None` until the server was asked."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """What may be typed now, by name."""
    history: list[str] = field(default_factory=list)
    is_over: bool = False
    """Whether `quit` was typed."""
    monitor: Monitor | None = None
    ignored: dict[str, list[str]] | None = None
    """The addresses that flows ignore, as this console would have them; `None` until it asked."""
    plugins: dict[str, PlugIn] = field(default_factory=dict)
    """Plug-ins that are loaded, by name."""
    _client: STLClient | None = None
    _emulation: EMUClient | None = None
    _warnings_shown: int = 0

    @property
    def client(self) -> STLClient:
        """The client, connected. Raises :class:`CommandError` when it is not."""
        if self._client is None or not self._client.is_connected():
            why = self._client.why_lost() if self._client is not None else None
            raise CommandError(f"not connected{f' ({why})' if why else ''}: `connect` tries {self.target}")
        return self._client

    @property
    def flows(self) -> ASTFClient:
        """The client, of stateful traffic."""
        return cast("ASTFClient", self.client)

    @property
    def emulation(self) -> EMUClient:
        """The client of emulated clients, connected. Raises :class:`CommandError` when there is none."""
        if self.settings.emulation is None:
            raise CommandError("this console is not for emulated clients: start it with --emu")
        if self._emulation is None or not self._emulation.is_connected():
            level = "debug" if self.settings.verbose else "error"
            where, wait_s = self.settings.emulation, self.target.timeout_s
            self._emulation = _emulation_access.connect(where, wait_s, level, _logger())
        return self._emulation

    @property
    def is_connected(self) -> bool:
        """Whether there is a server, as far as is known."""
        return self._client is not None and self._client.is_connected()

    def connect(self, mode: str | None = None) -> None:
        """Connect in a mode, or in the one that suits the server. Raises :class:`CommandError`."""
        from allosaur import ASTFClient, STLClient

        wanted = mode or self.mode
        theirs = self._modes()
        if wanted is not None and wanted not in theirs:
            raise bad_input(
                f"the server at {self.target} is for {MODES[theirs[0]]} traffic only: "
                f"stay {MODES[theirs[0]]}, or start a server that has both"
            )
        self._disconnect()
        chosen = wanted or theirs[0]
        client = self._new(
            STLClient if chosen == STATELESS else ASTFClient, "debug" if self.settings.verbose else "error"
        )
        with explained(f"cannot use the server at {self.target}"):
            client.connect()
        if not self.settings.is_trex:  # TRex's console counts from when it connects
            client.count_since_server_start()
        client.set_verbose(self.settings.level)
        self._client, self.mode, self._warnings_shown = client, chosen, 0

    def acquire(self, ports: Sequence[int] | None = None, force: bool = False) -> None:
        """Own ports, all unless some are named; of stateful traffic always all. Raises :class:`STLError`."""
        if self.mode == STATEFUL:
            self.flows.acquire(force=force)
        else:
            self.client.acquire(ports=list(ports) if ports else None, force=force)
        self.settings.readonly = False

    def close(self) -> None:
        """Release what is owned and disconnect; traffic goes on, as TRex's console leaves it."""
        while self.plugins:
            _, plugin = self.plugins.popitem()
            try:
                plugin.unload()
            except Exception as error:
                print(f"warning: {error}", file=sys.stderr)
        self._disconnect()
        if self._emulation is not None:
            self._emulation.disconnect()
            self._emulation = None

    def _disconnect(self) -> None:
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None
        self.ignored = None
        if self._client is not None:
            self._client.set_verbose("none")
            with contextlib.suppress(Exception):
                self._client.disconnect(stop_traffic=False)

    def switch(self, mode: str) -> None:
        """Go on in another mode, with all ports if some were owned. Raises :class:`CommandError`."""
        had = self.client.get_acquired_ports()
        self.connect(mode)
        if had:
            self.acquire()

    def another_client(self, mode: str | None = None) -> STLClient:
        """Return a client of the same server, of this mode or of another, not yet connected."""
        from allosaur import ASTFClient, STLClient

        return self._new(ASTFClient if (mode or self.mode) == STATEFUL else STLClient, "none")

    def events(self, kinds: list[str] | None, forget: bool) -> list[str]:
        """Return what was told since the console connected, also when it is not connected any more."""
        if self._client is None:
            return []
        events = [str(event) for event in self._client.get_events(kinds)]
        if forget:
            self._client.clear_events()
        return events

    def new_warnings(self) -> list[str]:
        """Return the warnings that were not returned before, such as of a port that somebody took."""
        known = self.events(["warning"], forget=False)
        fresh = known[self._warnings_shown :]
        self._warnings_shown = len(known)
        return fresh

    def set_verbose(self, verbose: bool) -> None:
        """Switch whether requests and replies are printed."""
        self.settings.verbose = verbose
        if self._client is not None:
            self._client.set_verbose(self.settings.level)
        if self._emulation is not None:
            self._emulation.set_verbose("debug" if verbose else "error")

    def _modes(self) -> list[str]:
        from allosaur import STLClient, STLConnectionError

        try:
            with explained(f"cannot use the server at {self.target}"):
                version = self._new(STLClient, "error").probe_server()
        except CommandError as error:
            if isinstance(error.__cause__, STLConnectionError):
                raise CommandError(
                    f"no server answers at {self.target}; start one with `allosaur server`, "
                    "or name another with -s HOST"
                ) from error
            raise
        modes = version.get("modes") or [version.get("mode", STATELESS)]
        known = [one for one in (STATELESS, STATEFUL) if one in modes]
        if not known:
            raise CommandError(f"the server at {self.target} is in mode {modes[0]}, which has no console")
        return known

    def _new(self, kind: type[STLClient], level: str | None = None) -> STLClient:
        return kind(
            username=self.target.user,
            server=self.target.host,
            sync_port=self.target.rpc_port,
            async_port=self.target.pub_port,
            verbose_level=level or self.settings.level,
            logger=_logger(),
            sync_timeout=self.target.timeout_s,
            async_timeout=self.target.timeout_s,
        )


@contextlib.contextmanager
def opened(target: Target, settings: Settings, mode: str | None = None) -> Iterator[Session]:
    """Connect, own ports unless the console is read-only, and disconnect at the end."""
    session = Session(target, settings)
    ends = {signal.SIGTERM: EXIT_TERMINATED, signal.SIGHUP: EXIT_HUNG_UP}
    before = {number: signal.signal(number, _leave(code)) for number, code in ends.items()}
    try:
        if settings.emulation is not None:
            _ = session.emulation
        if not settings.only_emulation:
            session.connect(mode)
        if not settings.readonly and not settings.only_emulation:
            _own(session)
        yield session
    finally:
        session.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _own(session: Session) -> None:
    """Own the ports that the settings say. Raises :class:`CommandError`."""
    settings = session.settings
    if settings.ports and session.mode == STATEFUL:
        raise bad_input("--acquire: stateful traffic has all ports; leave it out")
    with explained("cannot own the ports (--force takes them, --readonly only looks)"):
        session.acquire(settings.ports, settings.force)


def _leave(exit_code: int) -> Callable[[int, FrameType | None], None]:
    """Return what ends the program on a signal by way of every `finally`: ports must not stay ours."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(exit_code)

    return leave


class _Printer(logging.Handler):
    """Messages on the standard output of the moment, which a prompt may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        print(record.getMessage(), file=sys.stdout, flush=True)


def _logger() -> logging.Logger:
    logger = logging.Logger("allosaur.console", logging.DEBUG)
    logger.addHandler(_Printer())
    return logger
