"""Measures how sending scales over cores: `.venv/bin/python bench/scaling.py [--cores 1 2 4]`.

One server with 1, 2, ... data threads, each bound to a core of its own, sends one stream as fast as it
goes: into a sink in memory and, where the server was built with DPDK, into `net_null`. What one core
sends alone is the measure: n cores must send 0.9 times n times as much.

Nobody receives: the one receive thread could not keep up with many senders, and on two cores it would
take one of theirs.

Cores share things besides the program: power, memory, a physical core by two of its threads, a host
with other guests, other programs. So each row has beside it what as many processes sent that know
nothing of each other (`apart`): more than that cannot be had. Rounds alternate, so all see the same
noise; numbers are medians.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allosaur import STLVM, STLError, STLPktBuilder, STLStream, STLTXCont
from allosaur.api import IP, UDP, Ether
from allosaur.server import LocalServer
from common import (
    FRAME,
    Result,
    cpu_seconds,
    machine,
    machine_cpu_seconds,
    progress,
    server_binary,
    wide_console,
)
from rich.table import Table

PORTS = {"memory": "memory", "net_null": "vdev:net_null"}
CASES = {"constant": "constant", "variable": "one variable + checksum"}
TARGET = 0.9
TOO_MUCH_PPS = 20e9
#: What others may use of a core in a round that counts, and how often it is tried.
QUIET_SHARE = 0.1
TRIES = 4
#: Until all threads run at full speed.
WARM_UP_S = 0.3


def main() -> int:
    """Measure, print the table, and keep the numbers if asked to."""
    options = _options()
    cpus = separate_cpus()
    if max(options.cores) > len(cpus):
        print(f"error: --cores {max(options.cores)}: this process may use {len(cpus)} CPUs", file=sys.stderr)
        return 2
    kinds = [kind for kind in options.ports if _opens(PORTS[kind], options.server)]
    rounds, seconds = (1, 0.5) if options.quick else (5, 2.0)
    runs = [(kind, case, cores) for kind in kinds for case in options.cases for cores in options.cores]
    measured: dict[tuple[str, str, int], list[Result]] = {run: [] for run in runs}
    for number in range(rounds):
        for kind, case, cores in runs:
            progress(f"round {number + 1} of {rounds}: {kind}, {case}, {cores} cores")
            together = _together_quietly(PORTS[kind], case, cpus[:cores], seconds, options.server)
            apart_pps = _apart_pps(PORTS[kind], case, cpus[:cores], seconds, options.server)
            measured[kind, case, cores].append({**together, "apart_pps": apart_pps})
    progress("")
    rows = _rows(measured)
    _show(rows, cpus)
    if options.json:
        results = {"machine": machine(), "cpus": cpus, "physical_cores": _physical(cpus), "rows": rows}
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--cores", type=int, nargs="+", help="numbers of cores [1, 2, 4, ... all]")
    parser.add_argument("--ports", nargs="+", choices=PORTS, default=list(PORTS), help="kinds of ports [all]")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="what to send [all]")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    options = parser.parse_args()
    # One core alone is what all is measured by.
    options.cores = sorted({1, *(options.cores or _doubled(len(os.sched_getaffinity(0))))})
    return options


def _doubled(most: int) -> list[int]:
    return [*(1 << n for n in range(most.bit_length()) if 1 << n < most), most]


def separate_cpus() -> list[int]:
    """Give the CPUs of this process, first one of each physical core, the ones that share a core last.

    The first CPU is the last to be used where there are several: what else runs, runs there.
    """
    cpus = sorted(os.sched_getaffinity(0))
    cpus = cpus[1:] + cpus[:1]
    seen: dict[int, int] = {}
    turns: list[tuple[int, int, int]] = []
    for cpu in cpus:
        core = _core_of(cpu)
        turns.append((seen.setdefault(core, 0), len(turns), cpu))
        seen[core] += 1
    return [cpu for _, _, cpu in sorted(turns)]


def _core_of(cpu: int) -> int:
    """Give the first thread of the physical core that a CPU is a thread of."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return int(path.read_text(encoding="utf-8").replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return cpu


def _physical(cpus: Sequence[int]) -> int:
    return len({_core_of(cpu) for cpu in cpus})


def _opens(port: str, server: Path) -> bool:
    """Tell whether the server can use the port; says why not."""
    try:
        with LocalServer(ports=[port], binary=server):
            return True
    except STLError as error:
        why = str(error).strip().splitlines()[-1]
        print(f"{port} is left out: {why}", file=sys.stderr)
        return False


