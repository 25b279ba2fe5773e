"""What `allosaur ndr` does, from the words of the command line to the result."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allosaur.cli import _again, _output_file, _profile, _result, _run
from allosaur.cli._errors import EXIT_FAILED, EXIT_OK, bad_input
from allosaur.cli._interrupt import Interrupt
from allosaur.cli.ndr import _csv, _report, _rfc2544, _text
from allosaur.cli.ndr._bench import Bench, Case, Scale, Subject
from allosaur.cli.ndr._cases import cases
from allosaur.cli.ndr._flows import FlowSubject
from allosaur.cli.ndr._plugin import PlugIn
from allosaur.cli.ndr._progress import SearchProgress, searching
from allosaur.cli.ndr._result import CaseResult, search_json
from allosaur.cli.ndr._streams import StreamSubject
from allosaur.report._page import write_report
from allosaur.run import _thresholds
from allosaur.run._kinds import kind_of
from allosaur.search import Goal, Journal, SearchPlan, Stopped, Trial, find

_SUBJECTS: Mapping[str, type[Subject[Any]]] = {one.mode: one for one in (StreamSubject, FlowSubject)}
"""The kinds of traffic that a search may have, by the words of `allosaur.run._kinds`."""


def run(options: argparse.Namespace) -> int:
    """Do what `allosaur ndr` says; return the exit code."""
    subject = _subject_of(Path(options.profile))
    _check(options, subject)
    files = _Files(options)
    plugin = None
    if options.plugin is not None:
        plugin = PlugIn(Path(options.plugin), _profile.merged(options.plugin_tunable))
    wanted = cases(options)
    for case in wanted:
        subject.try_loading(case, options)
    results: list[CaseResult] = []
    with Interrupt() as interrupt, subject.connect(options) as client:
        bench: Bench[Any] = Bench(subject(client, options), interrupt)
        with searching() as progress:
            for case in wanted:
                results.append(_one(bench, case, options, progress, plugin))
                if bench.exit_code is not None:
                    break
    return _give(options, bench, results, files)


def _subject_of(path: Path) -> type[Subject[Any]]:
    found = _SUBJECTS.get(kind_of(path).mode)
    if found is None:
        raise bad_input(
            f"profile {path}: emulates clients, and sends no traffic: `allosaur emu load` is for it"
        )
    return found


def _check(options: argparse.Namespace, subject: type[Subject[Any]]) -> None:
    """Refuse what cannot be, before anything is started."""
    subject.check(options)
    _rfc2544.check(options)
    options.criteria = _thresholds.read(options.fail_if, subject.metrics)
    options.first_trial = min(options.first_trial, options.duration)
    _plan(options, Scale("pps", 2.0, 1.0))


def _plan(options: argparse.Namespace, scale: Scale) -> SearchPlan:
    try:
        return SearchPlan(
            scale.load_min,
            scale.load_max,
            goals(options.loss),
            options.search,
            options.precision,
            options.duration,
            options.first_trial,
            options.sum or 0.0,
            options.exceed,
        )
    except ValueError as error:
        raise bad_input(str(error)) from error


def goals(losses: Sequence[float]) -> list[Goal]:
    """Return the goals that `--loss` means: no loss is NDR, some is PDR."""
    some = [loss for loss in losses if loss]
    return [
        Goal("ndr", 0.0) if not loss else Goal("pdr" if len(some) == 1 else f"pdr {100 * loss:g} %", loss)
        for loss in losses
    ]


class _Files:
    """The files that are written at the end; whether they can be is asked before anything starts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out = self._checked("--out", options.out)
        self.csv = self._checked("--csv", options.csv)
        self.report = self._checked("--report", options.report)

    @staticmethod
    def _checked(option: str, name: str | None) -> Path | None:
        return None if name is None else _output_file.checked(option, name)


