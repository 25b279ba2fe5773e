"""How fast a CPU of this machine is now, by a loop of fixed length that runs on it again and again.

A virtual machine's host may slow it down by a half, without a trace in what the guest's kernel counts as
run, waited or stolen. The loop is counted by the CPU time that it takes, so who runs beside it does not
count, but for what it shares of the caches.
"""

from __future__ import annotations

import bisect
import math
import os
import statistics
import threading
import time
from types import TracebackType

#: Some half a millisecond: 1 % of a CPU.
STEPS = 20_000
EVERY_S = 0.05
#: Loops that are taken together, so that one that was interrupted says nothing by itself.
TOGETHER = 5


class SpeedProbe:
    """Runs the loop on a CPU while the ``with`` block lasts."""

    def __init__(self, cpu: int) -> None:
        self._cpu = cpu
        self._loops: list[tuple[float, float]] = []
        """When each ended, and the CPU time that it took, both in seconds."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> SpeedProbe:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def loop_s(self, since_s: float) -> float:
        """Return the CPU time of a loop, the mean of those since a moment of the monotonic clock."""
        if not (loops := self._since(since_s)):
            raise RuntimeError(f"CPU {self._cpu} ran no loop in {time.monotonic() - since_s:.1f} s")
        return statistics.fmean(loops)

    def longest_s(self, since_s: float) -> float:
        """Return the same of the slowest quarter of a second since then; infinity where the CPU ran none."""
        if not (loops := self._since(since_s)):
            return math.inf
        windows = (loops[at : at + TOGETHER] for at in range(max(len(loops) - TOGETHER + 1, 1)))
        return max(map(statistics.fmean, windows))

    def _since(self, since_s: float) -> list[float]:
        return [loop_s for _, loop_s in self._loops[bisect.bisect_left(self._loops, (since_s,)) :]]

    def _run(self) -> None:
        os.sched_setaffinity(threading.get_native_id(), {self._cpu})
        while not self._is_over.wait(EVERY_S):
            began_s = time.thread_time()
            total = 0
            for number in range(STEPS):
                total += number
            self._loops.append((time.monotonic(), time.thread_time() - began_s))
