"""Loads from start to end, one or several at once: sampled, watched, stopped, and asked what they did.

What is the same for any kind of traffic is here: when a load has ended and how long it ran, signals, who took
its ports, load that goes on when it should have ended.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from allosaur.cli._errors import EXIT_USAGE, CommandError, brief, explained
from allosaur.cli._interrupt import Interrupt
from allosaur.cli._options import FOREVER
from allosaur.cli._steal import StealTime
from allosaur.run._load import Load, Moment, Phase, ResultT_co
from allosaur.run._result import Ran, Result

SAMPLE_INTERVAL_S = 0.25
_POLL_INTERVAL_S = 0.05
_STOP_GRACE_S = 5.0
"""A load that goes on this long after it should have ended is stopped from here."""
_READING_SHARE = 4
"""Samples are at least so many times as far apart as they take to read: many packet groups take long."""
Show = Callable[[Sequence[Moment]], None]


def drive_one(load: Load[ResultT_co], interrupt: Interrupt, show: Show) -> ResultT_co:
    """Drive one load; see :func:`drive`."""
    run = _Running(load)
    _drive([run], interrupt, show)
    return load.result(run.ran(interrupt))


def drive(loads: Sequence[Load[Result]], interrupt: Interrupt, show: Show) -> list[Result]:
    """Start what was put onto the server, watch it until it is over, and return what happened, in order.

    Each is stopped in any case, also when this raises :class:`CommandError`: when one does not start, none
    goes on.
    """
    runs = [_Running(load) for load in loads]
    _drive(runs, interrupt, show)
    return [run.load.result(run.ran(interrupt)) for run in runs]


def ran_s(asked_s: float, noticed_s: float, start_took_s: float) -> float:
    """Return how long a load ran whose end was noticed `noticed_s` after the server had confirmed its start.

    The server started it at an unknown time in the `start_took_s` that the request took. Where the duration
    that was asked for lies within these times, the load ended by itself on time, and ran exactly so long:
    the server keeps durations to the microsecond. Else it ended early, and the client's time is all there is.
    """
    return asked_s if noticed_s + start_took_s >= asked_s else noticed_s


@dataclass
class _Running:
    """A load, and what is known of its run."""

    load: Load[Result]
    phase: Phase = Phase.RUNNING
    ended_s: float | None = None
    """When nothing new began any more."""
    over_s: float | None = None
    start_took_s: float = 0.0
    """From asking for the start until its confirmation."""
    overdue: bool = False
    is_started: bool = False
    moment: Moment | None = None
    """What was shown last."""
    cut_short: str = ""
    """Why it cannot go on: somebody took its ports over, or its server is gone."""
    steal: StealTime = field(init=False)

    def __post_init__(self) -> None:
        self.steal = StealTime.of_server(self.load.host)

    @property
    def until_s(self) -> float:
        """When it should end, in seconds after its start; infinite without an end."""
        return math.inf if self.load.duration_s == FOREVER else self.load.duration_s

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to watch."""
        return self.phase is Phase.OVER or self.overdue or bool(self.cut_short)

    def start(self) -> None:
        """Start it. Raises :class:`CommandError`."""
        self.is_started = True
        asked_at_s = time.monotonic()
        with explained("the traffic did not start", EXIT_USAGE):
            self.load.start()
        self.start_took_s = time.monotonic() - asked_at_s
        self.load.readings.started()

    def check(self) -> None:
        """Raise `STLError` when it cannot go on; for use inside of `watched`."""
        from allosaur import STLError

        if why := self.load.why_lost():
            raise STLError(why)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """End the block where the load is cut short; other errors are raised, as :class:`CommandError`."""
        from allosaur import STLConnectionError, STLError

        try:
            yield
            self.check()
        except STLError as error:
            self.cut_short = self.load.why_lost() or ""
            if not self.cut_short and isinstance(error, STLConnectionError):
                self.cut_short = f"the server stopped answering at {time.strftime('%H:%M:%S')}"
            if not self.cut_short:
                doing = "the server stopped answering while the traffic ran"
                raise CommandError(f"{doing}: {brief(error)}") from error

    def look(self) -> None:
        """See how far it is."""
        self.check()
        readings = self.load.readings
        self.phase = self.load.phase(readings.elapsed_s())
        if self.ended_s is None and self.phase is not Phase.RUNNING:
            self.ended_s = ran_s(self.until_s, readings.elapsed_s(), self.start_took_s)
        last_s = self.until_s if self.ended_s is None else self.ended_s
        if self.phase is not Phase.OVER and readings.elapsed_s() > (
            last_s + self.load.linger_s + _STOP_GRACE_S
        ):
            self.overdue = True
        if self.is_done:
            self.end()

    def end(self) -> None:
        """Read the counters before anything is stopped from here."""
        self.over_s = self.load.readings.elapsed_s()
        # Who takes a port over stops its traffic: what is counted from then on is not ours.
        self.check()
        self.load.sample()

    def ran(self, interrupt: Interrupt) -> Ran:
        """Return how it ran."""
        over_s = self.load.readings.samples[-1].time_s if self.over_s is None else self.over_s
        elapsed_s = self.ended_s
        if elapsed_s is None:
            is_late = self.overdue or bool(self.cut_short)
            elapsed_s = over_s if is_late else ran_s(self.until_s, over_s, 0.0)
        return Ran(
            duration_asked_s=self.load.duration_s,
            elapsed_s=elapsed_s,
            closing_s=max(over_s - elapsed_s, 0.0),
            overdue=self.overdue,
            exit_code=interrupt.exit_code,
            cut_short=self.cut_short,
            steal=self.steal.told() if self.load.has_missed else [],
        )

    def settle(self) -> None:
        """Read the counters for the last time."""
        if not self.cut_short:
            with explained("cannot read the counters"):
                self.load.settle(self.ran_s)

    @property
    def ran_s(self) -> float:
        """How long it ran, when it is over."""
        return self.ended_s if self.ended_s is not None else self.over_s or 0.0

    def stop(self) -> None:
        """Stop it, unless somebody else has it now."""
        if self.is_started and not self.cut_short:
            with explained("cannot stop the traffic"):
                self.load.stop()