def _one(
    bench: Bench[Any],
    case: Case,
    options: argparse.Namespace,
    progress: SearchProgress,
    plugin: PlugIn | None,
) -> CaseResult:
    """Search the limits of one case, and measure what is wanted beside."""
    begun_s = time.monotonic()
    scale = bench.put(case)
    plan = _plan(options, scale)
    progress.case(case.name, len(options.points) * plan.trial_s, bool(options.tests))
    result = CaseResult(case, scale, plan)

    def measure(load: float, duration_s: float, what: str = "") -> Trial:
        progress.begins(what or scale.said(load), duration_s)
        one = bench.trial(load, duration_s, progress.runs)
        result.measured.append(one)
        return one

    def trial(load: float, duration_s: float) -> Trial:
        if plugin is not None:
            plugin.before(load, scale)
        return measure(load, duration_s)

    def observe(one: Trial) -> None:
        progress.ends(plan, journal, scale)
        if plugin is not None and plugin.after(one, scale, bench.server_counters):
            result.is_stopped_on_purpose = True
            raise Stopped("the plug-in ended it")

    journal = Journal(trial, options.max_trials, observe)
    try:
        if options.warm_up:
            measure(scale.load_max, options.warm_up, "to warm up")
        result.bounds, result.stopped = find(plan, journal)
        if not result.stopped or result.is_stopped_on_purpose:
            _points(result, options.points, measure, progress)
            _rfc2544.run(result, bench, options, measure)
    except Stopped as stop:
        result.stopped = str(stop)
    result.trials = journal.trials
    result.seconds = time.monotonic() - begun_s
    return result


def _points(result: CaseResult, shares: Sequence[float], measure: Any, progress: SearchProgress) -> None:
    """Make trials at shares of the first limit."""
    first = result.first
    if first is None or first.lower is None:
        return
    for number, share in enumerate(shares):
        progress.remains((len(shares) - number) * result.plan.trial_s)
        load = first.lower * share
        trial = measure(load, result.plan.trial_s, f"{100 * share:g} % of {first.goal.name}")
        result.points.append((share, trial))
    progress.remains(None)


def _give(
    options: argparse.Namespace, bench: Bench[Any], results: Sequence[CaseResult], files: _Files
) -> int:
    """Write and print what was found; return the exit code."""
    problems = [text for one in results if (text := _text.problem(one)) is not None]
    ok = not problems
    verdict = "; ".join(problems) if problems else "the limits were found"
    fields = _json_object(options, bench, results, ok, verdict)
    rendered = json.dumps(fields, indent=2)
    if files.out is not None:
        _output_file.write("--out", files.out, rendered + "\n")
    if files.csv is not None:
        _output_file.write("--csv", files.csv, _csv.text(results))
    if files.report is not None:
        content = _report.report(options, results, ok, verdict, problems)
        with _output_file.writing_report(files.report):
            write_report(files.report, content)
    print(rendered if options.json else _text.text(results, ok, verdict))
    if bench.exit_code is not None:
        return bench.exit_code
    return EXIT_OK if ok else EXIT_FAILED


def _json_object(
    options: argparse.Namespace, bench: Bench[Any], results: Sequence[CaseResult], ok: bool, verdict: str
) -> dict[str, Any]:
    return {
        **_result.heading("ndr"),
        "mode": bench.subject.mode,
        "profile": options.profile,
        "tunables": _profile.merged(options.tunable),
        "server": _run.server_name(options),
        "ports": list(bench.subject.ports),
        "search": search_json(
            results[0].plan,
            {
                "criteria": [one.text for one in options.criteria],
                "missed_allowed": options.missed,
                "warm_up_s": options.warm_up,
                "pause_s": options.pause,
                "latency_pps": options.latency,
                "trials_max": options.max_trials,
                "plugin": options.plugin,
            },
        ),
        "cases": [one.to_json() for one in results],
        "interrupted": bench.exit_code is not None,
        "command_line": _again.command(options),
        "ok": ok,
        "verdict": verdict,
    }
