"""What `allosaur plan` does, from the words of the command line to the answer."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from allosaur.cli import _format, _profile, _result
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input
from allosaur.cli._options import Target
from allosaur.cli._profile_kind import is_stateful
from allosaur.cli.plan import _check, _costs, _load, _plan

_WORDS = {"cps": "flows/s", "pps": "pps", "bps": "bps", "bpsl1": "bps at layer 1"}
_CHECK_TIMES = 3
_TOLD_SHARE = 0.01


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur plan` says; return the exit code."""
    path, tunables = Path(options.profile), _profile.merged(options.tunable)
    target: Target = options.target
    if options.headroom >= 1:
        raise bad_input("--headroom: all of a core leaves nothing to plan with; give a share below 100%")
    if not 0.01 <= options.duration <= 60:
        raise bad_input("-d: costs are measured for 10 ms to 60 s; give a time such as 1s")
    has_flows = is_stateful(path)
    if not has_flows and target.unit == "cps":
        raise bad_input("--target: streams have no flows; give packets (3mpps) or bits (10gbps) a second")
    if has_flows:
        load = _load.of_flows(path, tunables, options.rtt)
    else:
        load = _load.of_streams(path, tunables, options.nic)
    if options.measured is not None:
        costs = _costs.read(options.measured, load)
    else:
        costs = _costs.measured(load, options.rtt, options.duration, _say)
    machine = _machine(options)
    plan = _plan.made(_plan.rate_of(target, load), load, costs, machine)
    checked = None
    if options.check:
        _say("the profile, on ports in memory")
        rate = _check.rate_to_check(load, plan.rate, plan.unit_ns)
        seconds = _CHECK_TIMES * options.duration
        checked = _check.checked(path, tunables, load, rate, plan.unit_ns, seconds)
    if options.json:
        print(json.dumps(_json_object(options, load, costs, machine, plan, checked), indent=2))
    else:
        print(text(path, target, load, costs, machine, plan, checked))
    return EXIT_FAILED if checked is not None and checked.is_failed else EXIT_OK


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"measuring: {what}", file=sys.stderr)


def _machine(options: argparse.Namespace) -> _plan.Machine:
    cores = options.cores or max(len(os.sched_getaffinity(0)) - 1, 1)
    return _plan.Machine(cores, _free_memory(), options.ports, options.nic, options.headroom)


def _free_memory() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def text(
    path: Path,
    target: Target,
    load: _load.Load,
    costs: _costs.Costs,
    machine: _plan.Machine,
    plan: _plan.Plan,
    checked: _check.Checked | None,
) -> str:
    """Return the plan for people: what it takes, what limits first, what it rests on, how far off it is."""
    flows = load.unit == "flow"
    rate, nic = _format.rate(target.value, _WORDS[target.unit]), _format.rate(machine.nic_bps, "bps")
    to_servers = _format.rate(plan.bits_to_servers, "bps")
    carried = to_servers
    if flows:
        carried = f"{_format.rate(plan.bits_to_clients, 'bps')} to clients, {to_servers} to servers"
    takes = [
        ["cores", f"{plan.cores:,}", f"{plan.busy_cores:,.2f} busy"],
        ["pairs of ports" if flows else "ports", f"{plan.ports // (2 if flows else 1):,}", nic],
        ["queues of a port", f"{plan.queues:,}", "each way"],
    ]
    if flows:
        kinds = ((plan.open_ends, "open ends"), (plan.time_wait_ends, "ends in TIME-WAIT"))
        ends = ", ".join(f"{count:,.0f} {kind}" for count, kind in kinds if count)
        takes.append(["memory", f"{plan.memory_bytes / 1e6:,.0f} MB", ends])
    limits = [
        [
            one.name,
            _format.rate(one.most * _plan.per_unit(target.unit, load), _WORDS[target.unit]),
            "enough" if one.most >= plan.rate else one.remedy,
        ]
        for one in plan.limits
    ]
    there = (
        f"Here: {machine.cores} {'core' if machine.cores == 1 else 'cores'} for data threads, of which "
        f"{machine.headroom:.0%} stays free, {machine.ports} ports of {nic}, "
        f"{machine.memory_bytes / 1e9:.1f} GB."
    )
    parts = [
        f"{path.stem} at {rate}: {plan.rate:,.0f} {load.unit}s a second, "
        f"{_format.seconds(plan.unit_ns / 1e9)} of a core each.",
        f"At layer 1 these are {carried}.",
        *("", _format.table(["it takes", "", ""], takes)),
        *("", there, "", _format.table(["limit", "at most", "for the target"], limits)),
        *("", "It rests on:", *(f"- {one}" for one in assumptions(load, costs, plan))),
    ]
    if checked is not None:
        parts += ["", *_checked_lines(checked, load)]
    return "\n".join([*parts, "", f"What limits first here: {plan.first.name}."])


