"""What scrapes of /metrics cost: `python bench/scrapes.py`.

A server sends streams that are counted one by one. Turns without scrapes and with them follow each
other; of each the processor time that every thread used is read from the kernel, that of the data
thread and of the receive thread per packet. A turn with scrapes is compared to the mean of the two
turns without that it stands between; those are compared to each other in the same way, which says what
the machine adds. The data thread has a CPU of its own, as it should have anywhere: who shares one with
the scraper is slowed down by it. It ends with 1 when the median of the data thread's ratios is above
1.01 and above three of four ratios of turns without.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from allosaur import STLFlowStats, STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer
from common import FRAME, Result, machine, progress, server_binary, spread, wide_console
from rich.table import Table

SENDS_AND_RECEIVES = ("data-0", "receive")


def main() -> int:
    """Measure, print the table, and keep the numbers if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few short turns")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    parser.add_argument("--streams", type=int, default=1000, help="streams with flow_stats (1000)")
    parser.add_argument("--pps", type=int, default=50_000, help="packets a second (50000)")
    parser.add_argument("--scrapes", type=float, default=10, help="scrapes a second (10)")
    options = parser.parse_args()
    pairs, turn_s = (10, 0.5) if options.quick else (60, 1.0)
    turns = measure(options, pairs, turn_s)
    compared = {name: compare(turns, name) for name in SENDS_AND_RECEIVES}
    show(options, turns, compared)
    if options.json:
        numbers = {"machine": machine(), "turns": turns, "compared": compared}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return 0 if is_within_noise(compared["data-0"]) else 1


def measure(options: argparse.Namespace, pairs: int, turn_s: float) -> list[Result]:
    """Turns without and with scrapes, one after the other; the first and the last are without."""
    servers = LocalServer(
        ports=["memory", "memory"], http=0, binary=options.server, options=["--poll", "adaptive"]
    )
    turns = []
    with servers as server, server.client() as client:
        client.reset(ports=[0, 1])
        packet = STLPktBuilder(pkt_buffer=FRAME)
        pps = options.pps / options.streams
        streams = [
            STLStream(packet=packet, mode=STLTXCont(pps=pps), isg=n / options.pps * 1e6, flow_stats=stats)
            for n in range(options.streams)
            for stats in [STLFlowStats(pg_id=n + 1)]
        ]
        client.add_streams(streams, ports=[0])
        client.start(ports=[0])
        bind(server.pid)
        time.sleep(1)  # the first packets of all streams
        for number in range(2 * pairs + 1):
            per_second = options.scrapes if number % 2 else 0
            progress(f"turn {number + 1} of {2 * pairs + 1}: {per_second:g} scrapes a second")
            turns.append(turn(server, client, per_second, turn_s))
    progress("")
    return turns


def bind(pid: int | None) -> None:
    """Give the data thread the last CPU, as a real one has its own; all else, scrapes too, the others."""
    *others, last = sorted(os.sched_getaffinity(0))
    if not others:
        return
    for name, task in threads(pid):
        os.sched_setaffinity(task, {last} if name == "data-0" else others)
    os.sched_setaffinity(0, others)


def turn(server: LocalServer, client: Any, per_second: float, turn_s: float) -> Result:
    """One turn: packets, scrapes, and the processor time of each thread in nanoseconds."""
    end = threading.Event()
    scrapes: list[int] = []
    scraper = threading.Thread(target=scrape, args=(server.http_url, per_second, end, scrapes))
    before, used_before = client.get_stats()["total"]["opackets"], used_ns(server.pid)
    scraper.start()
    time.sleep(turn_s)
    end.set()
    scraper.join()
    used = {name: ns - used_before[name] for name, ns in used_ns(server.pid).items()}
    packets = client.get_stats()["total"]["opackets"] - before
    return {"packets": packets, "scrapes": len(scrapes), "bytes": sum(scrapes), "used_ns": used}


def scrape(url: str, per_second: float, end: threading.Event, scrapes: list[int]) -> None:
    """Scrape at a rate until the end; notes how many bytes came."""
    request = urllib.request.Request(
        f"{url}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    began = time.monotonic()
    for number in count():
        if not per_second or end.wait(max(0.0, began + number / per_second - time.monotonic())):
            return
        with urllib.request.urlopen(request, timeout=60) as answer:
            scrapes.append(len(answer.read()))


def used_ns(pid: int | None) -> dict[str, int]:
    """Processor time of a server's threads, by their names."""
    used: dict[str, int] = defaultdict(int)
    for name, task in threads(pid):
        text = Path(f"/proc/{pid}/task/{task}/schedstat").read_text(encoding="utf-8")
        used[name] += int(text.split()[0])
    return used


def threads(pid: int | None) -> Iterator[tuple[str, int]]:
    """Names and numbers of a server's threads."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text(encoding="utf-8").strip()
        yield ("control" if task.name == str(pid) else name), int(task.name)


def compare(turns: list[Result], name: str) -> Result:
    """Ratios of the processor time per packet: with scrapes to without, and of turns without."""
    each = [one["used_ns"][name] / one["packets"] for one in turns]
    without = each[::2]
    return {
        "without_ns": without,
        "with_ns": each[1::2],
        "ratios": [2 * each[n] / (each[n - 1] + each[n + 1]) for n in range(1, len(each), 2)],
        "noise": [2 * without[n] / (without[n - 1] + without[n + 1]) for n in range(1, len(without) - 1)],
    }


def is_within_noise(compared: Result) -> bool:
    """Whether the median of the ratios is no higher than three of four of those without scrapes."""
    upper = statistics.quantiles(compared["noise"], n=4)[2]
    return bool(statistics.median(compared["ratios"]) <= max(upper, 1.01))


def show(options: argparse.Namespace, turns: list[Result], compared: dict[str, Result]) -> None:
    """Print the tables."""
    console = wide_console()
    scraped = turns[1::2]
    seen = sum(one["scrapes"] for one in scraped)
    title = f"{options.streams} streams, {options.pps} packets a second, {options.scrapes:g} scrapes a second"
    table = Table("CPU time per packet in ns", "without", "with", "ratio of pairs", "noise", title=title)
    for name, one in compared.items():
        numbers = [spread(one["without_ns"]), spread(one["with_ns"])]
        table.add_row(name, *numbers, spread(one["ratios"], 3), spread(one["noise"], 3))
    console.print(table)
    costs = Table("CPU time in ms", "of one scrape")
    for name in turns[0]["used_ns"]:
        if name not in SENDS_AND_RECEIVES:
            idle = statistics.mean(one["used_ns"][name] for one in turns[::2])
            used = sum(one["used_ns"][name] - idle for one in scraped)
            costs.add_row(name, f"{used / max(seen, 1) / 1e6:.2f}")
    console.print(costs)
    print(f"{seen} scrapes, {sum(one['bytes'] for one in scraped) // max(seen, 1):,} bytes each")


if __name__ == "__main__":
    sys.exit(main())
