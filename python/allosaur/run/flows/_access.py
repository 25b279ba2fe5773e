"""Getting at a stateful server: owning it, loading a profile, and the errors that say what to do next."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allosaur.cli import _profile, _shipped
from allosaur.cli._access import LEASE_S
from allosaur.cli._errors import EXIT_SETUP, EXIT_USAGE, CommandError, bad_input, brief, explained
from allosaur.cli._options import Tunable
from allosaur.run.flows._counts import ALL_CLIENTS, FlowPlan

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight

DEFAULT_PROFILE = "_"
RESTING = ("STATE_IDLE", "STATE_ASTF_LOADED")
"""The states of a profile of which nothing runs."""


def plan_of(options: argparse.Namespace, multiplier: str | None = None) -> FlowPlan:
    """Return the plan that the options ask for. Raises :class:`CommandError`."""
    return FlowPlan(
        profile_id=profile_name(options),
        multiplier=factor(multiplier or options.multiplier),
        duration_s=options.duration,
        latency_pps=options.latency or 0,
        ipv6=bool(options.ipv6),
        no_close=bool(options.nc),
        client_mask=_client_mask(options),
        establish_s=options.establish_within or 0.0,
        close_s=options.close_within or 0.0,
    )


def factor(text: str) -> float:
    """Read the multiplier of flows: a number. Raises :class:`CommandError`."""
    try:
        return float(text)
    except ValueError:
        raise bad_input(
            f"-m {text}: a rate is for streams; a stateful profile takes a factor of its own rates, "
            "such as -m 100"
        ) from None


def profile_name(options: argparse.Namespace) -> str:
    """Return the name that `--pid` gives. Raises :class:`CommandError`."""
    name: str = options.pid if options.pid is not None else DEFAULT_PROFILE
    if not name or "*" in name or any(letter.isspace() for letter in name):
        raise bad_input(f"--pid {name!r}: a name is one word, such as web")
    return name


def load_file(path: Path, tunables: Mapping[str, Tunable]) -> ASTFProfile | ASTFProfileLight:
    """Load a stateful profile. Raises :class:`CommandError` with the line that is wrong."""
    _shipped.check(path)
    from allosaur import ASTFProfile, STLError

    try:
        # What a profile prints must not mix with our own output, which may be JSON.
        with contextlib.redirect_stdout(sys.stderr):
            return ASTFProfile.load(str(path), **tunables)
    except STLError as error:
        raise _profile.wrong(path, error) from error


def resetting(profile: ASTFProfile | ASTFProfileLight) -> frozenset[str]:
    """Return the sides whose programs end connections with a reset."""
    fields = profile.to_json()
    resets = [
        any(command["name"] == "reset" for command in program.get("commands", ()))
        for program in fields.get("program_list", ())
    ]
    return frozenset(
        side
        for template in fields.get("templates", ())
        for side in ("client", "server")
        if resets[template[f"{side}_template"]["program_index"]]
    )


def take_server(client: ASTFClient, force: bool, ports: Sequence[int] | None = None) -> None:
    """Own ports for flows for as long as this program lives, with a hint when somebody else does.

    Without `ports`, those that have flows or an owner already, and else all that can be had.
    """
    from allosaur import STLError

    if ports is not None and not client.has_both_modes():
        raise bad_input(
            "--ports: the server has all its ports in stateful mode; --clients names those that open flows"
        )
    hint = "" if force else " (--force takes the server over)"
    try:
        client.acquire(force=force, lease_s=LEASE_S, ports=ports or _ports_in_use(client))
    except STLError as error:
        raise CommandError(f"cannot take the server: {brief(error)}{hint}", EXIT_SETUP) from error


def _ports_in_use(client: ASTFClient) -> list[int] | None:
    """Return the ports in stateful mode, when somebody uses them and others can be in the other mode."""
    if not client.has_both_modes():
        return None
    status = client.get_status()
    stateful = [port for port in status["ports"] if port["mode"] == "ASTF"]
    in_use = any(port["owner"] or port["state"] != "IDLE" for port in stateful)
    return [port["port_id"] for port in stateful] if in_use else None


def put(
    client: ASTFClient, plan: FlowPlan, path: Path | str, profile: ASTFProfile | ASTFProfileLight, force: bool
) -> None:
    """Load a profile onto the server. One that runs under its name is stopped with `force`, else an error."""
    name = plan.profile_id
    if client.get_profiles_state().get(name, RESTING[0]) not in RESTING:
        if not force:
            raise CommandError(
                f"profile '{name}' runs already; stop it with `allosaur stop --pid {name}`, "
                "give this one another name with --pid, or --force to replace it",
                EXIT_SETUP,
            )
        with explained(f"cannot stop profile '{name}'"):
            client.stop(pid_input=name)
    with explained(f"profile {path}", EXIT_USAGE):
        client.load_profile(profile, pid_input=name)


def check_clients(client: ASTFClient, clients: Sequence[int] | None) -> None:
    """Refuse client ports that the server does not have, or that are servers'."""
    count = client.get_port_count()
    for port in clients or []:
        if port % 2:
            raise bad_input(f"--clients {port}: odd ports are servers'; name even ones, such as 0")
        if port >= count:
            raise bad_input(f"--clients {port}: the server has ports 0 to {count - 1}")


def _client_mask(options: argparse.Namespace) -> int:
    if options.servers_only:
        return 0
    if options.clients is None:
        return ALL_CLIENTS
    return sum(1 << port for port in options.clients)
