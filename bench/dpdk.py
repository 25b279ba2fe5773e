"""Measures one data core on DPDK's `net_null` beside `dpdk-testpmd` on the same core.

    .venv/bin/python bench/dpdk.py [--quick] [--core 1]

Both send on two `net_null` ports with one core; testpmd in its mode `txonly`, which writes 64-byte
packets. testpmd runs before each case of each round, so that a noisy moment of the machine falls on
both. Rates are per second that the sending thread ran, as the kernel counts it, so that others on the
core do not count. The ratio of a case is the median of its ratios to testpmd just before it.
It needs a server that was built with DPDK, and `dpdk-testpmd` (Debian and Ubuntu: dpdk-dev).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from common import Result, machine, progress, server_binary, spread, wide_console
from rich.table import Table
from run import CASES, RESULTS

PORTS = "vdev:net_null,vdev:net_null"
#: What each case must reach, as a ratio to testpmd; a case without is only shown.
TARGETS = {
    "constant": 1.9,
    "variable": 0.95,
    "tuple": 0.95,
    "random": 1.0,
    "imix": 0.95,
    "streams1000": 1.4,
    "statistics": 1.7,
    "statistics-variable": 0.9,
}
#: testpmd says how many packets a second each port sent; the first period starts it.
TESTPMD_PERIOD_S = 1


def main() -> int:
    """Run all rounds, print the table, keep the numbers in bench/results."""
    options = _options()
    missing = [tool for tool in ("dpdk-testpmd", "taskset") if shutil.which(tool) is None]
    if missing:
        print(f"error: {missing[0]} is not here; Debian and Ubuntu have it in dpdk-dev and util-linux")
        return 1
    rounds, seconds = (1, 0.5) if options.quick else (5, 1.0)
    cases = options.only or list(CASES)
    peer: dict[str, list[float]] = {case: [] for case in cases}
    rates: dict[str, list[float]] = {case: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            progress(f"round {number + 1} of {rounds}: testpmd and {case}")
            peer[case].append(testpmd_pps(options.core) / 1e6)
            rates[case].append(_ours_pps(options.server, case, seconds, options.core) / 1e6)
    progress("")
    ratios = {
        case: statistics.median(a / b for a, b in zip(rates[case], peer[case], strict=True)) for case in cases
    }
    _show(peer, rates, ratios)
    results: Result = {"machine": machine(), "core": options.core, "hugepages": _has_hugepages()}
    results |= {"testpmd_mpps": peer, "mpps": rates, "ratios": ratios, "targets": TARGETS}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = options.json or RESULTS / f"dpdk-{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"Kept in {path}")
    return 0


def _show(peer: dict[str, list[float]], rates: dict[str, list[float]], ratios: dict[str, float]) -> None:
    """Print one table, with the ratios and what they must be."""
    columns = ["case", "Mpps", "testpmd, 64 B", "ratio", "must reach", ""]
    table = Table(*columns, title="one core, two net_null ports")
    for case, ratio in ratios.items():
        target = TARGETS.get(case)
        verdict = "" if target is None else "reached" if ratio >= target else "missed"
        wanted = "" if target is None else f"{target:.2f}"
        numbers = [spread(rates[case]), spread(peer[case]), f"{ratio:.2f}"]
        table.add_row(CASES[case], *numbers, wanted, verdict)
    wide_console().print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", nargs="+", choices=CASES, help="cases to measure [all]")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core [the last]")
    parser.add_argument("--json", type=Path, help="file for the numbers [bench/results/dpdk-TIME.json]")
    parser.add_argument("--server", type=server_binary, default="", help="the server to measure")
    return parser.parse_args()


def _ours_pps(server: Path, case: str, seconds: float, core: int) -> float:
    """Give the packets per second of one case, both ports together."""
    command = ["taskset", "-c", str(core), str(server)]
    command += ["bench", "--case", case, "--seconds", str(seconds), "--ports", PORTS]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    measured = json.loads(output)
    return float(measured["rate_running_pps"] or measured["rate_pps"])


def testpmd_pps(core: int) -> float:
    """Give the packets per second that testpmd sends, both ports together."""
    other = min(os.sched_getaffinity(0) - {core}, default=core)
    # The same memory as ours: plain pages where there are no hugepages.
    memory = ["--in-memory"] if _has_hugepages() else ["--no-huge", "--no-shconf", "-m", "1024"]
    command = ["dpdk-testpmd", *memory, "--file-prefix=allosaur-bench", "--no-pci", "--no-telemetry"]
    command += ["--lcores", f"0@{other},1@{core}", "--vdev=net_null0", "--vdev=net_null1", "--"]
    command += ["--forward-mode=txonly", f"--stats-period={TESTPMD_PERIOD_S}", "--total-num-mbufs=16384"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stderr=quiet, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        # Counters of both ports each period; the first one is testpmd's start, the second warms up.
        periods = [_sent_by(process.stdout, process.pid) for _ in range(4)]
    finally:
        process.terminate()
        process.communicate(timeout=20)
    (packets, running_s), (packets_after, running_after_s) = periods[1], periods[3]
    return (packets_after - packets) / (running_after_s - running_s)


def _sent_by(output: IO[str], pid: int) -> tuple[int, float]:
    """Give what testpmd has sent by its next report, and the seconds that its sending thread ran."""
    packets = []
    for line in output:
        if match := re.search(r"TX-packets:\s+(\d+)", line):
            packets.append(int(match[1]))
        if len(packets) == 2:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                if "worker" in (thread / "comm").read_text(encoding="utf-8"):
                    ran_ns = int((thread / "schedstat").read_text(encoding="utf-8").split()[0])
                    return sum(packets), ran_ns / 1e9
    raise RuntimeError("dpdk-testpmd ended before it told its rates; start it by hand to see why")


def _has_hugepages() -> bool:
    """Tell whether any hugepage is free."""
    sizes = Path("/sys/kernel/mm/hugepages").glob("*/free_hugepages")
    return any(int(size.read_text(encoding="utf-8")) > 0 for size in sizes)


if __name__ == "__main__":
    sys.exit(main())
