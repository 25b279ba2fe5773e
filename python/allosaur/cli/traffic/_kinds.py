"""Which kind of traffic a command is about: by its profile, by its options, by what the server has."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from allosaur.cli._access import refuse_options, remote_client_of_any_mode, remote_stateful_client
from allosaur.cli._modes import STATEFUL, STATELESS
from allosaur.cli.traffic._emulation import Emulation
from allosaur.cli.traffic._flows import Flows
from allosaur.cli.traffic._kind import Traffic
from allosaur.cli.traffic._streams import Streams
from allosaur.run._kinds import kind_of

if TYPE_CHECKING:
    from allosaur import STLClient


_KINDS: Mapping[str, type[Traffic]] = {"stateless": Streams, "stateful": Flows, "emulation": Emulation}
"""By the words of `allosaur.run._kinds`."""


def of_profile(options: argparse.Namespace) -> Traffic:
    """Return the kind that the profile is for. Raises :class:`CommandError`."""
    return _KINDS[kind_of(Path(options.profile)).mode](options)


@contextlib.contextmanager
def on_server(options: argparse.Namespace) -> Iterator[Traffic]:
    """Connect to the server, and give the traffic of it that the options mean. Raises :class:`CommandError`.

    Emulated clients are meant when an option says so; else it is what the server is for, and on a server for
    both streams and flows what is going on.
    """
    if getattr(options, "emu", False):
        emulation = Emulation(options)
        with emulation.connected():
            yield emulation
        return
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(remote_client_of_any_mode(options))
        if client.get_mode() == STATELESS and _is_about_flows(client, options):
            client = stack.enter_context(remote_stateful_client(options))
        traffic: Traffic = (
            Flows(options, client) if client.get_mode() == STATEFUL else Streams(options, client)
        )
        for other in _KINDS.values():
            if not isinstance(traffic, other):
                refuse_options(options, other.title, *other.own_options)
        yield traffic


def _is_about_flows(client: STLClient, options: argparse.Namespace) -> bool:
    """Whether a command is about flows, for a server that has both modes.

    It is when an option says so, and else when flows are all that is going on.
    """
    if not client.has_both_modes() or options.ports is not None:
        return False
    if any(getattr(options, name, None) not in (None, False) for name in Flows.own_options):
        return True
    ports = client.get_status()["ports"]
    used = {port["mode"] for port in ports if port["owner"] or port["state"] not in ("IDLE", "STREAMS")}
    return used == {STATEFUL}
