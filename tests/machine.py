"""What the host of a virtual machine takes from its CPUs (steal time), and waiting until it takes less."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from allosaur.cli._steal import StealTime

CALM_SHARE = 0.2
"""Tests hold while the host takes no more of the time that is wanted."""
PROBE_S = 2.0
PAUSE_S = 5.0


def stolen_s() -> list[float]:
    """What the host has taken from each CPU while we wanted it (proc(5), steal), in seconds."""
    lines = Path("/proc/stat").read_text().split("\n")
    ticks = [int(line.split()[8]) for line in lines if re.match(r"cpu\d", line)]
    return [one / os.sysconf("SC_CLK_TCK") for one in ticks]


def wait_for_calm(patience_s: float) -> float:
    """Wait until the host leaves us our CPUs, or patience is over; return the seconds that were spent."""
    began = time.monotonic()
    while True:
        share = StealTime()
        until = time.monotonic() + PROBE_S
        # Only what is wanted can be stolen: an idle machine does not know what its host would take.
        while time.monotonic() < until:
            pass
        spent = time.monotonic() - began
        if share.share() <= CALM_SHARE or spent >= patience_s:
            return spent
        time.sleep(PAUSE_S)
