"""`allosaur start`, `stop`, `update`, `stats` and `clear`: stateful traffic that outlives this program."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allosaur.cli import _flow_summary, _flow_tables, _profile
from allosaur.cli._access import remote_stateful_client
from allosaur.cli._errors import EXIT_OK, EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._flow_access import (
    DEFAULT_PROFILE,
    check_clients,
    factor,
    load_file,
    plan_of,
    profile_name,
    put,
    take_server,
)
from allosaur.cli._flows import RESTING, begin, latencies, read, read_groups
from allosaur.cli._options import FOREVER
from allosaur.cli._profile_kind import is_stateful

if TYPE_CHECKING:
    from allosaur import ASTFClient


def execute(options: argparse.Namespace) -> int:
    """Do what the command says; return the exit code."""
    commands: dict[str, Callable[[argparse.Namespace], tuple[str, dict[str, Any]]]] = {
        "start": _start,
        "stop": _stop,
        "update": _update,
        "stats": _stats,
        "clear": _clear,
    }
    text, result = commands[options.command](options)
    if options.json:
        print(json.dumps({"command": options.command, "server": str(options.server), **result}, indent=2))
    else:
        print(text)
    return EXIT_OK


def _start(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    path = Path(options.profile)
    if path.is_file() and not is_stateful(path):
        raise bad_input(f"{path} is no stateful profile; `allosaur run {path}` sends streams")
    plan = plan_of(options)
    profile = load_file(path, _profile.merged(options.tunable))
    with _owned(options) as client:
        check_clients(client, options)
        put(client, plan, path, profile, options.force)
        with explained("the traffic did not start", EXIT_USAGE):
            begin(client, plan, options.record_flows or 0.0)
    name = plan.profile_id
    how_long = "until it is stopped" if plan.duration_s == FOREVER else f"for {plan.duration_s:g} s"
    again = _where(options) + ("" if name == DEFAULT_PROFILE else f" --pid {name}")
    text = (
        f"Profile '{name}' runs, {how_long}.\n"
        f"  allosaur stats{again}    shows what it counts\n"
        f"  allosaur stop{again}     stops it"
    )
    return text, {
        "ok": True,
        "profile": options.profile,
        "profile_id": name,
        "multiplier": plan.multiplier,
        "duration_asked_s": None if plan.duration_s == FOREVER else plan.duration_s,
    }


def _stop(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    with _owned(options) as client:
        chosen = _chosen(client, options)
        running = [name for name in chosen if _state(client, name) not in RESTING]
        with explained("cannot stop the traffic"):
            client.stop(pid_input=chosen, is_remove=options.clear)
    names = ", ".join(f"'{name}'" for name in running)
    text = f"Stopped {names}." if running else "Nothing ran."
    if options.clear:
        text += f" Took {_listed(chosen, 'profile')} off the server."
    return text, {"ok": True, "stopped": running, "cleared": chosen if options.clear else []}


def _update(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    wanted = factor(options.multiplier)
    with _owned(options) as client:
        running = [name for name in _chosen(client, options) if _state(client, name) not in RESTING]
        if not running:
            raise CommandError("nothing runs; start a profile with `allosaur start PROFILE`")
        with explained("cannot change the rate"):
            client.update(wanted, pid_input=running)
    return f"{_listed(running)}: now at {wanted:g} times the profile's rates.", {
        "ok": True,
        "updated": running,
        "multiplier": wanted,
    }


def _clear(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    with _owned(options) as client:
        chosen = _chosen(client, options)
        running = [name for name in chosen if _state(client, name) not in RESTING]
        if running:
            raise CommandError(f"profile '{running[0]}' runs; stop it first: `allosaur stop --clear`")
        with explained("cannot clear the profile"):
            client.clear_profile(pid_input=chosen)
    return f"Took {_listed(chosen, 'profile')} off the server.", {"ok": True, "cleared": chosen}


def _stats(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    is_sum = options.pid is None
    name = profile_name(options)
    with remote_stateful_client(options) as client, explained("cannot read the counters"):
        if not is_sum:
            _known(client, name)
        states = client.get_profiles_state()
        counters = read(client, name, is_sum)
        parts = [_flow_tables.states(states), _flow_summary.totals(counters)]
        result: dict[str, Any] = {
            "ok": True,
            "profile_id": None if is_sum else name,
            "states": states,
            **_flow_summary.counters_json(counters),
        }
        if options.counters:
            every = client.get_traffic_stats(pid_input=name, is_sum=is_sum)
            parts.append(_flow_tables.counters(every))
            result["counters"] = every
        if options.groups:
            groups = read_groups(client, name)
            parts.append(_flow_summary.groups(groups) if groups else f"Profile '{name}' has no groups.")
            result["groups"] = {one: _flow_summary.counters_json(found) for one, found in groups.items()}
        if options.latency:
            found = latencies(client)
            parts.append(_flow_summary.latency(found) if found else _flow_tables.NO_LATENCY)
            result["latency"] = {str(port): one for port, one in found.items()}
        if options.flows:
            flows = client.get_flow_info(name)
            parts.append(_flow_tables.flows(flows) if flows else _flow_tables.NO_FLOWS)
            result["flows"] = flows
    parts.append("\n".join(_flow_summary.errors(counters)) or "No counter of errors has grown.")
    return "\n\n".join(parts), result


@contextmanager
def _owned(options: argparse.Namespace) -> Iterator[ASTFClient]:
    """Own the server inside the block. What runs goes on after it."""
    with remote_stateful_client(options) as client:
        take_server(client, options.force)
        yield client


def _chosen(client: ASTFClient, options: argparse.Namespace) -> list[str]:
    """Return the profiles that the options name. Raises :class:`CommandError` when one is not there."""
    if options.all:
        return list(client.get_profiles_state())
    name = profile_name(options)
    _known(client, name)
    return [name]


def _known(client: ASTFClient, name: str) -> None:
    states = client.get_profiles_state()
    if name not in states:
        raise bad_input(f"the server has no profile '{name}'; it has: {', '.join(states) or 'none'}")


def _state(client: ASTFClient, name: str) -> str:
    return client.get_profiles_state().get(name, RESTING[0])


def _listed(names: list[str], word: str = "Profile") -> str:
    return f"{word if len(names) == 1 else word + 's'} {', '.join(repr(name) for name in names)}"


def _where(options: argparse.Namespace) -> str:
    address = options.server
    given = "" if str(address) == "localhost:4501" else f" --server {address}"
    return given + ("" if options.pub_port is None else f" --pub-port {options.pub_port}")