def _stream(case: str) -> STLStream:
    if case == "constant":
        packet = STLPktBuilder(pkt_buffer=FRAME)
    else:
        vm = STLVM()
        vm.var(name="source", min_value="16.0.0.1", max_value="16.0.255.254", size=4, op="inc")
        vm.write(fv_name="source", pkt_offset="IP.src")
        vm.fix_chksum()
        packet = STLPktBuilder(pkt=Ether() / IP(dst="48.0.0.1") / UDP(dport=12) / bytes(18), vm=vm)
    return STLStream(packet=packet, mode=STLTXCont(pps=1e6))


def _together_quietly(port: str, case: str, cpus: list[int], seconds: float, binary: Path) -> Result:
    """Measure until others leave the machine alone, and take the quietest try."""
    tries: list[Result] = []
    while len(tries) < TRIES and (not tries or tries[-1]["others_share"] > QUIET_SHARE):
        tries.append(_together(port, case, cpus, seconds, binary))
    return min(tries, key=lambda row: float(row["others_share"]))


def _together(port: str, case: str, cpus: list[int], seconds: float, binary: Path) -> Result:
    """Send with one thread on each of these CPUs, all in one server."""
    # A YAML file of our own form; JSON is YAML.
    config = {"ports": [port], "cores": cpus, "poll": "adaptive"}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(config, file)
        file.flush()
        with LocalServer(config=file.name, binary=binary) as server, server.client() as client:
            client.reset(ports=[0])
            client.add_streams(_stream(case), ports=[0])
            client.start(ports=[0], mult=str(TOO_MUCH_PPS / 1e6), force=True)
            time.sleep(WARM_UP_S)
            others_s = machine_cpu_seconds() - cpu_seconds(server.pid)
            first, from_s = _sent(client)
            time.sleep(seconds)
            last, to_s = _sent(client)
            others_s = machine_cpu_seconds() - cpu_seconds(server.pid) - others_s
            client.stop(ports=[0])
    took_s = to_s - from_s
    return {"rate_pps": (last - first) / took_s, "others_share": others_s / took_s}


def _sent(client: Any) -> tuple[int, float]:
    """Give what was sent until now, and when that is."""
    before_s = time.monotonic()
    sent = int(client.get_stats(ports=[0])[0]["opackets"])
    return sent, (before_s + time.monotonic()) / 2


def _apart_pps(port: str, case: str, cpus: list[int], seconds: float, binary: Path) -> float:
    """Send with one process on each of these CPUs, and add up what they sent."""
    processes = [
        subprocess.Popen(
            [str(binary), "bench", "--case", case, "--seconds", str(seconds), "--ports", port],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=functools.partial(os.sched_setaffinity, 0, [cpu]),
        )
        for cpu in cpus
    ]
    outputs = [process.communicate()[0] for process in processes]
    return sum(float(json.loads(output)["rate_pps"]) for output in outputs)


def _rows(measured: dict[tuple[str, str, int], list[Result]]) -> list[Result]:
    """Give medians, and ratios to one core of the same round."""
    rows = []
    for (kind, case, cores), rounds in measured.items():
        alone = measured[kind, case, 1]
        row: Result = {"port": kind, "case": case, "cores": cores, "rounds": rounds}
        for name in ("rate_pps", "apart_pps"):
            row[name] = statistics.median(one[name] for one in rounds)
            ratios = (one[name] / (cores * base[name]) for one, base in zip(rounds, alone, strict=True))
            row[f"{name.removesuffix('_pps')}_per_core"] = statistics.median(ratios)
        rows.append(row)
    return rows


def _show(rows: list[Result], cpus: list[int]) -> None:
    title = f"sending over cores: {len(cpus)} CPUs of {_physical(cpus)} physical cores, 64-byte frames"
    table = Table("port", "frame", "cores", "Mpps", "per core", f"≥ {TARGET}", title=title)
    for name in ("apart: Mpps", "per core", "others"):
        table.add_column(name)
    for row in rows:
        verdict = "" if row["cores"] == 1 else "reached" if row["rate_per_core"] >= TARGET else "missed"
        others = statistics.median(one["others_share"] for one in row["rounds"])
        table.add_row(
            *(row["port"], CASES[row["case"]], str(row["cores"])),
            *(f"{row['rate_pps'] / 1e6:.1f}", f"{row['rate_per_core']:.2f}", verdict),
            *(f"{row['apart_pps'] / 1e6:.1f}", f"{row['apart_per_core']:.2f}", f"{others:.0%} of a core"),
        )
    wide_console().print(table)


if __name__ == "__main__":
    sys.exit(main())
