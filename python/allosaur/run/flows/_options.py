"""Flows that a command line asks for."""

from __future__ import annotations

from dataclasses import replace

from allosaur.cli import _profile
from allosaur.cli._errors import bad_input
from allosaur.run._asked import Asked
from allosaur.run.flows._access import factor, load_file, plan_of, resetting
from allosaur.run.flows._load import FlowLoad, Source


def read(asked: Asked) -> FlowLoad:
    """Read a stateful profile. Raises :class:`CommandError`: it needs no server."""
    options = asked.options
    if asked.ports is not None and options.local and not asked.is_one_of_several:
        raise bad_input("--ports: a server of its own has a run's ports only; leave --ports or --local out")
    plan = replace(plan_of(options), multiplier=factor(asked.multiplier))
    tunables = _profile.merged(asked.tunables)
    with _profile.noted_warnings() as noted:
        profile = load_file(asked.path, tunables)
    plan = replace(plan, resetting=resetting(profile))
    source = Source(asked.path, profile, options.force, options.clients, asked.ports, tunables, noted)
    return FlowLoad(plan, source=source)
