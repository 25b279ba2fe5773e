"""Flows that come and go for long: `python bench/soak.py [--minutes 20] [--share 0.7]`.

First what fits on a core is measured, in ten windows of which the slowest counts: HTTP, a connection each.
Then that share of it runs, over a clean link in memory and over one that loses 1 % of the frames in both
directions, one after the other or, with `--together`, at the same time; what fits is measured so too. Every
second the counters and the server's memory are read; at the end nothing new begins, and what is open may
end. These must hold, and the exit code is 1 when one does not:

    flows     opened = closed + active at each reading and each end; none is active at the end; those that the
              server accepted are those that connected, and none is missed
    counters  none goes back; without loss the bytes that applications sent all arrive and no error is
              counted; with loss flows still end, but for those that TCP gives up by its own rules, counted
    memory    the median of the last quarter is at most 1 % above that of the second quarter
    rate      connections of the last quarter are within 2 % of those of the second quarter

Each data thread is bound to a CPU. What is missed is told, and counts unless the machine is at fault: the
thread waited for its CPU for longer than a server makes up for, or a loop of fixed length that runs beside it
on that CPU took so much longer than while the slowest window was measured that the load did not fit any more
(a virtual machine's host may halve its speed without a trace in the kernel's accounts). Both are told.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allosaur.cli.flows._measured import Generator, Sample
from common import Result, machine, progress, server_binary, wide_console
from rich.table import Table
from scaling import separate_cpus
from speed import SpeedProbe

PROFILE = Path(__file__).resolve().parent.parent / "profiles" / "stateful" / "http.py"
LINKS = {
    "clean": ("memory", "memory"),
    "1 % loss": ("memory:loss=1%:seed=7", "memory:loss=1%:seed=8"),
}
#: More than a core does.
FULL_CPS = 900_000
FITS_S = 3.0
FITS_WINDOWS = 10
WARM_S = 2.0
MEMORY_GROWTH_MAX = 0.01
RATE_DRIFT_MAX = 0.02
#: Of the time; while others had more of the CPU than that, the rate may drift for their sake.
WAITED_MAX = 0.02
#: A server starts flows late by so much, and gives up those that are later: LATE_MAX of the engine. The data
#: thread that waited for as long from the reading before last on may have missed some for that.
LATE_S_MAX = 0.1
#: With a machine so much faster than the load needs, nothing is late for its sake.
SPARE_SPEED = 0.1
#: A larger share would excuse everything: the slowest moments of an even machine are below it, too.
SHARE_MAX = 0.8
#: Flows that lost their last ACK wait for so many retransmissions at the most.
END_S_MAX = 600.0
#: A segment that is sent again may come when the other end's flow is over, TIME-WAIT too: where the last ACK
#: and what was sent again for want of it are lost. So it goes with 8 of a million flows that lose 1 %.
STALE_SEGMENTS = ("err_cwf", "err_no_syn")
#: Of all flows; more of them would not be explained by what is lost.
STALE_SHARE_MAX = 1e-4
#: Of a lossy link: what TCP counts there by its rules. The names are BSD's.
EXPECTED_OF_LOSS = ("rexm", "persist", "keep", "dup", "oo", "after", "drop", "timeout", "dsack", "sack")


@dataclass
class Soak:
    """One server, what was read of it, and what did not hold."""

    link: str
    cpu: int
    cps: float = 0.0
    share: float = 0.0
    """What part that is of the slowest window."""
    probe_s: float = 0.0
    """What the fixed loop took in that window."""
    samples: list[Sample] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    slowest: list[float] = field(default_factory=list)
    """The machine's least speed between the reading before and each of them; 1 is that of that window."""
    problems: list[str] = field(default_factory=list)

    def quarter(self, number: int) -> slice:
        """The readings of a quarter of the time, counted from 0."""
        size = len(self.samples) // 4
        return slice(number * size, (number + 1) * size)

    def rate(self, number: int) -> float:
        """Connections a second of a quarter."""
        part = self.samples[self.quarter(number)]
        closed = part[-1].counters.server.closed_flows - part[0].counters.server.closed_flows
        return closed / (part[-1].at_s - part[0].at_s)

    def growth(self) -> float:
        """How much more memory the server takes in the last quarter than in the second."""
        second, last = (statistics.median(self.memory[self.quarter(number)]) for number in (1, 3))
        return last / second - 1

    def missed_awake(self) -> int:
        """Flows that were missed while the data thread had its CPU, and that was fast enough."""
        missed = self.samples[0].counters.missed_flows or 0
        for number, (before, after) in enumerate(itertools.pairwise(self.samples), start=1):
            more = (after.counters.missed_flows or 0) - (before.counters.missed_flows or 0)
            since = max(number - 2, 0)
            waited_s = after.waited_s - self.samples[since].waited_s
            slowest = min(self.slowest[since + 1 : number + 1])
            is_excused = waited_s >= LATE_S_MAX or slowest < self.share + SPARE_SPEED
            missed += 0 if is_excused else more
        return missed

    def slow(self) -> float:
        """The part of the readings before which the machine was too slow for the load."""
        return sum(speed < self.share + SPARE_SPEED for speed in self.slowest) / len(self.slowest)

    def waited(self) -> float:
        """The part of the time in which the data thread waited for its CPU."""
        first, last = self.samples[0], self.samples[-1]
        return (last.waited_s - first.waited_s) / (last.at_s - first.at_s)

    def to_json(self) -> Result:
        """The numbers, the readings in short."""
        first, last = self.samples[0], self.samples[-1]
        return {
            "link": self.link,
            "cps": self.cps,
            "seconds": last.at_s - first.at_s,
            "rates": [self.rate(number) for number in range(4)],
            "memory_mb": [round(memory / 1e6, 2) for memory in self.memory],
            "memory_growth": self.growth(),
            "cpu": (last.ran_s - first.ran_s) / (last.at_s - first.at_s),
            "waited": self.waited(),
            "slow": self.slow(),
            "missed_awake": self.missed_awake(),
            "counters": last.counters.to_json(),
            "problems": self.problems,
        }


