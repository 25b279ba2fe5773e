"""The loads that a command line asks for: their names, and which of them has which ports."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allosaur.cli._errors import bad_input
from allosaur.cli._options import Tunable
from allosaur.cli._parser import nearest
from allosaur.run._drive import told_of
from allosaur.run._kinds import Kind, kind_of
from allosaur.run._load import Asked, Load

_PER_LOAD = {"ports": "--ports", "multiplier": "-m", "tunable": "-t"}


def read(options: argparse.Namespace, mode: str | None = None) -> dict[str, Load[Any]]:
    """Read the profiles, by the names of their loads. Raises :class:`CommandError`: it needs no server.

    They are of any kind, or of that of a mode.
    """
    paths = [Path(text) for text in getattr(options, "profiles", None) or [options.profile]]
    names = list(_names(paths))
    _refuse_unknown(options, names)
    kinds = [kind_of(path, mode) for path in paths]
    if len(paths) > 1 and options.ports is not None:
        raise bad_input(f"--ports: say of which load, such as --ports {names[0]}=0,1")
    pairs = _pairs(options, names, kinds)
    loads: dict[str, Load[Any]] = {}
    for name, path, kind in zip(names, paths, kinds, strict=True):
        own = _of(options, "ports", name)
        ports = own if own is not None else options.ports if len(paths) == 1 else pairs.get(name)
        asked = Asked(
            options,
            path,
            name,
            ports,
            _of(options, "multiplier", name) or options.multiplier,
            tunables_of(options, name),
            is_one_of_several=len(paths) > 1,
            has_own_ports=own is not None,
        )
        with told_of(name, len(paths) > 1):
            loads[name] = kind.load().read(asked)
        loads[name].name, loads[name].profile = name, str(path)
    return loads


def tunables_of(options: argparse.Namespace, name: str) -> list[Mapping[str, Tunable]]:
    """Return the tunables of a load: those of all, and its own."""
    return [*options.tunable, *(_of(options, "tunable", name) or ())]


def client_of(loads: Mapping[str, Load[Any]]) -> Any:
    """Return a client of the server, of any mode; `None` when all loads are emulated clients."""
    clients = (getattr(load, "client", None) for load in loads.values())
    return next((one for one in clients if hasattr(one, "get_server_supported_cmds")), None)


def refuse_shared_claims(loads: Mapping[str, Load[Any]]) -> None:
    """Refuse two loads that want the same for themselves. Raises :class:`CommandError`."""
    owners: dict[int | str, str] = {}
    for name, load in loads.items():
        for claim in load.claims():
            other = owners.setdefault(claim, name)
            if other == name:
                continue
            if isinstance(claim, str):
                raise bad_input(
                    f"{claim} is wanted by {other} and by {name}: give one of them another port or VLAN tag, "
                    f"by its tunables (-t {name}:vlan=5) or in its profile"
                )
            raise bad_input(
                f"port {claim} is wanted by {other} and by {name}: give each ports of its own, such as "
                f"--ports {name}={claim + 2},{claim + 3}"
            )


def _names(paths: Sequence[Path]) -> Iterator[str]:
    """Return a name for each load: that of its profile, with a number when it is there before."""
    taken: set[str] = set()
    for path in paths:
        name, number = path.stem, 1
        while name in taken:
            number += 1
            name = f"{path.stem}{number}"
        taken.add(name)
        yield name


def _pairs(options: argparse.Namespace, names: Sequence[str], kinds: Sequence[Kind]) -> dict[str, list[int]]:
    """Return a pair of ports for each load that has none by name, in order. Emulated clients have theirs."""
    given = {name: _of(options, "ports", name) for name in names}
    used = {port ^ side for ports in given.values() for port in ports or () for side in (0, 1)}
    free = (port for port in range(0, 1024, 2) if port not in used)
    needy = (
        (name, kind)
        for name, kind in zip(names, kinds, strict=True)
        if given[name] is None and kind.has_ports
    )
    return {name: kind.of_pair(next(free)) for name, kind in needy}


def _of(options: argparse.Namespace, option: str, name: str) -> Any:
    return getattr(options, "of_load", {}).get((option, name))


def _refuse_unknown(options: argparse.Namespace, names: Sequence[str]) -> None:
    for option, name in getattr(options, "of_load", {}):
        if name not in names:
            raise bad_input(
                f"{_PER_LOAD[option]} {name}: no profile of this run is called so{nearest(name, names)}; "
                f"there are {', '.join(names)}"
            )
