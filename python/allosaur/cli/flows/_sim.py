"""`allosaur sim` of a stateful profile: clients, servers and a link between them, in virtual time.

The engine is the server's own; this gives it the profile, and describes what came of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allosaur.cli import _format, _output_file, _profile, _simulated
from allosaur.cli._binary import exit_code_of, last_words, server_binary
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, CommandError, bad_input
from allosaur.cli._options import FOREVER
from allosaur.cli._simulated import summarize
from allosaur.report._flow_counters import SIDES, FlowCounters, SideCounters
from allosaur.report._flow_outcomes import Outcomes
from allosaur.run.flows import _tables as _run_tables
from allosaur.run.flows._access import load_file, resetting
from allosaur.run.flows._counts import FlowPlan
from allosaur.run.flows._result import FlowResult
from allosaur.run.flows._verdict import ends

DEFAULT_DURATION_S = 5.0
_SUMMARY = (
    ("flows", "flows"),
    ("bytes sent", "sent_bytes"),
    ("bytes delivered", "received_bytes"),
    ("flows that could not begin", "missed"),
    ("flows that had not ended", "left"),
)
_TOLD_BY_ENDS = (" flows were refused or given up", " flows were reset")
_ALWAYS = {"flows", "sent_bytes", "received_bytes"}
_LINK = (
    ("packets", "frames"),
    ("lost", "lost"),
    ("lost in the queue", "overflowed"),
    ("late", "late"),
    ("arrived twice", "duplicated"),
)


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur sim` says, with flows; return the exit code."""
    path = Path(options.profile)
    files = capture_files(options.output)
    words = _words(options)
    profile = load_file(path, _profile.merged(options.tunable))
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "profile.json"
        requests.write_text(profile.to_json_str(pretty=False), encoding="utf-8")
        captures = files or ({"client": Path(folder) / "client.pcap"} if options.list else {})
        outcome = _simulate(words, captures, requests, str(path))
        total, packets = _listed(options, captures)
    problems = judge(outcome, resetting(profile))
    ok = not problems
    if options.json:
        more = {"listed": packets} if options.list else {}
        print(json.dumps({**_json_object(options, files, outcome, problems), **more}, indent=2))
    else:
        if options.list:
            print(_simulated.text(packets, total) + "\n")
        print(text(outcome))
        for name in files.values():
            print(f"Wrote {name}.")
        print("OK: " + _summary(outcome) if ok else "FAILED: " + "; ".join(problems) + ".")
    return EXIT_OK if ok else EXIT_FAILED


def _listed(options: argparse.Namespace, captures: Mapping[str, Path]) -> tuple[int, list[dict[str, Any]]]:
    """Return how many packets there were at the clients' port, and those to list, where that is asked."""
    if not options.list:
        return 0, []
    limit = options.limit or _simulated.LIMIT_PACKETS
    return summarize(captures["client"]).packets, _simulated.listed(captures["client"], limit)


def judge(outcome: Mapping[str, Any], resetting_sides: frozenset[str]) -> list[str]:
    """Return what did not go well: how flows ended, as after a run, and what else the simulation saw.

    The link is the simulation's own: it knows which bytes must have come, and what a bad link makes of
    counters. Flows that were reset or given up are told by their ends.
    """
    plan = FlowPlan(resetting=resetting_sides)
    ended = ends(FlowResult(plan, _flow_counters(outcome), elapsed_s=outcome["seconds"]))
    others = [one for one in outcome["verdict"]["problems"] if not one.endswith(_TOLD_BY_ENDS)]
    return [*ended, *others]


def _flow_counters(outcome: Mapping[str, Any]) -> FlowCounters:
    client, server = (
        SideCounters.from_stats(side, _counters(outcome[side]["counters"]), {}) for side in SIDES
    )
    return FlowCounters(client, server, outcomes=Outcomes.from_reply(outcome["outcomes"]))


def capture_files(output: str | None) -> dict[str, Path]:
    """Return the captures to write, by side. Raises :class:`CommandError` when they have no folder."""
    if output is None:
        return {}
    path = Path(output)
    stem = path.stem if path.suffix == ".pcap" else path.name
    files = {side: path.with_name(f"{stem}_{side[0]}.pcap") for side in ("client", "server")}
    for file in files.values():
        _output_file.checked("-o", str(file))
    return files


def _words(options: argparse.Namespace) -> list[str]:
    """Return the options of the server's binary."""
    try:
        multiplier = float(options.multiplier)
    except ValueError:
        raise bad_input(
            f"-m {options.multiplier}: flows have no packet rate; write a factor, such as 2"
        ) from None
    if options.limit is not None and not options.list:
        raise bad_input("--limit: is for streams and for --list; --flows limits the flows of each template")
    if options.queue is not None and options.rate is None:
        raise bad_input("--queue: a link without a rate has no queue; give --rate too, such as --rate 10mbps")
    words = ["--multiplier", f"{multiplier!r}", "--seed", str(options.seed), "--rtt", f"{options.rtt!r}"]
    if options.full or options.duration != FOREVER:
        duration_s = DEFAULT_DURATION_S if options.duration == FOREVER else options.duration
        words += ["--duration", f"{duration_s!r}"]
    for name in ("flows", "patience", "cores", "rate", "queue"):
        value = getattr(options, name)
        words += [f"--{name}", f"{value!r}"] if value is not None else []
    for name in ("loss", "reorder", "duplicate"):
        words += [f"--{name}", f"{getattr(options, name)!r}"]
    words += ["--mtu", str(options.mtu)]
    words += ["--ipv6"] if options.ipv6 else []
    for fault in options.fault:
        words += ["--fault", fault]
    return words