def _drive(runs: Sequence[_Running], interrupt: Interrupt, show: Show) -> None:
    with explained("cannot read the counters"):
        for run in runs:
            run.load.open()
    try:
        for run in runs:
            with told_of(run.load.name, len(runs) > 1):
                run.start()
        _watch(runs, interrupt, show)
    finally:
        _stop(runs)
    for run in runs:
        run.settle()


@contextlib.contextmanager
def told_of(name: str, is_one_of_several: bool) -> Iterator[None]:
    """Say of which of several loads an error inside the block is."""
    try:
        yield
    except CommandError as error:
        if not is_one_of_several:
            raise
        raise CommandError(f"{name}: {error}", error.exit_code) from error


def _watch(runs: Sequence[_Running], interrupt: Interrupt, show: Show) -> None:
    """Sample until all loads are over, a signal comes, or one of them cannot go on."""
    next_sample_s, begun_s = SAMPLE_INTERVAL_S, time.monotonic()
    while not interrupt:
        for run in runs:
            if not run.is_done:
                with run.watched():
                    run.look()
        if any(run.cut_short for run in runs) or all(run.is_done for run in runs):
            break
        now_s = time.monotonic() - begun_s
        if now_s >= next_sample_s:
            _sample(runs, show)
            took_s = time.monotonic() - begun_s - now_s
            interval_s = max(SAMPLE_INTERVAL_S, _READING_SHARE * took_s)
            next_sample_s += interval_s * (1 + max(now_s - next_sample_s, 0) // interval_s)
        interrupt.sleep(_POLL_INTERVAL_S)
    for run in runs:
        if not run.is_done:
            with run.watched():
                run.end()


def _sample(runs: Sequence[_Running], show: Show) -> None:
    for run in runs:
        if run.is_done and run.moment is not None:
            continue
        now_s = run.load.readings.elapsed_s()
        with run.watched():
            run.load.sample()
        run.moment = run.load.moment(now_s, run.phase)
    show([run.moment for run in runs if run.moment is not None])


def _stop(runs: Sequence[_Running]) -> None:
    """Stop all, also when one of them cannot be; the first error is raised."""
    errors = []
    for run in runs:
        try:
            run.stop()
        except CommandError as error:
            errors.append(error)
    if errors:
        raise errors[0]
