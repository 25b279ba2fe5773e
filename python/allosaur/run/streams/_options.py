"""Streams that a command line asks for."""

from __future__ import annotations

from allosaur.cli import _arguments, _profile
from allosaur.run._asked import Asked
from allosaur.run.streams._counts import Plan
from allosaur.run.streams._load import Source, StreamLoad


def read(asked: Asked) -> StreamLoad:
    """Read a profile for the ports that send it. Raises :class:`CommandError`: it needs no server."""
    options = asked.options
    if not asked.is_one_of_several:
        _arguments.refuse_options_of_flows(options)
    ports = list(asked.ports or [0])
    if not asked.is_one_of_several:
        options.ports = ports  # the command line that makes it again tells them
    tunables = _profile.merged(asked.tunables)
    with _profile.noted_warnings() as noted:
        profiles = {port: _profile.load(asked.path, port % 2, port, tunables) for port in ports}
    plan = Plan(ports, asked.multiplier, options.duration, force=options.force)
    source = Source(asked.path, profiles, tunables, noted, grouped=not options.port_counters)
    return StreamLoad(plan, source=source)
