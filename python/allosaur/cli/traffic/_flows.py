"""Flows of stateful profiles."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allosaur.cli import _format, _gateways, _profile
from allosaur.cli._access import remote_stateful_client
from allosaur.cli._answer import Answer, listed
from allosaur.cli._errors import EXIT_USAGE, CommandError, bad_input, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli.flows import _tables
from allosaur.cli.traffic._kind import Said, Started, Traffic, how_long
from allosaur.report._flow_counters import FlowCounters
from allosaur.run import Verdict, judge
from allosaur.run.flows import _tables as _run_tables
from allosaur.run.flows._access import (
    DEFAULT_PROFILE,
    RESTING,
    check_clients,
    factor,
    load_file,
    plan_of,
    profile_name,
    put,
    take_server,
)
from allosaur.run.flows._counts import ALL_CLIENTS, FlowPlan
from allosaur.run.flows._hints import error_lines
from allosaur.run.flows._readings import begin, latencies, read, read_groups
from allosaur.run.flows._result import FlowResult

if TYPE_CHECKING:
    from allosaur import ASTFClient, ASTFProfile, ASTFProfileLight, STLClient


class Flows(Traffic):
    """Flows. Their units are profiles, by name."""

    title = "stateful profiles"
    own_options = ("pid", "counters", "flows")
    no_units = "The server has no profile."

    def __init__(self, options: argparse.Namespace, client: STLClient | None = None) -> None:
        super().__init__(options)
        self._known = cast("ASTFClient | None", client)
        self._profile: ASTFProfile | ASTFProfileLight | None = None

    @property
    def _client(self) -> ASTFClient:
        assert self._known is not None, "it is connected"
        return self._known

    def load(self) -> None:
        if self.options.ports is not None:
            raise bad_input(
                "--ports: a stateful profile uses all ports; --clients names those that open flows"
            )
        self._plan = plan_of(self.options)
        self._profile = load_file(Path(self.options.profile), _profile.merged(self.options.tunable))

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        with remote_stateful_client(self.options) as self._known:
            yield

    def start(self, interrupt: Interrupt) -> Started:
        client, options, plan = self._client, self.options, self._plan
        assert self._profile is not None, "it is loaded"
        check_clients(client, options.clients)
        take_server(client, options.force)
        put(client, plan, Path(options.profile), self._profile, options.force)
        _gateways.wait(client, _gateways.of_flows(client, plan.client_mask), interrupt)
        with explained("the traffic did not start", EXIT_USAGE):
            begin(client, plan, options.record_flows or 0.0)
        name = plan.profile_id
        again = "" if name == DEFAULT_PROFILE else f" --pid {name}"
        return Started(
            f"Profile '{name}' runs, {how_long(options)}",
            {
                "profile_id": name,
                "multiplier": plan.multiplier,
                "duration_asked_s": None if plan.duration_s == FOREVER else plan.duration_s,
            },
            again,
            again,
        )

    def running(self) -> list[str]:
        states = self._client.get_profiles_state()
        return [name for name in self.loaded() if states.get(name, RESTING[0]) not in RESTING]

    def loaded(self) -> list[str]:
        if getattr(self.options, "all", False):
            return list(self._client.get_profiles_state())
        name = profile_name(self.options)
        self._check(name)
        return [name]

    def _check(self, name: str) -> None:
        states = self._client.get_profiles_state()
        if name not in states:
            raise bad_input(f"the server has no profile '{name}'; it has: {', '.join(states) or 'none'}")

    def own(self, units: Sequence[str]) -> None:
        take_server(self._client, self.options.force)

    def stop(self, units: Sequence[str]) -> Said:
        with explained("cannot stop the traffic"):
            if units:
                self._client.stop(pid_input=list(units))
            verdicts = {name: verdict_so_far(read(self._client, name), is_over=True) for name in units}
        lines = [
            f"'{name}': {_format.verdict(verdict.ok, f'{verdict.summary}.')}"
            for name, verdict in verdicts.items()
            if verdict is not None
        ]
        told = {name: _verdict_json(verdict) for name, verdict in verdicts.items()}
        return Said("\n".join(lines), {"verdicts": told})

    def remove(self, units: Sequence[str]) -> Said:
        with explained("cannot clear the profile"):
            if units:
                self._client.clear_profile(pid_input=list(units))
        return Said(f"Took {_listed(units, 'profile')} off the server.")

    def check_rate(self) -> None:
        factor(self.options.multiplier)

    def set_rate(self, units: Sequence[str]) -> Said:
        rate = factor(self.options.multiplier)
        with explained("cannot change the rate"):
            self._client.update(rate, pid_input=list(units))
        return Said(
            f"{_listed(units, 'Profile')}: now at {rate:g} times the profile's rates.", {"multiplier": rate}
        )

    def listed(self, units: Sequence[str]) -> str:
        return ", ".join(f"'{name}'" for name in units)

    def refuse_to_remove(self, running: Sequence[str]) -> CommandError:
        return CommandError(f"profile '{running[0]}' runs; stop it first: `allosaur stop --clear`")

    def client(self) -> STLClient | None:
        return self._known

    def stats(self) -> Answer:
        client, options = self._client, self.options
        is_sum = options.pid is None
        name = profile_name(options)
        with explained("cannot read the counters"):
            if not is_sum:
                self._check(name)
            states = client.get_profiles_state()
            counters = read(client, name, is_sum)
            is_over = all(state in RESTING for profile, state in states.items() if is_sum or profile == name)
            verdict = verdict_so_far(counters, is_over)
            parts = [_tables.states(states), _run_tables.totals(counters)]
            if times := _run_tables.times(counters.outcomes):
                parts.append(times)
            result: dict[str, Any] = {
                "profile_id": None if is_sum else name,
                "states": states,
                **_run_tables.counters_json(counters),
                "times": {} if counters.outcomes is None else counters.outcomes.times,
                "verdict": _verdict_json(verdict),
            }
            for text, key, value in self._more(name, is_sum):
                parts.append(text)
                result[key] = value
        parts.append("\n".join(error_lines(counters.trouble())) or "No error counter has grown.")
        if verdict is not None:
            parts.append(_format.verdict(verdict.ok, f"{verdict.summary}."))
        return Answer("\n\n".join(parts), result)

    def _more(self, name: str, is_sum: bool) -> Iterator[tuple[str, str, Any]]:
        """Give what options ask for beside: as text, and under its key."""
        client, options = self._client, self.options
        if options.counters:
            every = client.get_traffic_stats(pid_input=name, is_sum=is_sum)
            yield _tables.counters(every), "counters", every
        if options.groups:
            groups = read_groups(client, name)
            text = _run_tables.groups(groups) if groups else f"Profile '{name}' has no groups."
            yield text, "groups", {one: _run_tables.counters_json(found) for one, found in groups.items()}
        if options.latency:
            measured = latencies(client)
            text = _run_tables.latency(measured) if measured else _tables.NO_LATENCY
            yield text, "latency", {str(port): one for port, one in measured.items()}
        if options.flows:
            records = client.get_flow_info(name)
            yield _tables.flows(records) if records else _tables.NO_FLOWS, "flows", records


def verdict_so_far(counters: FlowCounters, is_over: bool) -> Verdict | None:
    """Judge a profile that was started by itself; `None` when no flow was there yet.

    Who stops it wants its flows to end. What its programs are, nobody knows here: one that ends with a
    reset makes its peer count one.
    """
    if not counters.client.begun_flows and not counters.server.begun_flows:
        return None
    mask = ALL_CLIENTS if counters.client.begun_flows else 0
    plan = FlowPlan(client_mask=mask, close_s=1.0)
    return judge(FlowResult(plan, counters, is_over=is_over))


def _verdict_json(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"ok": verdict.ok, "summary": verdict.summary, "reasons": list(verdict.reasons)}


def _listed(names: Sequence[str], word: str) -> str:
    return listed([repr(name) for name in names], word)
