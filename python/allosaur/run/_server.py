"""The server of a run: one that is there, or one of the run's own."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from allosaur.cli import _access
from allosaur.cli._options import EMULATION_PORT, ServerAddress
from allosaur.cli._run import started
from allosaur.cli.emulation._access import connected as connected_emulation
from allosaur.run._load import ClientT

if TYPE_CHECKING:
    from allosaur.server import LocalServer

_OWN = "the server of this run"


@dataclass(frozen=True)
class RunServer:
    """Where the loads of a run are; `own` is a server that was started for it."""

    options: argparse.Namespace
    own: LocalServer | None = None

    def client(self, kind: type[ClientT]) -> AbstractContextManager[ClientT]:
        """Connect a client of this class; disconnect it at the end. Raises :class:`CommandError`."""
        from allosaur import EMUClient

        if issubclass(kind, EMUClient):
            return cast("AbstractContextManager[ClientT]", connected_emulation(self._emulation()))
        made: Any = kind
        if self.own is None:
            return cast("AbstractContextManager[ClientT]", _access.remote(self.options, made))
        own = self.own
        client = made(server=own.host, sync_port=own.rpc_port, async_port=own.pub_port)
        return cast("AbstractContextManager[ClientT]", _access.connected(client, _OWN))

    def _emulation(self) -> ServerAddress:
        if self.own is not None:
            return ServerAddress(self.own.host, self.own.emu_port or EMULATION_PORT)
        return ServerAddress(self.options.server.host, self.options.emu_port or EMULATION_PORT)


@contextlib.contextmanager
def server_of(options: argparse.Namespace, own: LocalServer | None) -> Iterator[RunServer]:
    """Give the server that the options name, or start one of the run's own and stop it at the end."""
    if own is None:
        yield RunServer(options)
        return
    with started(own) as server:
        yield RunServer(options, server)
