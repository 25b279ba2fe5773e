"""What `allosaur start`, `stop`, `update`, `stats` and `clear` do on a server for stateful traffic."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allosaur.cli import _answer, _format, _gateways, _profile
from allosaur.cli._access import remote_stateful_client
from allosaur.cli._answer import Answer, listed
from allosaur.cli._errors import EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli.flows import _summary, _tables
from allosaur.cli.flows._access import (
    DEFAULT_PROFILE,
    check_clients,
    factor,
    load_file,
    plan_of,
    profile_name,
    put,
    take_server,
)
from allosaur.cli.flows._drive import (
    ALL_CLIENTS,
    RESTING,
    FlowPlan,
    FlowResult,
    begin,
    latencies,
    read,
    read_groups,
)
from allosaur.cli.flows._verdict import FlowVerdict, judge
from allosaur.report import FlowCounters

if TYPE_CHECKING:
    from allosaur import ASTFClient, STLClient


def start(options: argparse.Namespace) -> Answer:
    """Start a profile, and come back."""
    if options.ports is not None:
        raise bad_input("--ports: a stateful profile uses all ports; --clients names those that open flows")
    path = Path(options.profile)
    plan = plan_of(options)
    profile = load_file(path, _profile.merged(options.tunable))
    with Interrupt() as interrupt, remote_stateful_client(options) as client:
        check_clients(client, options)
        take_server(client, options.force)
        put(client, plan, path, profile, options.force)
        _gateways.wait(client, _gateways.of_flows(client, plan.client_mask), interrupt)
        with explained("the traffic did not start", EXIT_USAGE):
            begin(client, plan, options.record_flows or 0.0)
    name = plan.profile_id
    how_long = "until it is stopped" if plan.duration_s == FOREVER else f"for {plan.duration_s:g} s"
    again = _answer.where(options) + ("" if name == DEFAULT_PROFILE else f" --pid {name}")
    text = (
        f"Profile '{name}' runs, {how_long}.\n"
        f"  allosaur stats{again}    shows what it counts\n"
        f"  allosaur stop{again}     stops it"
    )
    return Answer(
        text,
        {
            "profile": options.profile,
            "profile_id": name,
            "multiplier": plan.multiplier,
            "duration_asked_s": None if plan.duration_s == FOREVER else plan.duration_s,
        },
    )


def stop(client: STLClient, options: argparse.Namespace) -> Answer:
    """Stop profiles."""
    flows = _owned(client, options)
    chosen = _chosen(flows, options)
    running = [name for name in chosen if _state(flows, name) not in RESTING]
    with explained("cannot stop the traffic"):
        flows.stop(pid_input=chosen)
        verdicts = {name: verdict_so_far(read(flows, name), is_over=True) for name in running}
        if options.clear:
            flows.stop(pid_input=chosen, is_remove=True)
    names = ", ".join(f"'{name}'" for name in running)
    text = f"Stopped {names}." if running else "Nothing ran."
    if options.clear:
        text += f" Took {_listed(chosen, 'profile')} off the server."
    for name, verdict in verdicts.items():
        if verdict is not None:
            text += f"\n'{name}': {_format.verdict(verdict.ok, f'{verdict.summary}.')}"
    told = {name: _verdict_json(verdict) for name, verdict in verdicts.items()}
    return Answer(text, {"stopped": running, "cleared": chosen if options.clear else [], "verdicts": told})


def update(client: STLClient, options: argparse.Namespace) -> Answer:
    """Change the rate of profiles that run."""
    wanted = factor(options.multiplier)
    flows = _owned(client, options)
    running = [name for name in _chosen(flows, options) if _state(flows, name) not in RESTING]
    if not running:
        raise CommandError("nothing runs; start a profile with `allosaur start PROFILE`")
    with explained("cannot change the rate"):
        flows.update(wanted, pid_input=running)
    return Answer(
        f"{_listed(running)}: now at {wanted:g} times the profile's rates.",
        {"updated": running, "multiplier": wanted},
    )


def clear(client: STLClient, options: argparse.Namespace) -> Answer:
    """Take profiles off the server."""
    flows = _owned(client, options)
    chosen = _chosen(flows, options)
    running = [name for name in chosen if _state(flows, name) not in RESTING]
    if running:
        raise CommandError(f"profile '{running[0]}' runs; stop it first: `allosaur stop --clear`")
    with explained("cannot clear the profile"):
        flows.clear_profile(pid_input=chosen)
    return Answer(f"Took {_listed(chosen, 'profile')} off the server.", {"cleared": chosen})


def stats(client: STLClient, options: argparse.Namespace) -> Answer:
    """Tell what profiles count."""
    flows = cast("ASTFClient", client)
    is_sum = options.pid is None
    name = profile_name(options)
    with explained("cannot read the counters"):
        if not is_sum:
            _known(flows, name)
        states = flows.get_profiles_state()
        counters = read(flows, name, is_sum)
        parts = [_tables.states(states), _summary.totals(counters)]
        if times := _summary.times(counters.outcomes):
            parts.append(times)
        is_over = all(state in RESTING for profile, state in states.items() if is_sum or profile == name)
        verdict = verdict_so_far(counters, is_over)
        result: dict[str, Any] = {
            "profile_id": None if is_sum else name,
            "states": states,
            **_summary.counters_json(counters),
            "times": {} if counters.outcomes is None else counters.outcomes.times,
            "verdict": _verdict_json(verdict),
        }
        if options.counters:
            every = flows.get_traffic_stats(pid_input=name, is_sum=is_sum)
            parts.append(_tables.counters(every))
            result["counters"] = every
        if options.groups:
            groups = read_groups(flows, name)
            parts.append(_summary.groups(groups) if groups else f"Profile '{name}' has no groups.")
            result["groups"] = {one: _summary.counters_json(found) for one, found in groups.items()}
        if options.latency:
            found = latencies(flows)
            parts.append(_summary.latency(found) if found else _tables.NO_LATENCY)
            result["latency"] = {str(port): one for port, one in found.items()}
        if options.flows:
            records = flows.get_flow_info(name)
            parts.append(_tables.flows(records) if records else _tables.NO_FLOWS)
            result["flows"] = records
    parts.append("\n".join(_summary.errors(counters)) or "No error counter has grown.")
    if verdict is not None:
        parts.append(_format.verdict(verdict.ok, f"{verdict.summary}."))
    return Answer("\n\n".join(parts), result)


def verdict_so_far(counters: FlowCounters, is_over: bool) -> FlowVerdict | None:
    """Judge a profile that was started by itself; `None` when no flow was there yet.

    Who stops it wants its flows to end. What its programs are, nobody knows here: one that ends with a
    reset makes its peer count one.
    """
    if not counters.client.begun_flows and not counters.server.begun_flows:
        return None
    mask = ALL_CLIENTS if counters.client.begun_flows else 0
    plan = FlowPlan(client_mask=mask, close_s=1.0)
    return judge(FlowResult(plan, 0.0, 0.0, counters, [], is_over=is_over))


def _verdict_json(verdict: FlowVerdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"ok": verdict.ok, "summary": verdict.summary, "reasons": list(verdict.reasons)}


def _owned(client: STLClient, options: argparse.Namespace) -> ASTFClient:
    """Own the server. What runs goes on when it is released."""
    flows = cast("ASTFClient", client)
    take_server(flows, options.force)
    return flows


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
    return listed([repr(name) for name in names], word)
