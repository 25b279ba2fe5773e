"""Measures Allosaur on this machine, so that anyone can repeat it: `make bench`.

    packets   one data core on in-memory ports: packets per second and cycles per packet, sent to a
              sink, and across a link to a second port that a second thread receives
    accuracy  what is sent at 1 kpps, 100 kpps and 1 Mpps, and when a run ends
    server    start until the first reply, idle memory and processor time, request round trip,
              adding 10,000 streams
    latency   what this generator adds to the latency it measures (see latency.py)

Rounds of all cases alternate, so that a noisy moment of the machine does not fall on one case
alone; the table shows the median and, in brackets, the range. Numbers of different machines or
moments are not to be compared: put both versions side by side in one run (`--server`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allosaur import STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer
from common import FRAME, Result, cpu_seconds, machine, progress, server_binary, several, spread, wide_console
from latency import latency
from rich.console import Console
from rich.table import Table

CASES = {
    "constant": "constant 64 B stream",
    "variable": "one variable + IPv4 checksum, 64 B",
    "tuple": "tuple generator + checksum, 64 B",
    "random": "two random variables + checksum, 64 B",
    "imix": "IMIX 64/594/1518 B, two variables + checksum",
    "streams1000": "1,000 constant streams, 64 B",
    "statistics": "constant 64 B stream, counted by itself",
    "statistics-variable": "one variable + checksum, counted by itself",
    "large": "constant 1518 B stream",
}
RATES = {"1kpps": 1_000, "100kpps": 100_000, "1mpps": 1_000_000}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run what the command line asks for, print tables, keep the numbers in bench/results."""
    options = _options()
    console = wide_console()
    results: Result = {"machine": machine(), "binaries": [str(path) for path in options.server]}
    sections: dict[str, Callable[[argparse.Namespace, Console], Any]] = {
        "packets": packets,
        "accuracy": accuracy,
        "server": server,
        "latency": latency,
    }
    for name in options.only or sections:
        results[name] = sections[name](options, console)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = options.json or RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    console.print(f"Kept in {path}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument(
        "--only", nargs="+", choices=["packets", "accuracy", "server", "latency"], help="sections to run"
    )
    parser.add_argument("--json", type=Path, help="file for the numbers [bench/results/TIME.json]")
    parser.add_argument("--server", type=server_binary, nargs="+", default="", help="binaries to compare")
    options = parser.parse_args()
    options.server = several(options.server)
    return options


