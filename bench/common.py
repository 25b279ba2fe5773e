"""What the benchmarks share: the machine's facts, progress, and numbers as text."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from allosaur import STLError
from allosaur.server import find_binary
from rich.console import Console

Result = dict[str, Any]

#: The shortest frame, with an IPv4 type and nothing in it.
FRAME = bytes.fromhex("02a10500000102a1050000000800") + bytes(46)


def machine() -> Result:
    """What was measured on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.partition(": ")[2] for line in cpuinfo.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else "?",
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def wide_console() -> Console:
    """Give a place for tables, wide enough for them where the width is not known."""
    return Console(width=None if sys.stdout.isatty() else 120)


def server_binary(path: str) -> Path:
    """Read `--server`: without it the server that is installed, which `--help` does not need."""
    try:
        return Path(path) if path else find_binary()
    except STLError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem


def has_dpdk(server: Path) -> bool:
    """Tell whether the server was built with DPDK."""
    command = [str(server), "ports", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return bool(found["dpdk"]["built"])


def several(binaries: Path | list[Path]) -> list[Path]:
    """Give what `--server` names as a list: without it, it is the installed one alone."""
    return [binaries] if isinstance(binaries, Path) else binaries


def cpu_seconds(pid: int | None) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds() -> float:
    """Processor time that was used by all, and stolen by other machines, on all cores."""
    fields = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]]
    idle_and_waiting = fields[3] + fields[4]
    return (sum(fields) - idle_and_waiting) / os.sysconf("SC_CLK_TCK")


def progress(text: str) -> None:
    """Say what is being measured, over what was said before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def spread(values: list[float], decimals: int = 1) -> str:
    """Give the median, and the range of several."""
    middle = f"{statistics.median(values):.{decimals}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.{decimals}f} to {max(values):.{decimals}f})"