def main() -> int:
    """Run the soaks, print their table, and keep the numbers."""
    options = _options()
    cpus = itertools.cycle(separate_cpus())
    soaks = [Soak(link, next(cpus)) for link in LINKS if options.only in link]
    for step in (_choose_rate, _run):
        if options.together:
            threads = [threading.Thread(target=step, args=(soak, options)) for soak in soaks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        else:
            for soak in soaks:
                step(soak, options)
    progress("")
    _show(soaks)
    if options.json:
        numbers = {"machine": machine(), "soaks": [soak.to_json() for soak in soaks]}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return int(any(soak.problems for soak in soaks))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20, help="how long each one runs (20)")
    parser.add_argument("--share", type=float, default=0.7, help="of what fits on a core (0.7)")
    parser.add_argument("--cps", type=float, help="connections a second, in the place of a share")
    parser.add_argument("--response", type=int, default=1024, help="bytes of a response (1024)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two readings (1)")
    parser.add_argument("--only", choices=LINKS, default="", help="one link (both)")
    parser.add_argument("--together", action="store_true", help="both links at the same time")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    options = parser.parse_args()
    if not 0 < options.share <= SHARE_MAX:
        parser.error(f"--share: above 0, and {SHARE_MAX:g} at most, so that a slow server can be told")
    if options.minutes * 60 < 16 * options.every:
        parser.error("--minutes: a soak has 16 readings at least: run it for longer, or read it more often")
    return options


def _choose_rate(soak: Soak, options: argparse.Namespace) -> None:
    """Offer what was asked for, or a share of the connections a second that a core does at its slowest."""
    windows: list[tuple[float, float]] = []
    with (
        SpeedProbe(soak.cpu) as probe,
        Generator(LINKS[soak.link], cpus=[soak.cpu], binary=options.server) as generator,
    ):
        generator.start(str(PROFILE), FULL_CPS, response=options.response)
        time.sleep(WARM_S)
        for number in range(FITS_WINDOWS):
            progress(f"what fits on a core: {number} of {FITS_WINDOWS} windows")
            since_s = time.monotonic()
            cps = generator.measure(FITS_S).cps
            windows.append((cps, probe.loop_s(since_s)))
    cps, soak.probe_s = min(windows)
    soak.cps = options.cps or options.share * cps
    soak.share = soak.cps / cps
    if options.cps and soak.share > SHARE_MAX:
        soak.problems.append(f"--cps: {soak.share:.0%} of what fits; offer {SHARE_MAX * cps:,.0f} at most")


def _run(soak: Soak, options: argparse.Namespace) -> None:
    with (
        SpeedProbe(soak.cpu) as probe,
        Generator(LINKS[soak.link], cpus=[soak.cpu], binary=options.server) as generator,
    ):
        client = generator.client
        client.load_profile(str(PROFILE), tunables={"response": options.response})
        client.clear_stats()
        client.start(mult=soak.cps, nc=False)
        time.sleep(WARM_S)
        read_s = time.monotonic() - WARM_S
        until_s = time.monotonic() + options.minutes * 60
        while (left_s := until_s - time.monotonic()) > 0:
            progress(f"{soak.link}: {left_s / 60:.1f} minutes left")
            _read(soak, generator)
            soak.slowest.append(soak.probe_s / probe.longest_s(read_s))
            read_s = time.monotonic()
            time.sleep(min(options.every, left_s))
        client.stop(block=False)
        end_s = time.monotonic() + END_S_MAX
        while _read(soak, generator, is_kept=False).counters.client.active_flows and time.monotonic() < end_s:
            time.sleep(1.0)
        last = _read(soak, generator, is_kept=False)
    _check(soak, last)


