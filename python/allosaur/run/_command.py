"""`allosaur run`: profiles of any kind, on one server at once, and what came of them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allosaur.cli import _again, _profile, _report_file, _run
from allosaur.cli._interrupt import Interrupt
from allosaur.report import Report, write_report
from allosaur.run import _summary, _thresholds
from allosaur.run._asked import Asked
from allosaur.run._drive import drive
from allosaur.run._kinds import kind_of
from allosaur.run._load import Load
from allosaur.run._progress import progress
from allosaur.run._result import Result
from allosaur.run._server import server_of
from allosaur.run._verdict import Verdict, exit_code, judge_by
from allosaur.server import LocalServer


@dataclass(frozen=True)
class OwnServer:
    """A server that is started for one run: its configuration file, and further words for it."""

    config: str
    words: Sequence[str]


def run(options: argparse.Namespace, own: OwnServer | None = None) -> int:
    """Do what `allosaur run` says; return the exit code."""
    path = Path(options.profile)
    report = _report_file.checked(options.report)
    # Before anything is started: a profile that does not load needs no server.
    load = kind_of(path).read(Asked(options, path, path.stem, options.ports, options.multiplier))
    thresholds = _thresholds.read(options.fail_if, load.metrics)
    server = _local_server(options, load, own) if options.local else None
    with Interrupt() as interrupt, server_of(options, server) as where, load.connect(where):
        load.check(thresholds)
        load.put(interrupt)
        with progress([path.name]) as show:
            (result,) = drive([load], interrupt, show)
        with contextlib.suppress(Exception):
            # Only tidying: the result stands, and the next run clears what it needs anyway.
            load.clear()
    verdict = judge_by(thresholds, result, _summary.document(result))
    if report is not None:
        with _report_file.writing(report):
            write_report(report, _report(options, path, result, verdict))
    fields = {
        "tunables": _profile.merged(options.tunable),
        "server": _run.server_name(options),
        **load.asked(),
        **_summary.document(result, verdict),
    }
    _run.give(options, load.kind, _summary.text(result, verdict), fields)
    return exit_code([result], verdict.ok)


def _local_server(options: argparse.Namespace, load: Load[Any], own: OwnServer | None) -> LocalServer:
    stateful = load.kind == "stateful"
    if own is not None:
        words = [word for word in own.words if word != "--stateful"]
        return LocalServer(config=own.config, options=words, stateful=stateful)
    ports = _run.local_ports(options, load.port_count)
    return LocalServer(ports=ports, cores=options.cores, stateful=stateful)


def _report(options: argparse.Namespace, path: Path, result: Result, verdict: Verdict) -> Report:
    part = replace(result.part(verdict), name=path.stem, profile=_run.source(path))
    facts = _run.facts(options, result.asked, result.duration_asked_s, result.ran)
    again = [_again.command(options)]
    return Report(path.name, f"{verdict.summary}.", verdict.ok, facts, [part], reproduce=again)
