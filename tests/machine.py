"""What the host of a virtual machine takes from its CPUs (steal time), and waiting until it takes less."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from allosaur.cli._steal import StealTime

CALM_SHARE = 0.2
"""Tests hold while the host takes no more of the time that is wanted."""
LATE_MAX_S = 0.05
"""Tests hold while who sleeps is woken no later."""
PROBE_S = 2.0
PAUSE_S = 5.0
SLEEP_S = 0.005


def stolen_s() -> list[float]:
    """What the host has taken from each CPU while we wanted it (proc(5), steal), in seconds."""
    lines = Path("/proc/stat").read_text().split("\n")
    ticks = [int(line.split()[8]) for line in lines if re.match(r"cpu\d", line)]
    return [one / os.sysconf("SC_CLK_TCK") for one in ticks]


def wait_for_calm(patience_s: float) -> float:
    """Wait until the host leaves us our CPUs, or patience is over; return the seconds that were spent."""
    began = time.monotonic()
    while True:
        # Hosts treat who always wants the CPU and who is woken differently; tests are both.
        is_calm = _share_when_busy() <= CALM_SHARE and _latest_wake_s() <= LATE_MAX_S
        spent = time.monotonic() - began
        if is_calm or spent >= patience_s:
            return spent
        time.sleep(PAUSE_S)


def _share_when_busy() -> float:
    """The share of the time that is taken from who wants all of it."""
    steal = StealTime()
    until = time.monotonic() + PROBE_S / 2
    while time.monotonic() < until:
        pass
    return steal.share()


def _latest_wake_s() -> float:
    """How late the host lets who sleeps wake up, at the worst."""
    latest = 0.0
    until = time.monotonic() + PROBE_S / 2
    while (before := time.monotonic()) < until:
        time.sleep(SLEEP_S)
        latest = max(latest, time.monotonic() - before - SLEEP_S)
    return latest