def _read(soak: Soak, generator: Generator, is_kept: bool = True) -> Sample:
    """Read everything once, and look whether the flows of each end add up."""
    sample = generator.sample()
    for name in ("client", "server"):
        side = sample.counters.side(name)
        if side.begun_flows != side.closed_flows + side.active_flows:
            counts = f"{side.closed_flows:,} closed, {side.active_flows:,} active"
            soak.problems.append(f"{name}: {side.begun_flows:,} opened, {counts}")
    if is_kept:
        soak.samples.append(sample)
        soak.memory.append(generator.memory_bytes)
    return sample


def _check(soak: Soak, last: Sample) -> None:
    """Write down what does not hold over the whole time."""
    client, server = last.counters.client, last.counters.server
    for name, side in (("client", client), ("server", server)):
        if side.active_flows:
            soak.problems.append(
                f"{name}: {side.active_flows:,} flows are left {END_S_MAX:.0f} s after the end"
            )
    for before, after in zip(soak.samples, soak.samples[1:], strict=False):
        for name in ("client", "server"):
            old, new = before.counters.side(name).to_json(), after.counters.side(name).to_json()
            gone = [
                key for key in old if "active" not in key and "established" not in key and new[key] < old[key]
            ]
            soak.problems.extend(f"{name}: {key} went from {old[key]:,} to {new[key]:,}" for key in gone)
    if missed := soak.missed_awake():
        soak.problems.append(f"{missed:,} flows were missed, and the machine is not at fault")
    if soak.growth() > MEMORY_GROWTH_MAX:
        soak.problems.append(f"memory grew by {soak.growth():.1%}")
    if soak.waited() < WAITED_MAX and abs(soak.rate(3) / soak.rate(1) - 1) > RATE_DRIFT_MAX:
        soak.problems.append(f"the rate went from {soak.rate(1):,.0f} to {soak.rate(3):,.0f}")
    _check_errors(soak, last)


def _check_errors(soak: Soak, last: Sample) -> None:
    client, server = last.counters.client, last.counters.server
    if soak.link == "clean":
        soak.problems.extend(f"{side}: {name} {count:,}" for side, name, count in last.counters.error_list())
        if client.begun_flows != server.begun_flows:
            soak.problems.append(f"{client.begun_flows:,} opened, {server.begun_flows:,} came")
        for sent, came in ((client, server), (server, client)):
            if sent.tx_data_bytes != came.rx_data_bytes:
                soak.problems.append(f"{sent.tx_data_bytes:,} bytes sent, {came.rx_data_bytes:,} arrived")
        return
    for side, name, count in last.counters.error_list():
        is_rare = name in STALE_SEGMENTS and count < STALE_SHARE_MAX * client.begun_flows
        if not is_rare and not any(part in name for part in EXPECTED_OF_LOSS):
            soak.problems.append(f"{side}: {name} {count:,}")


def _show(soaks: Sequence[Soak]) -> None:
    columns = [
        "link",
        "offered cps",
        "minutes",
        "flows",
        "cps by quarters",
        "memory MB",
        "grew",
        "missed",
        "waited",
        "slow",
        "CPU",
    ]
    table = Table(*columns, "holds", title="HTTP, a connection each, on one core")
    for soak in soaks:
        numbers = soak.to_json()
        counters = soak.samples[-1].counters
        table.add_row(
            soak.link,
            f"{soak.cps:,.0f}",
            f"{numbers['seconds'] / 60:.1f}",
            f"{counters.client.begun_flows:,}",
            " ".join(f"{rate:,.0f}" for rate in numbers["rates"]),
            f"{soak.memory[0] / 1e6:.1f} to {soak.memory[-1] / 1e6:.1f}",
            f"{soak.growth():+.2%}",
            f"{counters.missed_flows or 0:,}",
            f"{numbers['waited']:.2%}",
            f"{numbers['slow']:.0%}",
            f"{numbers['cpu']:.0%}",
            "no" if soak.problems else "yes",
        )
    wide_console().print(table)
    for soak in soaks:
        for problem in soak.problems[:20]:
            print(f"{soak.link}: {problem}")


if __name__ == "__main__":
    sys.exit(main())