def packets(options: argparse.Namespace, console: Console) -> list[Result]:
    """Packets per second and cycles per packet of each case, with and without a receiver."""
    rounds, seconds = (1, 0.3) if options.quick else (5, 1.0)
    runs = [
        (case, receive, binary) for case in CASES for receive in ("off", "on") for binary in options.server
    ]
    measured: dict[tuple[str, str, Path], list[Result]] = {run: [] for run in runs}
    for number in range(rounds):
        for case, receive, binary in runs:
            progress(f"round {number + 1} of {rounds}: {case}, receiver {receive}")
            command = [binary, "bench", "--case", case, "--receive", receive, "--seconds", str(seconds)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            measured[case, receive, binary].append(json.loads(output))
    progress("")
    table = Table("case", "to", "Mpps", "cycles/packet", title="one data core, in-memory ports")
    if len(options.server) > 1:
        table.add_column("binary")
    results = []
    for (case, receive, binary), rows in measured.items():
        rates = [row["rate_pps"] / 1e6 for row in rows]
        cycles = [row["cycles_per_packet"] for row in rows]
        to = "a receiver" if receive == "on" else "a sink"
        cells = [CASES[case], to, spread(rates), spread(cycles)]
        table.add_row(*cells, *([binary.parent.name] if len(options.server) > 1 else []))
        results.append({"case": case, "receive": receive, "binary": str(binary), "rounds": rows})
    console.print(table)
    return results


def accuracy(options: argparse.Namespace, console: Console) -> list[Result]:
    """What is sent at each rate, what is missed, and when the run ends."""
    duration_s = 1.0 if options.quick else 5.0
    table = Table(
        "asked", "sent", "missed", "received", "off", "ends after", title=f"runs of {duration_s:g} s"
    )
    results = []
    with LocalServer(binary=options.server[0]) as local, local.client() as client:
        client.reset(ports=[0, 1])
        client.add_streams(
            STLStream(packet=STLPktBuilder(pkt_buffer=FRAME), mode=STLTXCont(pps=1)), ports=[0]
        )
        for name, rate_pps in RATES.items():
            progress(f"{name} for {duration_s:g} s")
            client.clear_stats()
            started = time.monotonic()
            client.start(ports=[0], mult=name, duration=duration_s)
            client.wait_on_traffic(ports=[0], rx_delay_ms=0)
            took_s = time.monotonic() - started
            time.sleep(0.2)
            stats = client.get_stats()
            asked = rate_pps * duration_s
            sent, missed = stats[0]["opackets"], stats[0]["missed_packets"]
            off = (sent + missed - asked) / asked
            row = [f"{int(asked):,}", f"{sent:,}", f"{missed:,}", f"{stats[1]['ipackets']:,}"]
            table.add_row(*row, f"{off:+.4%}", f"{took_s * 1e3:,.1f} ms")
            result = {"rate_pps": rate_pps, "asked": asked, "sent": sent, "missed": missed}
            results.append({**result, "received": stats[1]["ipackets"], "took_s": took_s})
    progress("")
    console.print(table)
    return results


def server(options: argparse.Namespace, console: Console) -> Result:
    """Start, idle cost, and requests."""
    starts = [_start_s(options.server[0]) for _ in range(3 if options.quick else 10)]
    result: Result = {"start_s": starts}
    with LocalServer(binary=options.server[0]) as local, local.client() as client:
        result["idle_memory_bytes"] = _memory_bytes(local.pid)
        result["idle_cpu_share"] = _cpu_share(local.pid, 1.0 if options.quick else 10.0)
        result["round_trip_s"] = [
            _timed(client.ping_rpc_server) for _ in range(100 if options.quick else 1000)
        ]
        client.reset(ports=[0, 1])
        stream = STLStream(packet=STLPktBuilder(pkt_buffer=FRAME), mode=STLTXCont(pps=1))
        many = [stream.clone() for _ in range(1_000 if options.quick else 10_000)]
        result["streams"] = len(many)
        result["add_streams_s"] = _timed(lambda: client.add_streams(many, ports=[0]))
        result["start_traffic_s"] = _timed(lambda: client.start(ports=[0], mult="100kpps", duration=1))
        client.stop(ports=[0])
    table = Table("server", "measured", title="the server itself")
    table.add_row("start until the first reply", f"{statistics.median(starts) * 1e3:.1f} ms")
    table.add_row("idle memory", f"{result['idle_memory_bytes'] / 1e6:.1f} MB")
    table.add_row("idle processor time", f"{result['idle_cpu_share']:.2%} of one core")
    table.add_row("request round trip", f"{statistics.median(result['round_trip_s']) * 1e6:.0f} µs")
    table.add_row(f"adding {result['streams']:,} streams", f"{result['add_streams_s']:.2f} s")
    table.add_row(f"starting {result['streams']:,} streams", f"{result['start_traffic_s']:.2f} s")
    console.print(table)
    return result


def _start_s(binary: Path) -> float:
    """Give the time from starting the process to its first reply, in seconds."""
    started = time.monotonic()
    with LocalServer(binary=binary) as local, local.client():
        return time.monotonic() - started


def _memory_bytes(pid: int | None) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def _cpu_share(pid: int | None, seconds: float) -> float:
    progress(f"idle for {seconds:g} s")
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


def _timed(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
