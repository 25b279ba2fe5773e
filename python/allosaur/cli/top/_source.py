"""Where snapshots come from and changes go: connections to one server, made again when it comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from allosaur.cli._answer import listed
from allosaur.cli._errors import CommandError, brief
from allosaur.cli._modes import STATEFUL
from allosaur.cli.top._reader import Clients, Reader, Wanted
from allosaur.cli.top._snapshot import Run, Snapshot
from allosaur.cli.top._state import Action, Change

if TYPE_CHECKING:
    from allosaur import STLClient

_STEP = 1.05
_PERCENT = "5%"


class Lost(Exception):
    """The server does not answer; the message says why."""


class Source:
    """A server. Its methods wait for answers, and are for one thread at a time."""

    def __init__(self, address: str, connect: Callable[[], Clients], force: bool = False) -> None:
        """`connect` makes connections, also when there were some before; it raises `CommandError`.

        With `force` ports are taken from whoever has them.
        """
        self._address = address
        self._connect = connect
        self._force = force
        self._reader: Reader | None = None
        self._last: Snapshot | None = None

    def open(self) -> None:
        """Connect. Raises :class:`CommandError`."""
        self._reader = Reader(self._connect(), self._address)

    def read(self, wanted: Wanted) -> Snapshot:
        """Read a snapshot, connecting again where the server was away. Raises :class:`Lost`."""
        from allosaur import STLConnectionError, STLError

        try:
            if self._reader is None:
                self.open()
            assert self._reader is not None, "`open` makes it"
            self._last = self._reader.read(wanted)
        except (CommandError, STLConnectionError) as error:
            self._reader = None
            raise Lost(brief(error)) from error
        except STLError as error:  # a profile went while it was read, for example
            raise Lost(brief(error)) from error
        return self._last

    def change(self, action: Action) -> str:
        """Do what a key asked for; return what was done. Raises `STLError` and :class:`CommandError`."""
        if self._reader is None or self._last is None:
            raise CommandError("the server does not answer")
        clients, ports = self._reader.clients, list(action.ports)
        if action.change is Change.CLEAR:
            return _clear(clients, ports)
        if action.change is Change.ACQUIRE:
            return _acquire(clients, self._last, ports, self._force)
        if action.change is Change.RELEASE:
            return _release(clients, ports)
        if action.change in (Change.FASTER, Change.SLOWER):
            return _update(clients, self._last, ports, action.change is Change.FASTER)
        for client, own in _by_owner(clients, ports):
            (client.pause if action.change is Change.PAUSE else client.resume)(own)
        return f"{listed(ports, 'port')}: {action.change.value}d"


def _by_owner(clients: Clients, ports: Sequence[int]) -> list[tuple[STLClient, list[int]]]:
    """Return each client with those of the ports that are its own."""
    found = [(one, [port for port in ports if port in one.get_acquired_ports()]) for one in clients.all]
    return [(client, own) for client, own in found if own]


def _clear(clients: Clients, ports: list[int]) -> str:
    from allosaur import STLClient

    STLClient.clear_stats(clients.any, ports, only_given=True)
    if clients.flows is not None:
        clients.flows.clear_traffic_stats(is_sum=True)
        for profile, state in clients.flows.get_profiles_state().items():
            if state != "STATE_IDLE":
                clients.flows.clear_traffic_stats(profile)
    return "counting from here"


def _acquire(clients: Clients, snapshot: Snapshot, ports: list[int], force: bool) -> str:
    of_flows = [port.number for port in snapshot.ports if port.number in ports and port.mode == STATEFUL]
    of_streams = [port for port in ports if port not in of_flows]
    if of_streams and clients.streams is not None:
        clients.streams.acquire(of_streams, force=force)
    if clients.flows is not None and (of_flows or clients.streams is None):
        clients.flows.acquire(force=force, ports=of_flows if clients.flows.has_both_modes() else None)
    return f"{listed(ports, 'port')} acquired"


def _release(clients: Clients, ports: list[int]) -> str:
    for client, own in _by_owner(clients, ports):
        if client is clients.flows:
            clients.flows.release()
        else:
            client.release(own)
    return f"{listed(ports, 'port')} released"


def _update(clients: Clients, snapshot: Snapshot, ports: list[int], is_faster: bool) -> str:
    factor = _STEP if is_faster else 1 / _STEP
    told = [
        text
        for client, own in _by_owner(clients, ports)
        for text in (
            *_updated_streams(client, snapshot.runs, own, factor),
            *(_updated_flows(clients, snapshot.runs, factor) if client is clients.flows else ()),
        )
    ]
    if told:
        return ", ".join(told)
    if snapshot.server.uptime_s is not None:
        raise CommandError("nothing of ours runs")
    # A server of TRex's does not tell its multipliers: a part of the line rate, then.
    for client, own in _by_owner(clients, ports):
        client.update_stl(own, _PERCENT + ("+" if is_faster else "-"))
    return f"{listed(ports, 'port')}: {_PERCENT} of the line rate {'more' if is_faster else 'less'}"


def _updated_streams(client: STLClient, runs: Sequence[Run], ports: list[int], factor: float) -> list[str]:
    told = []
    for run in runs:
        if run.port in ports:
            multiplier = run.multiplier * factor
            client.update_stl([f"{run.port}.{run.profile}"], f"{multiplier:.9f}")
            told.append(f"port {run.port}: multiplier {multiplier:.4g}")
    return told


def _updated_flows(clients: Clients, runs: Sequence[Run], factor: float) -> list[str]:
    told = []
    for run in runs:
        if run.port is None and clients.flows is not None:
            clients.flows.update(run.multiplier * factor, run.profile)
            told.append(f"profile {run.profile}: multiplier {run.multiplier * factor:.4g}")
    return told
