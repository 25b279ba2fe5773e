"""Emulated clients that a command line asks for."""

from __future__ import annotations

from allosaur.cli import _profile as _profiles
from allosaur.cli._arguments import OPTIONS_OF_FLOWS
from allosaur.cli._errors import bad_input
from allosaur.cli.emulation import _profile
from allosaur.run._asked import Asked
from allosaur.run.emulation._load import EmulationLoad, Source


def read(asked: Asked) -> EmulationLoad:
    """Read a profile of emulated clients. Raises :class:`CommandError`: it needs no server."""
    options = asked.options
    if asked.has_own_ports:
        raise bad_input(f"--ports {asked.name}=: emulated clients are on the ports that their profile names")
    if asked.multiplier != "1" and not asked.is_one_of_several:
        raise bad_input(
            f"-m {asked.multiplier}: emulated clients have no rate; tunables say how many there are"
        )
    if not asked.is_one_of_several:
        given = [one for one in OPTIONS_OF_FLOWS if getattr(options, one.replace("-", "_")) is not None]
        if given:
            raise bad_input(f"--{given[0]} is for stateful profiles, and {asked.name} has emulated clients")
    tunables = _profiles.merged(asked.tunables)
    source = Source(asked.path, _profile.load(asked.path, [tunables]), tunables, options.force)
    return EmulationLoad(source, options.duration)
