"""`allosaur run`: profiles of any kind, on one server at once, and what came of them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allosaur.cli import _again, _output_file, _profile, _run
from allosaur.cli._interrupt import Interrupt
from allosaur.report._model import Report
from allosaur.report._page import write_report
from allosaur.run import _loads, _summary, _thresholds
from allosaur.run._drive import drive, told_of
from allosaur.run._load import Load
from allosaur.run._progress import progress
from allosaur.run._registry import Registry
from allosaur.run._result import Result, Verdict
from allosaur.run._server import server_of
from allosaur.run._thresholds import Known, Thresholds
from allosaur.run._verdict import exit_code, joined, judge_by
from allosaur.server import LocalServer

Loads = Mapping[str, Load[Any]]


@dataclass(frozen=True)
class OwnServer:
    """A server that is started for one run: its configuration file, and further words for it."""

    config: str
    words: Sequence[str]


@dataclass(frozen=True)
class _Judged:
    """What came of all loads, by name."""

    results: Mapping[str, Result]
    verdicts: Mapping[str, Verdict]
    verdict: Verdict
    hints: Sequence[str]

    @property
    def is_one(self) -> bool:
        return len(self.results) == 1


def run(options: argparse.Namespace, own: OwnServer | None = None) -> int:
    """Do what `allosaur run` says; return the exit code."""
    report = None if options.report is None else _output_file.checked("--report", options.report)
    # Before anything is started: a profile that does not load needs no server.
    loads = _loads.read(options, None if own is None else "stateful")
    known = {name: Known(load.metrics, load.metric) for name, load in loads.items()}
    thresholds = _thresholds.read_of(options.fail_if, known)
    server = _local_server(options, loads, own) if options.local else None
    with Interrupt() as interrupt, server_of(options, server) as where, contextlib.ExitStack() as stack:
        for load in loads.values():
            with told_of(load.name, len(loads) > 1):
                stack.enter_context(load.connect(where))
        registry = Registry(_loads.client_of(loads))
        registry.check(thresholds.get("", Thresholds()))
        _set_up(loads, thresholds, interrupt, stack)
        registry.begin()
        with progress(_titles(loads)) as show:
            results = drive(list(loads.values()), interrupt, show)
        if not any(one.cut_short for one in results):
            registry.end()
    judged = _judge(loads, dict(zip(loads, results, strict=True)), thresholds, registry)
    if report is not None:
        with _output_file.writing_report(report):
            write_report(report, _report(options, loads, judged))
    _give(options, loads, judged)
    return exit_code(results, judged.verdict.ok)


def _set_up(
    loads: Loads, thresholds: Mapping[str, Thresholds], interrupt: Interrupt, stack: contextlib.ExitStack
) -> None:
    """Check all of them before anything of one is put onto the server. Raises :class:`CommandError`.

    At its end the stack takes from the server what loads put there.
    """
    _loads.refuse_shared_claims(loads)
    for load in loads.values():
        with told_of(load.name, len(loads) > 1):
            load.check(thresholds[load.name])
    for load in sorted(loads.values(), key=lambda one: one.order):
        stack.callback(_clear, load)
        with told_of(load.name, len(loads) > 1):
            load.put(interrupt)


def _clear(load: Load[Any]) -> None:
    with contextlib.suppress(Exception):
        # Only tidying: the result stands, and the next run clears what it needs anyway.
        load.clear()


def _judge(
    loads: Loads,
    results: Mapping[str, Result],
    thresholds: Mapping[str, Thresholds],
    registry: Registry,
) -> _Judged:
    own = thresholds.get("", Thresholds())
    of_server = registry.document(own)
    is_cut_short = any(one.cut_short for one in results.values())
    if len(results) == 1:
        ((name, result),) = results.items()
        both = Thresholds([*thresholds[name], *own])
        verdict = judge_by(both, result, {**_summary.document(result), **of_server})
        verdicts = {name: verdict}
    else:
        verdicts = {
            name: judge_by(thresholds[name], result, _summary.document(result))
            for name, result in results.items()
        }
        verdict = joined(verdicts, own.check(None if is_cut_short else of_server))
    shown = tuple(name for load in loads.values() for name in load.shown_metrics)
    ports = {port for load in loads.values() for port in load.used_ports}
    return _Judged(results, verdicts, verdict, registry.grown_errors(shown, ports))


def _local_server(options: argparse.Namespace, loads: Loads, own: OwnServer | None) -> LocalServer:
    kinds = {load.kind for load in loads.values()}
    stateful = kinds == {"stateful"} and len(loads) == 1
    if own is not None:
        words = [word for word in own.words if word != "--stateful"]
        return LocalServer(config=own.config, options=words, stateful=stateful)
    ports = _run.local_ports(options, max(load.port_count for load in loads.values()))
    emu = "emulation" in kinds
    return LocalServer(ports=ports, cores=options.cores, stateful=stateful, emu=emu)


def _titles(loads: Loads) -> list[str]:
    return [Path(load.profile).name if len(loads) == 1 else name for name, load in loads.items()]


def _give(options: argparse.Namespace, loads: Loads, judged: _Judged) -> None:
    """Print the result, and write its files: of one load its document, of several one of each inside."""
    server = {"server": _run.server_name(options)}
    documents = {
        name: {
            "tunables": _profile.merged(_loads.tunables_of(options, name)),
            **loads[name].asked(),
            **_summary.document(result, judged.verdicts[name]),
        }
        for name, result in judged.results.items()
    }
    if judged.is_one:
        ((name, result),) = judged.results.items()
        hints = [*documents[name]["hints"], *judged.hints]
        text = _summary.text(result, judged.verdict, judged.hints)
        _run.give(options, loads[name].kind, text, {**server, **documents[name], "hints": hints})
        return
    of_loads = {
        name: {"kind": loads[name].kind, "mode": loads[name].kind, "profile": loads[name].profile, **document}
        for name, document in documents.items()
    }
    fields = {
        "tunables": _profile.merged(options.tunable),
        **server,
        **_summary.of_all(list(judged.results.values())),
        "loads": of_loads,
        "warnings": [],
        "hints": list(judged.hints),
        **judged.verdict.to_json(),
    }
    text = _summary.text_of_several(judged.results, judged.verdicts, judged.verdict, judged.hints)
    _run.give(options, "several", text, fields)


def _report(options: argparse.Namespace, loads: Loads, judged: _Judged) -> Report:
    results, verdict = judged.results, judged.verdict
    parts = []
    for name, result in results.items():
        path = Path(loads[name].profile)
        title = path.stem if judged.is_one else name
        parts.append(replace(result.part(judged.verdicts[name]), name=title, profile=_run.source(path)))
    asked = "; ".join(one.asked if judged.is_one else f"{name}: {one.asked}" for name, one in results.items())
    ran = max((one.ran for one in results.values()), key=len)
    own = [] if judged.is_one else [one for one in verdict.checks() if _thresholds.REGISTRY in one.what]
    return Report(
        " + ".join(_titles(loads)),
        f"{verdict.summary}.",
        verdict.ok,
        _run.facts(options, asked, options.duration, ran),
        parts,
        own,
        reproduce=[_again.command(options)],
        notes=[f"Hint: {hint}" for hint in judged.hints],
    )