def _simulate(words: list[str], files: Mapping[str, Path], profile: Path, source: str) -> dict[str, Any]:
    command = [server_binary(), "sim-stateful", "--profile", str(profile), *words]
    for side, file in files.items():
        command += [f"--{side}-pcap", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        message = last_words(done.stderr).replace(str(profile), source)
        raise CommandError(message, exit_code_of(done.returncode))
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def text(outcome: Mapping[str, Any]) -> str:
    """Return the tables for people: what both sides did, their counters that are not 0, and the link."""
    sides = (outcome["client"], outcome["server"])
    rows = [
        [label, *(_format.count(side[name]) for side in sides)]
        for label, name in _SUMMARY
        if name in _ALWAYS or any(side[name] for side in sides)
    ]
    outcomes = Outcomes.from_reply(outcome["outcomes"])
    rows += [[label, *map(_format.count, values)] for label, values in outcomes.rows()]
    parts = [_format.table(["", "clients", "servers"], rows), ""]
    if times := _run_tables.times(outcomes):
        parts += [times, ""]
    counters = [
        [("! " if client["is_error"] else "  ") + client["name"], _number(client), _number(server)]
        for client, server in zip(sides[0]["counters"], sides[1]["counters"], strict=True)
        if client["value"] or server["value"]
    ]
    parts += [_format.table(["  counter", "clients", "servers"], counters)]
    if any(row[0].startswith("!") for row in counters):
        parts += ["! counts what does not happen where nothing disturbs"]
    if outcome["groups"]:
        parts += ["", _groups(outcome["groups"])]
    links = (outcome["link_to_server"], outcome["link_to_client"])
    rows = [
        [label, *(_format.count(link[name]) for link in links)]
        for label, name in _LINK
        if name == "frames" or any(link[name] for link in links)
    ]
    parts += ["", _format.table(["on the link", "to servers", "to clients"], rows)]
    if outcome["faults"]:
        faults = [[name, _format.count(count)] for name, count in outcome["faults"].items()]
        parts += ["", _format.table(["fault", "times"], faults)]
    parts += ["", f"It took {_format.seconds(outcome['seconds'])} of virtual time."]
    return "\n".join(parts)


def _groups(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of template groups: flows that began and ended, and bytes that each side got."""
    rows = []
    for group in groups:
        client, server = (_counters(group[side]) for side in ("client", "server"))
        began = client["tcps_connattempt"] + client["udps_connects"]
        closed = client["tcps_closed"] + client["udps_closed"]
        delivered = [side["tcps_rcvbyte"] + side["udps_rcvbyte"] for side in (client, server)]
        rows.append([group["name"], *(_format.count(value) for value in (began, closed, *delivered))])
    return _format.table(["group", "began", "ended", "clients got", "servers got"], rows)


def _counters(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {row["name"]: row["value"] for row in rows}


def _number(row: Mapping[str, Any]) -> str:
    value = row["value"]
    return _format.count(value) if isinstance(value, int) else f"{value:,.3f}"


def _summary(outcome: Mapping[str, Any]) -> str:
    client, server = outcome["client"], outcome["server"]
    delivered = client["received_bytes"] + server["received_bytes"]
    flows = client["flows"]
    return f"{flows:,} {'flow' if flows == 1 else 'flows'} ended, {delivered:,} bytes delivered."


def _json_object(
    options: argparse.Namespace,
    files: Mapping[str, Path],
    outcome: Mapping[str, Any],
    problems: Sequence[str],
) -> dict[str, Any]:
    def side(name: str) -> dict[str, Any]:
        found = dict(outcome[name])
        rows = found.pop("counters")
        found["counters"] = _counters(rows)
        found["errors"] = {row["name"]: row["value"] for row in rows if row["is_error"] and row["value"]}
        return found

    return {
        "command": "sim",
        "mode": "stateful",
        "ok": not problems,
        "problems": list(problems),
        "profile": options.profile,
        "seed": options.seed,
        "captures": {name: str(file) for name, file in files.items()},
        "seconds": outcome["seconds"],
        "client": side("client"),
        "server": side("server"),
        "groups": {
            group["name"]: {name: _counters(group[name]) for name in ("client", "server")}
            for group in outcome["groups"]
        },
        "outcomes": {f"{side}s": outcome["outcomes"][side] for side in ("client", "server")},
        "times": outcome["outcomes"]["times"],
        "link": {"to_server": outcome["link_to_server"], "to_client": outcome["link_to_client"]},
        "faults": outcome["faults"],
    }