def assumptions(load: _load.Load, costs: _costs.Costs, plan: _plan.Plan) -> list[str]:
    """Return what a plan takes for granted, a line each."""
    lines = _costs.told(costs)
    if load.unit == "flow":
        lines += [
            f"a flow of the profile has {load.to_servers.packets:,.1f} packets to servers and "
            f"{load.to_clients.packets:,.1f} to clients, as the simulator counts them without loss",
            "clients and servers are both on this machine; who has one side only needs less",
            f"an end is there for {load.client_ends:.2f} s at the client and {load.server_ends:.2f} s at the "
            f"server, {load.time_wait_ends:.2f} s of both in TIME-WAIT",
            "memory ports: what a kernel or a card takes for a packet comes on top, as loss does",
        ]
        if max(load.client_ends, load.server_ends) >= _load.SECONDS * 0.95:
            lines.append("ends that are there for longer than a minute: the simulator looked no further")
        if plan.ends > _plan.FLOWS_USUAL / 2:
            lines.append(f"`flows_max` in the server's configuration is {2 * math.ceil(plan.ends):,}")
    else:
        lines += [
            "all streams send at their rates at the same time, into a sink: what a kernel or a card takes "
            "for a packet comes on top",
            "receiving is not in it: one thread receives beside, and more with `receive_threads`",
        ]
    lines.append("cores do not slow each other down; `bench/stateful.py --only cores` says what yours give")
    return lines


def _checked_lines(checked: _check.Checked, load: _load.Load) -> list[str]:
    lines = [
        f"Check: {checked.reached:,.0f} {load.unit}s a second took {checked.used_cpu:.1%} of a core; "
        f"the plan says {checked.predicted_cpu:.1%}, "
        f"{abs(checked.error):.0%} {'more' if checked.error > 0 else 'less'}."
    ]
    if checked.is_failed:
        lines.append(f"FAILED: {checked.rate:,.0f} were offered, and one core should have carried them.")
    elif not checked.is_carried:
        lines.append(f"{checked.rate:,.0f} were offered; others had the CPU: try again when it is idle.")
    if checked.waited >= _TOLD_SHARE:
        lines.append(f"Others had the CPU for {checked.waited:.0%} of the time.")
    if checked.steal >= _TOLD_SHARE:
        lines.append(f"The host of this machine took away {checked.steal:.0%} of the CPU time.")
    return lines


def _json_object(
    options: argparse.Namespace,
    load: _load.Load,
    costs: _costs.Costs,
    machine: _plan.Machine,
    plan: _plan.Plan,
    checked: _check.Checked | None,
) -> dict[str, Any]:
    target: Target = options.target

    def of_rate(rate: float) -> float:
        return rate * _plan.per_unit(target.unit, load)

    return {
        **_result.heading("plan"),
        "ok": checked is None or not checked.is_failed,
        "profile": options.profile,
        "target": {"value": target.value, "unit": target.unit},
        "unit": load.unit,
        "needed": plan.to_json(of_rate),
        "first_limit": plan.first.name,
        "machine": vars(machine),
        "measured": costs.to_json(),
        "assumptions": assumptions(load, costs, plan),
        "check": None if checked is None else checked.to_json(),
    }
