"""How much is lost while packets are under way: they are sent and not received, as lost ones are.

What is under way takes as long as the link does, whatever was sent; what is lost grows. So the shortest time
in which as many were sent as are missing, ever seen, is taken for the time on the way, and what was sent in
such a time is taken off. At a constant rate that leaves the losses of all but the first second.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from allosaur.report._streams import Direction

_FIRST_S = 1.0
"""Before, nobody can tell what is lost from what a link with such a delay has not delivered yet."""


@dataclass(frozen=True)
class _Sample:
    time_s: float
    sent: int
    missing: int
    rate_pps: float
    """Since the sample before."""


@dataclass
class LiveLoss:
    """What one port lost, sample by sample."""

    _samples: deque[_Sample] = field(default_factory=lambda: deque([_Sample(0.0, 0, 0, 0.0)]))
    """Those of the last second, and one before."""
    _way_s: float = float("inf")
    """The time on the way, as far as it is known."""

    def take(self, now_s: float, counted: Direction) -> int | None:
        """Return what is lost now that this was counted; `None` while nobody can know."""
        if counted.lost_packets is None:
            return None
        last = self._samples[-1]
        passed_s = max(now_s - last.time_s, 1e-9)
        rate_pps = max(counted.sent_packets - last.sent, 0) / passed_s
        sample = _Sample(now_s, counted.sent_packets, counted.lost_packets, rate_pps)
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].time_s <= now_s - _FIRST_S:
            self._samples.popleft()
        if now_s < _FIRST_S:
            return None
        # What is under way was sent as fast as anything in the last second, at most.
        rate_max_pps = max(one.rate_pps for one in self._samples)
        first = self._samples[0]
        if sample.sent > first.sent:
            average_pps = (sample.sent - first.sent) / (sample.time_s - first.time_s)
            self._way_s = min(self._way_s, sample.missing / average_pps)
        # A burst may be on its way just now: what is lost was missing before, too.
        missing = min(sample.missing, last.missing) if rate_pps else sample.missing
        under_way = math.ceil(self._way_s * rate_max_pps) if rate_max_pps else 0
        return max(missing - under_way, 0)
