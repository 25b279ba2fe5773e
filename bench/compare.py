"""Compares two versions of the server in one run: `.venv/bin/python bench/compare.py OLD NEW`.

Each round measures every case with the one binary and then with the other, so that both see the
same noise; the table shows the median over the rounds of new / old. Costs are processor time, of
which a busy machine takes little away: cycles a packet and a connection, the share of a core that
open flows and an idle server take, nanoseconds of a packet on veth (as root), and time of the RPC.
Less is better everywhere. A case that is more than two percent slower is marked.

A pair that the host of a virtual machine disturbed by taking its CPUs away is measured again, a few times;
the table says how many pairs stayed disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from allosaur import STLPktBuilder, STLStream, STLTXCont
from allosaur.cli._steal import StealTime
from allosaur.server import LocalServer
from common import FRAME, machine, progress, wide_console
from rich.table import Table
from run import CASES
from veth import WAYS, joined, send

SLOWER_MAX = 1.02
#: Bytes of a response, and connections a second: more than a core does, so that it has no idle turns.
RESPONSES = {1: 800_000, 1024: 800_000, 32000: 300_000}
OPEN_ENDS = 1_000_000
REQUESTS = 500
STREAMS = 5_000
IDLE_S = 5.0
STEAL_SHARE_MAX = 0.02
TRIES = 4
Measure = Callable[[Path], float]


def main() -> int:
    """Measure, print the table, keep the numbers if asked to; 1 when a case is slower."""
    options = _options()
    cases = {name: case for name, case in _cases().items() if not options.only or options.only in name}
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    disturbed = dict.fromkeys(cases, 0)
    with joined() if any("veth" in name for name in cases) else contextlib.nullcontext():
        for number in range(options.rounds):
            for name, measure in cases.items():
                progress(f"round {number + 1} of {options.rounds}: {name}")
                # Whoever comes second finds warm caches: they take turns.
                pair = [options.old, options.new][:: -1 if number % 2 else 1]
                values, is_quiet = _measure(measure, pair)
                measured[name].append((values[options.old], values[options.new]))
                disturbed[name] += not is_quiet
            # After each round: whoever stops it, or what fails, loses one round only.
            _keep(options, measured)
    progress("")
    return 1 if _show(measured, disturbed) else 0


def _measure(measure: Measure, pair: list[Path]) -> tuple[dict[Path, float], bool]:
    """Measure each of a pair, and say whether the machine was quiet."""
    for _ in range(TRIES):
        steal = StealTime()
        values = {binary: measure(binary) for binary in pair}
        if steal.share() <= STEAL_SHARE_MAX and all(map(math.isfinite, values.values())):
            return values, True
    return values, False


def _keep(options: argparse.Namespace, measured: dict[str, list[tuple[float, float]]]) -> None:
    if options.json:
        result = {"machine": machine(), "old": str(options.old), "new": str(options.new), "rounds": measured}
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path, help="the server before")
    parser.add_argument("new", type=Path, help="the server after")
    parser.add_argument("--rounds", type=int, default=5, help="how often each case is measured [5]")
    parser.add_argument("--only", metavar="TEXT", help="cases with this in their name [all]")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    return parser.parse_args()


def _cases() -> dict[str, Measure]:
    """What is measured, by name; smaller is better."""
    cases: dict[str, Measure] = {}
    for case, text in CASES.items():
        for receive, to in (("off", "a sink"), ("on", "a receiver")):
            arguments = ["--case", case, "--receive", receive, "--seconds", "0.5"]
            cases[f"{text}, to {to}: cycles"] = _bench("cycles_per_packet", *arguments)
    for size, rate in RESPONSES.items():
        arguments = ["--response", str(size), "--rate", str(rate), "--seconds", "1"]
        cases[f"connection with {size} B response: cycles"] = _bench("cycles_per_connection", *arguments)
    holding = ["--flows", str(OPEN_ENDS), "--seconds", "2"]
    cases[f"{OPEN_ENDS:,} open ends: share of a core"] = _bench("core_share", *holding)
    cases["an open end: bytes"] = _bench("bytes_per_end", *holding)
    cases["RPC round trip: µs"] = _round_trip_us
    cases[f"adding {STREAMS:,} streams: ms"] = _add_streams_ms
    for mode in ([], ["--stateful"]):
        name = "idle server" + (", stateful" if mode else "")
        cases[f"{name}: share of a core"] = lambda binary, mode=mode: _idle_share(binary, mode)  # type: ignore[misc]
    if os.geteuid() == 0:
        for name, (port, _) in WAYS.items():
            cases[f"veth, {name}: ns"] = lambda binary, port=port: send([port], 60, 1.0, binary)["cpu_ns"]  # type: ignore[misc]
    return cases


def _bench(key: str, *arguments: str) -> Measure:
    def measure(binary: Path) -> float:
        command = [str(binary), "bench", *arguments]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        value = json.loads(output)[key]
        # A machine that stood still has sent nothing, at no cost that could be told.
        return math.inf if value is None else float(value)

    return measure


def _round_trip_us(binary: Path) -> float:
    with LocalServer(binary=binary) as local, local.client() as client:
        times = []
        for _ in range(REQUESTS):
            started = time.perf_counter()
            client.ping_rpc_server()
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def _add_streams_ms(binary: Path) -> float:
    stream = STLStream(packet=STLPktBuilder(pkt_buffer=FRAME), mode=STLTXCont(pps=1))
    with LocalServer(binary=binary) as local, local.client() as client:
        client.reset(ports=[0])
        many = [stream.clone() for _ in range(STREAMS)]
        started = time.perf_counter()
        client.add_streams(many, ports=[0])
        return (time.perf_counter() - started) * 1e3


def _idle_share(binary: Path, options: list[str]) -> float:
    with LocalServer(binary=binary, options=options) as local:
        time.sleep(0.5)
        before = _used_s(local.pid)
        time.sleep(IDLE_S)
        return (_used_s(local.pid) - before) / IDLE_S


def _used_s(pid: int | None) -> float:
    """Processor time of all threads; /proc/PID/stat counts whole hundredths of a second."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="utf-8").split()[0]) for thread in threads) / 1e9


def _show(measured: dict[str, list[tuple[float, float]]], disturbed: dict[str, int]) -> list[str]:
    table = Table("case", "old", "new", "new / old", "disturbed", "", title="smaller is better")
    slower = []
    for name, pairs in measured.items():
        ratios: list[float] = [new / old for old, new in pairs]
        ratio = statistics.median(ratios)
        if ratio > SLOWER_MAX:
            slower.append(name)
        old, new = (statistics.median(values) for values in zip(*pairs, strict=True))
        among = f"{ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        of_pairs = f"{disturbed[name]} of {len(pairs)}" if disturbed[name] else ""
        slow = "slower" if ratio > SLOWER_MAX else ""
        table.add_row(name, f"{old:,.4g}", f"{new:,.4g}", among, of_pairs, slow)
    wide_console().print(table)
    return slower


if __name__ == "__main__":
    sys.exit(main())
