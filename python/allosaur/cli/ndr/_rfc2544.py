"""What RFC 2544 measures beside throughput, with streams: frame loss, back-to-back, recovery, reset."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from allosaur.cli import _format
from allosaur.cli._errors import bad_input
from allosaur.cli.ndr._bench import Bench
from allosaur.cli.ndr._cases import BACK_TO_BACK, FRAME_LOSS, RECOVERY, RESET
from allosaur.cli.ndr._progress import percent
from allosaur.cli.ndr._result import CaseResult, trial_json
from allosaur.cli.ndr._streams import StreamSubject
from allosaur.run import Moment
from allosaur.run.streams._progress import StreamMoment
from allosaur.run.streams._result import StreamResult
from allosaur.search import NDR, Journal, SearchPlan, Trial, find

Measure = Callable[..., Trial]
StreamBench = Bench[StreamResult]
_STEP = 0.1
_BURST_MAX_S = 2.0
_BURST_MIN_S = 1e-4
_OVERLOAD = 1.1


@dataclass(frozen=True)
class Sample:
    """What all ports had counted at a time of the traffic."""

    time_s: float
    received: int
    lost: int
    """Packets that were sent until the sample before, and have not arrived."""


def check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if options.reset_command and RESET not in options.tests:
        raise bad_input("--reset-command is for --tests reset")
    if RESET in options.tests and not options.reset_command and not sys.stderr.isatty():
        raise bad_input("--tests reset: nobody is there to reset the device; give --reset-command COMMAND")


def run(result: CaseResult, bench: StreamBench, options: argparse.Namespace, measure: Measure) -> None:
    """Make the tests that are wanted, after the search. What was found goes into the result, test by test."""
    for name in options.tests:
        if name == FRAME_LOSS:
            result.tests[name] = _frame_loss(result, measure)
        elif name == BACK_TO_BACK:
            result.tests[name] = _back_to_back(result, options.repeat, measure)
        elif name == RECOVERY:
            result.tests[name] = _recovery(result, bench)
        else:
            result.tests[name] = _reset(result, bench, options)


def _frame_loss(result: CaseResult, measure: Measure) -> dict[str, Any]:
    """Measure the loss at 100 %, 90 % and so on of the highest load.

    RFC 2544, section 26.3: "This sequence SHOULD be continued (at reducing 10% intervals) until there are two
    successive trials in which no frames are lost."
    """
    trials: list[Trial] = []
    for step in range(round(1 / _STEP)):
        load = result.scale.load_max * (1 - _STEP * step)
        trials.append(measure(load, result.plan.trial_s, f"frame loss at {result.scale.said(load)}"))
        if len(trials) > 1 and not trials[-1].lost and not trials[-2].lost:
            break
    told = ", ".join(f"{percent(one.loss_ratio)} of {result.scale.said(one.load)}" for one in trials)
    return {"summary": f"frame loss: {told}", "trials": [trial_json(one) for one in trials]}


def _back_to_back(result: CaseResult, repeat: int, measure: Measure) -> dict[str, Any]:
    """Find the longest burst at the highest load of which nothing is lost, and the buffer that it implies.

    RFC 2544, section 26.4: "The back-to-back value is the number of frames in the longest burst that the DUT
    will handle without the loss of any frames." RFC 9004, section 6.4, takes off the buffer time what the
    device forwards meanwhile.
    """
    rate = result.scale.load_max

    def burst(frames: float, _: float) -> Trial:
        one = measure(rate, frames / rate, f"a burst of {frames:,.0f} frames")
        return Trial(frames, one.duration_s, one.offered, one.lost, one.failures, one.took_s)

    plan = SearchPlan(
        max(rate * _BURST_MIN_S, 2.0),
        rate * _BURST_MAX_S,
        [NDR],
        "binary",
        result.plan.precision,
        _BURST_MAX_S,
        _BURST_MAX_S,
    )
    longest: list[float] = []
    for _ in range(repeat):
        bounds, why = find(plan, Journal(lambda load, s: _as_long(burst(load, s), s)))
        if why or bounds[0].lower is None:
            return {"summary": "back-to-back: even the shortest burst lost frames", "frames": None}
        if bounds[0].upper is None:
            text = f"back-to-back: bursts of {_BURST_MAX_S:g} s at {result.scale.said(rate)} pass whole"
            return {"summary": f"{text}: there is no limit to find", "frames": None}
        longest.append(bounds[0].lower)
    frames = sum(longest) / len(longest)
    implied_s = frames / rate
    through = (result.first.lower if result.first else None) or 0.0
    corrected_s = implied_s - implied_s * through / rate
    return {
        "summary": f"back-to-back: {frames:,.0f} frames at {result.scale.said(rate)}, a buffer of "
        f"{_format.seconds(corrected_s)}",
        "frames": frames,
        "frames_min": min(longest),
        "frames_max": max(longest),
        "repeated": repeat,
        "implied_buffer_s": implied_s,
        "corrected_buffer_s": corrected_s,
    }


def _as_long(trial: Trial, duration_s: float) -> Trial:
    """Let a burst count for the search as if it had lasted as long as all others."""
    return Trial(trial.load, duration_s, trial.offered, trial.lost, trial.failures, trial.took_s)


def _recovery(result: CaseResult, bench: StreamBench) -> dict[str, Any]:
    """Overload the device, halve the load, and see when the last frame is lost.

    RFC 2544, section 26.5: "Send a stream of frames at a rate 110% of the recorded throughput rate or the
    maximum rate for the media, whichever is lower", then "At Timestamp A reduce the frame rate to 50% of the
    above rate and record the time of the last frame lost (Timestamp B)."
    """
    through = result.first.lower if result.first else None
    if through is None:
        return {"summary": "recovery: there is no throughput to overload", "seconds": None}
    load = min(through * _OVERLOAD, result.scale.load_max)
    overload_s = result.plan.trial_s
    reduced: list[float] = []

    def reduce(now_s: float) -> None:
        assert isinstance(bench.subject, StreamSubject), "only streams have these tests"
        bench.subject.change(load / 2)
        reduced.append(now_s)

    samples = _watched(bench, load, 2 * overload_s, overload_s, reduce)
    return recovered(samples, reduced[0] if reduced else None, load)


def recovered(samples: Sequence[Sample], reduced_s: float | None, load: float) -> dict[str, Any]:
    """Return how long after `reduced_s` the last frame was lost, as far as samples tell."""
    before = [one for one in samples if reduced_s is not None and one.time_s <= reduced_s]
    if reduced_s is None or not before or before[-1].lost == 0:
        text = "recovery: nothing was lost at 110 % of the throughput: there is nothing to recover from"
        return {"summary": text, "seconds": None, "load": load}
    last_s = reduced_s
    for earlier, later in pairwise(samples):
        if later.time_s > reduced_s and later.lost > earlier.lost:
            last_s = later.time_s
    step_s = _step_s(samples)
    took_s = max(last_s - reduced_s, 0.0)
    return {
        "summary": f"recovery: {_format.seconds(took_s)} after the load was halved the last frame was lost "
        f"(read every {_format.seconds(step_s)})",
        "seconds": took_s,
        "resolution_s": step_s,
        "load": load,
    }


def _reset(result: CaseResult, bench: StreamBench, options: argparse.Namespace) -> dict[str, Any]:
    """Reset the device at its throughput, and see how long it forwards nothing.

    RFC 2544, section 26.6: "Monitor the output until frames begin to be forwarded and record the time that
    the last frame (Timestamp A) of the initial stream and the first frame of the new stream (Timestamp B)
    are received."
    """
    through = result.first.lower if result.first else None
    if through is None:
        return {"summary": "reset: there is no throughput to send at", "seconds": None}
    problems: list[str] = []

    def act(_: float) -> None:
        if not options.reset_command:
            print("Reset the device now.", file=sys.stderr, flush=True)
            return
        # Beside the traffic: the counters must be read while it runs.
        threading.Thread(target=_execute, args=(options.reset_command, problems), daemon=True).start()

    within_s = options.reset_within
    samples = _watched(bench, through, within_s, min(1.0, within_s / 4), act)
    found = outage(samples)
    if problems:
        found["summary"] += f"; {problems[0]}"
    return found


def _watched(
    bench: StreamBench, load: float, duration_s: float, at_s: float, act: Callable[[float], None]
) -> list[Sample]:
    """Send a load, call `act` once when the traffic has run `at_s`, and give what was read meanwhile."""
    samples: list[Sample] = []
    acted: list[float] = []

    def show(moment: Moment) -> None:
        assert isinstance(moment, StreamMoment), "only streams have these tests"
        received = sum(one.rx_packets for one in moment.counters.values())
        samples.append(Sample(moment.elapsed_s, received, sum(one or 0 for one in moment.lost.values())))
        if not acted and moment.elapsed_s >= at_s:
            acted.append(moment.elapsed_s)
            act(moment.elapsed_s)

    bench.drive(load, duration_s, show)
    return samples


def _execute(command: str, problems: list[str]) -> None:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    if done.returncode:
        problems.append(f"`{command}` ended with {done.returncode}: {done.stderr.strip()[:200]}")


def outage(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return between which samples nothing arrived."""
    stopped_s = back_s = None
    for earlier, later in pairwise(samples):
        arrives = later.received > earlier.received
        if stopped_s is None and not arrives and earlier.received:
            stopped_s = earlier.time_s
        elif stopped_s is not None and arrives:
            back_s = earlier.time_s
            break
    if stopped_s is None:
        return {"summary": "reset: the device forwarded all the time", "seconds": None}
    if back_s is None:
        return {
            "summary": "reset: the device did not forward again; give a longer --reset-within",
            "seconds": None,
        }
    step_s = _step_s(samples)
    return {
        "summary": f"reset: for {_format.seconds(back_s - stopped_s)} nothing was forwarded (read every "
        f"{_format.seconds(step_s)})",
        "seconds": back_s - stopped_s,
        "resolution_s": step_s,
    }


def _step_s(samples: Sequence[Sample]) -> float:
    steps = [later.time_s - earlier.time_s for earlier, later in pairwise(samples)]
    return max(steps, default=0.0)
