"""Emulated clients."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli._arguments import OPTIONS_OF_FLOWS
from allosaur.cli._errors import EXIT_SETUP, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER, ServerAddress
from allosaur.cli.emulation import _access, _profile
from allosaur.cli.traffic._kind import Said, Started, Traffic

if TYPE_CHECKING:
    from allosaur import EMUClient, EMUProfile


class Emulation(Traffic):
    """Emulated clients. Their units are namespaces, as plain data; who stops them removes all."""

    title = "emulated clients"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._known: EMUClient | None = None
        self._profile: EMUProfile | None = None
        self._count = 0

    @property
    def _client(self) -> EMUClient:
        assert self._known is not None, "it is connected"
        return self._known

    def load(self) -> None:
        options = self.options
        unset = {"multiplier": "1", "duration": FOREVER}
        others = (*OPTIONS_OF_FLOWS, "record-flows", "ports", *unset)
        given = [name for name in others if getattr(options, name.replace("-", "_")) != unset.get(name)]
        if given:
            raise bad_input(
                f"--{given[0]} is for streams and flows; {options.profile} has emulated clients, which stay "
                "until `allosaur stop --emu`, on the ports that it names"
            )
        self._profile = _profile.load(Path(options.profile), options.tunable)

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        with _access.connected(ServerAddress(self.options.server.host, self.options.emu_port)) as self._known:
            yield

    def start(self, interrupt: Interrupt) -> Started:
        assert self._profile is not None, "it is loaded"
        if self.running() and not self.options.force:
            raise CommandError(
                f"{_profile.counted(self._count, 'client')} are emulated already; remove them with "
                "`allosaur stop --emu`, or give --force to replace them",
                EXIT_SETUP,
            )
        with explained(f"profile {self.options.profile}"):
            self._client.load_profile(self._profile)
        said = _profile.said(self._profile)
        return Started(f"{said.text.rstrip('.')}, until they are stopped", said.fields, "", " --emu")

    def running(self) -> list[dict[str, Any]]:
        with explained("cannot read the emulated clients"):
            keys = self._client.get_all_ns()
            infos = self._client.get_info_ns(keys) if keys else []
        self._count = sum(one["active_clients"] for one in infos)
        return [key.conv_to_dict() for key in keys]

    def loaded(self) -> list[dict[str, Any]]:
        return []  # to stop them is to remove them

    def own(self, units: Sequence[dict[str, Any]]) -> None:
        return  # they have no owner

    def stop(self, units: Sequence[dict[str, Any]]) -> Said:
        with explained("cannot remove the emulated clients"):
            if units:
                self._client.remove_profile()
        return Said("", {"clients": self._count})

    def remove(self, units: Sequence[dict[str, Any]]) -> Said:
        return Said("")

    def listed(self, units: Sequence[dict[str, Any]]) -> str:
        clients = _profile.counted(self._count, "client")
        return f"emulating {clients} in {_profile.counted(len(units), 'namespace')}"

    def refuse_to_remove(self, running: Sequence[dict[str, Any]]) -> CommandError:
        return CommandError("clients are emulated; `allosaur stop --emu` removes them")
