"""Measures what this generator adds to the latency that it measures: `python bench/latency.py`.

Port 0 sends one stream whose latency is measured to port 1 over a link without delay: all that is
measured is ours. Then over a link that delays each frame by 1 ms, in which nothing else may be
seen. Numbers are those of `get_stats`, in microseconds; each is the median of the rounds.

The last column says how much processor time went to others meanwhile, in percent of one core: on a
machine that is not idle the highest percentiles are theirs. A round in which that was more than
10 % is measured again, up to four times, and the quietest is taken.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allosaur import STLFlowLatencyStats, STLPktBuilder, STLStream, STLTXCont
from allosaur.api import IP, UDP, Ether
from allosaur.server import LocalServer
from common import (
    Result,
    cpu_seconds,
    machine,
    machine_cpu_seconds,
    progress,
    server_binary,
    several,
    wide_console,
)
from rich.console import Console
from rich.table import Table

RATES = {"1 kpps": 1_000, "10 kpps": 10_000, "100 kpps": 100_000}
POLLS = ("busy", "adaptive")
#: What others may use of a core in a round that counts, and how often it is tried.
QUIET_SHARE = 0.1
TRIES = 5
DELAYED = "memory:delay=1ms"
COLUMNS = {
    "total_min": "lowest",
    "p50": "median",
    "average": "average",
    "p99": "99 %",
    "p99_9": "99.9 %",
    "total_max": "highest",
}


def main() -> int:
    """Measure, print the table, and keep the numbers if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, nargs="+", default="", help="binaries to compare")
    options = parser.parse_args()
    options.server = several(options.server)
    results = {"machine": machine(), "latency": latency(options, wide_console())}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def latency(options: argparse.Namespace, console: Console) -> list[Result]:
    """Latency by kind of polling, link and rate."""
    rounds, duration_s = (1, 1.0) if options.quick else (5, 3.0)
    runs = [
        (poll, link, rate, binary)
        for link in ("memory", DELAYED)
        for poll in POLLS
        for rate in RATES
        for binary in options.server
    ]
    measured: dict[tuple[str, str, str, Path], list[Result]] = {run: [] for run in runs}
    for number in range(rounds):
        for poll, link, rate, binary in runs:
            progress(f"round {number + 1} of {rounds}: latency at {rate}, {link}, {poll}")
            row = _measure_quietly(poll, link, RATES[rate], duration_s, binary)
            measured[poll, link, rate, binary].append(row)
    progress("")
    title = f"latency on in-memory ports in µs, runs of {duration_s:g} s"
    table = Table("link", "polling", "rate", *COLUMNS.values(), "lost", "others", title=title)
    if len(options.server) > 1:
        table.add_column("binary")
    results = []
    for (poll, link, rate, binary), rows in measured.items():
        cells = [f"{statistics.median(row[name] for row in rows):,.1f}" for name in COLUMNS]
        name = "delay 1 ms" if link == DELAYED else "no delay"
        more = [binary.parent.name] if len(options.server) > 1 else []
        others = f"{statistics.median(row['others_cpu_share'] for row in rows):.0%}"
        table.add_row(name, poll, rate, *cells, str(sum(row["dropped"] for row in rows)), others, *more)
        results.append({"poll": poll, "link": link, "rate": rate, "binary": str(binary), "rounds": rows})
    console.print(table)
    return results


def _measure_quietly(poll: str, link: str, rate_pps: int, duration_s: float, binary: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    while len(rows) < TRIES and (not rows or rows[-1]["others_cpu_share"] > QUIET_SHARE):
        rows.append(_measure(poll, link, rate_pps, duration_s, binary))
    return min(rows, key=lambda row: float(row["others_cpu_share"]))


def _measure(poll: str, link: str, rate_pps: int, duration_s: float, binary: Path) -> dict[str, Any]:
    """Run one stream, with a fresh server: nothing of another run is in its numbers."""
    packet = STLPktBuilder(pkt=Ether() / IP() / UDP() / bytes(18))
    stream = STLStream(packet=packet, mode=STLTXCont(pps=rate_pps), flow_stats=STLFlowLatencyStats(pg_id=1))
    server = LocalServer(ports=[link, link], binary=binary, options=["--poll", poll])
    with server, server.client() as client:
        client.reset(ports=[0, 1])
        client.add_streams(stream, ports=[0])
        client.start(ports=[0], duration=duration_s)
        before = machine_cpu_seconds() - cpu_seconds(server.pid)
        # Nobody asks while it runs: the machine is left alone.
        time.sleep(duration_s)
        others_cpu_s = machine_cpu_seconds() - cpu_seconds(server.pid) - before
        time.sleep(0.2)
        client.wait_on_traffic(ports=[0])
        group = client.get_stats()["latency"][1]
    times: Mapping[str, Any] = group["latency"]
    row = {name: times[name] for name in COLUMNS}
    row["dropped"] = group["err_cntrs"]["dropped"]
    row["others_cpu_share"] = max(0.0, others_cpu_s / duration_s)
    return row


if __name__ == "__main__":
    sys.exit(main())
