"""Steal time: what the host of a virtual machine took away from its CPUs while traffic ran (proc(5)).

A generator whose CPUs stand still misses its load, and the reason is not to be seen inside of it.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import NamedTuple

_SHARE_MIN = 0.01
"""Less is not worth a word."""
_COUNTERS = Path("/proc/stat")


class _Ticks(NamedTuple):
    """Time of all CPUs since the machine started, in ticks: what was wanted, and what was not given."""

    wanted: int
    stolen: int


class StealTime:
    """What was taken from this machine's CPUs since this was made."""

    def __init__(self, counters: Path | None = _COUNTERS) -> None:
        self._counters = counters
        self._before = self._ticks()

    @classmethod
    def of_server(cls, host: str) -> StealTime:
        """Return the steal time of a server by this name; nothing is known of another machine's."""
        try:
            is_here = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_here = host == "localhost"
        return cls(_COUNTERS if is_here else None)

    @staticmethod
    def since_start(counters: str) -> float:
        """Return the share since the machine started, of the text of /proc/stat; 0 where it counts none."""
        ticks = _read(counters)
        return ticks.stolen / ticks.wanted if ticks is not None and ticks.wanted else 0.0

    def share(self) -> float:
        """Return the part of the wanted time that was not given, from 0 to 1; 0 where nobody counts it."""
        now = self._ticks()
        if now is None or self._before is None or now.wanted <= self._before.wanted:
            return 0.0
        return (now.stolen - self._before.stolen) / (now.wanted - self._before.wanted)

    def told(self) -> list[str]:
        """Return a sentence for who missed load; none where nearly nothing was taken."""
        share = self.share()
        if share < _SHARE_MIN:
            return []
        return [
            f"the host of this virtual machine took away {100 * share:.0f} % of the CPU time that was wanted "
            f"meanwhile (steal time of /proc/stat): what was missed may be its doing"
        ]

    def _ticks(self) -> _Ticks | None:
        if self._counters is None:
            return None
        try:
            return _read(self._counters.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None


def _read(counters: str) -> _Ticks | None:
    try:
        first = counters.split("\n", 1)[0].split()
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in first[1:9])
    except ValueError:
        return None
    return _Ticks(user + nice + system + irq + softirq + steal, steal)
