"""A plan beside the truth: the profile at a part of the target on ports in memory, and what it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allosaur.cli import _profile
from allosaur.cli._errors import brief, explained
from allosaur.cli.flows._measured import Generator, ran_s_of_data_threads
from allosaur.cli.plan._load import Load
from allosaur.run.flows._access import load_file

CORE_SHARE = 0.5
"""A core that has less to do with flows wakes up often for little; one that has more may miss some."""
_MORE_THAN_FITS = 2.0
"""A thread that sends packets is awake all the time: what one takes is seen when it sends all that it can."""
CARRIED_MIN = 0.97
_WARM_S = 1.5
_QUIET_SHARE = 0.05
"""More time than this in which others had the CPU, and it is not the plan that was wrong."""


@dataclass(frozen=True)
class Checked:
    """What was predicted for a rate, and what was used."""

    rate: float
    """Flows or packets a second that were offered."""
    reached: float
    predicted_cpu: float
    """Of one core, for what was reached."""
    used_cpu: float
    is_carried: bool
    """Whether what should fit on a core was reached."""
    waited: float = 0.0
    """The share of the time in which the thread wanted to run and others did."""
    steal: float = 0.0
    """What the host of a virtual machine took away, from 0 to 1."""

    @property
    def is_failed(self) -> bool:
        """Whether a core did less than the plan says, and nobody else is known to be the reason."""
        return not self.is_carried and max(self.waited, self.steal) < _QUIET_SHARE

    @property
    def error(self) -> float:
        """How much more was predicted than was used: 0.1 is ten percent."""
        return self.predicted_cpu / self.used_cpu - 1 if self.used_cpu else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return {**asdict(self), "error": self.error}


def rate_to_check(load: Load, rate: float, unit_ns: float) -> float:
    """Return what to offer: of flows the target, or what one core carries well if that is less."""
    if load.unit == "packet":
        return _MORE_THAN_FITS * 1e9 / unit_ns
    return min(rate, CORE_SHARE * 1e9 / unit_ns)


def checked(
    path: Path, tunables: Mapping[str, Any], load: Load, rate: float, unit_ns: float, seconds: float
) -> Checked:
    """Run a profile at a rate for some seconds on one core. Raises :class:`CommandError`."""
    with explained("the check cannot run"):
        try:
            if load.unit == "flow":
                return _flows(path, tunables, load, rate, unit_ns, seconds)
            return _streams(path, tunables, rate, unit_ns, seconds)
        except RuntimeError as error:
            from allosaur import STLError

            raise STLError(brief(error)) from error


def _flows(
    path: Path, tunables: Mapping[str, Any], load: Load, rate: float, unit_ns: float, seconds: float
) -> Checked:
    with Generator() as generator:
        generator.start(load_file(path, tunables), rate / load.rate)
        window = generator.measure(seconds, _WARM_S)
    reached = window.opened / window.seconds
    is_carried = window.opened >= CARRIED_MIN * window.offered
    return Checked(
        rate,
        reached,
        reached * unit_ns / 1e9,
        window.cpu,
        is_carried,
        window.waited_s / window.seconds,
        window.steal,
    )


def _streams(path: Path, tunables: Mapping[str, Any], rate: float, unit_ns: float, seconds: float) -> Checked:
    from allosaur.cli._steal import StealTime
    from allosaur.server import LocalServer

    with LocalServer(ports=["memory"]) as server, server.client() as client:
        client.reset()
        client.add_streams(list(_profile.load(path, 0, 0, tunables).get_streams()), ports=[0])
        client.start(ports=[0], mult=f"{rate:.0f}pps", force=True)
        time.sleep(_WARM_S)
        steal, moments = StealTime(), []
        for wait_s in (seconds, 0.0):
            ran_s = ran_s_of_data_threads(server.pid or 0)
            moments.append((time.monotonic(), int(client.get_stats()[0]["opackets"]), ran_s))
            time.sleep(wait_s)
    (from_s, first, ran_from_s), (to_s, last, ran_to_s) = moments
    reached = (last - first) / (to_s - from_s)
    used = (ran_to_s - ran_from_s) / (to_s - from_s)
    return Checked(rate, reached, reached * unit_ns / 1e9, used, last > first, steal=steal.share())
