"""Flows at scale, in one run and one report: `sudo .venv/bin/python bench/stateful.py [--quick]`.

    yardstick  what `dpdk-testpmd` sends on one core of this machine (txonly, 64 bytes)
    paper      100 bytes asked, 32 KB answered, a connection each, at rising multipliers, with client and
               server on one core: over the memory link, and over ports of DPDK
    sizes      the same with responses of 1 B, 1 KB, 32 KB and 1 MB, and UDP question and answer, all
               at more than one core can do; over the memory link, and by turns with that over ports of DPDK
    overload   what is delivered when 0.5 to 4 times as much is offered as fits on a core
    open       flows that are held open while others come and go: what they take of memory and of a core
    client     our client, `wrk` and `ab` in front of nginx (one worker) over veth, a connection each
    server     `wrk` in front of our server and of nginx
    cores      the paper's profile on more and more cores, beside as many servers that know nothing of
               each other: more than those do the machine does not give

Rates are per second that the data threads ran, as the kernel counts it, so that neighbours do not count;
`CPU` is the share of a core that they ran. Each case says what it lacks where it cannot run; `client` and
`server` need root. Results are kept after each case. The exit code is 1 when a case failed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dpdk
import loads
import stateful_report
import web
from allosaur import STLError
from allosaur.cli.flows._measured import Generator, Window
from common import Result, has_dpdk, machine, progress, server_binary, wide_console
from scaling import separate_cpus
from stateful_report import CORES, OPEN, OVERLOAD, PAPER, SIZES, WEB, YARDSTICK, Columns

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ROOT / "profiles" / "stateful"
RESULTS = Path(__file__).parent / "results"
#: The multipliers of the paper, and what lies beyond them.
MULTIPLIERS = (1_000, 5_000, 10_000, 20_000, 50_000, 87_500, 90_000, 120_000, 160_000, 240_000)
QUICK_MULTIPLIERS = (1_000, 20_000, 90_000)
#: Less of what was offered, and the next multiplier would show nothing new.
CARRIED_MIN = 0.97
#: Of the time; more than this was not the data thread's, and it says nothing of what a core does.
DENIED_MAX = 0.1
#: More than one core does, and not so much more that counting what was missed is all it does.
RESPONSES = {"1 B": (1, 900_000), "1 KB": (1024, 900_000), "32 KB": (32 * 1024, 320_000)}
UDP_FLOWS = 2_200_000
#: Connections at a time of a size of which more would only wait for each other.
LONG_BYTES, LONG_AT_ONCE = 1_000_000, 20
#: What is compared is measured by turns, so often.
ROUNDS = 3
#: Of what fits on a core, for responses of `OVERLOAD_BYTES`.
OFFERED = (0.5, 0.9, 1.1, 1.5, 2.0, 4.0)
OVERLOAD_BYTES = 1024
COMING_CPS = 10_000
OPENING_CPS = 50_000
OPENING_S_MAX = 600
COMING_ROOM_S = 20
#: More are not opened in the time that the server's benchmark has, and each takes the same.
BENCH_ENDS_MAX = 2_000_000
#: Of the paper's profile, for each core.
CORES_MULTIPLIER = RESPONSES["32 KB"][1]
#: Two ports of DPDK's net_ring that rings join: what the one sends, the other receives, without a copy.
RING_PAIR = "ring:bench,ring:bench"
MEMORY_PAIR = ("memory", "memory")
WARM_S = 1.5

Measure = Callable[[argparse.Namespace], Iterator[Result]]


@dataclass(frozen=True)
class Case:
    """One table of the report."""

    name: str
    title: str
    columns: Columns
    measure: Measure
    why_not: Callable[[argparse.Namespace], str | None] = field(default=lambda _: None)
    """What it lacks to run here, and what to install."""


def main() -> int:
    """Measure each case, print its table, and keep all that is known so far."""
    options = _options()
    cases = [case for case in CASES if not options.only or options.only in case.name]
    if not cases:
        names = ", ".join(case.name for case in CASES)
        print(
            f"error: --only {options.only}: no case has that in its name; there are {names}", file=sys.stderr
        )
        return 2
    results: Result = {
        "machine": machine(),
        "binary": str(options.server),
        "quick": options.quick,
        "cases": [],
    }
    for case in cases:
        progress(case.title)
        kept = _measured(case, options)
        results["cases"].append(kept)
        progress("")
        if case is CASES[0] and kept["rows"]:
            results["yardstick_mpps"] = statistics.median(row["mpps"] for row in kept["rows"])
        beside_yardstick(kept["rows"], results.get("yardstick_mpps"))
        stateful_report.show(kept, case.columns, wide_console())
        _keep(results, options)
    print(f"Kept in {options.json}" + (f" and {options.report}" if options.report else ""))
    return int(any("failed" in one for one in results["cases"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and short measurements")
    parser.add_argument("--only", metavar="TEXT", help="cases with this in their name [all]")
    parser.add_argument(
        "--rounds", type=int, help=f"how often what is compared is measured, by turns [{ROUNDS}]"
    )
    default = RESULTS / f"stateful-{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    parser.add_argument("--json", type=Path, default=default, help="file for the numbers [bench/results/...]")
    parser.add_argument("--report", type=Path, help="file for an HTML report with plots")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core [the last]")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="numbers of cores")
    parser.add_argument("--open", type=int, nargs="+", default=[], help="flows held open [1000000]")
    parser.add_argument("--dpdk", default=RING_PAIR, help="two joined ports of DPDK [%(default)s]")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: measure once at least")
    options.open = options.open or [100_000 if options.quick else 1_000_000]
    options.seconds = 1.0 if options.quick else 4.0
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


def _measured(case: Case, options: argparse.Namespace) -> Result:
    """Give what is known of a case: its rows, and why there are no more of them."""
    kept: Result = {"name": case.name, "title": case.title, "rows": []}
    if problem := case.why_not(options):
        return {**kept, "not_run": problem}
    try:
        for row in case.measure(options):
            kept["rows"].append(row)
    except (STLError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        kept["failed"] = " ".join(str(error).split())
    return kept


def _keep(results: Result, options: argparse.Namespace) -> None:
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.report:
        stateful_report.write(options.report, results, {case.name: case.columns for case in CASES})


def yardstick(options: argparse.Namespace) -> Iterator[Result]:
    """What testpmd does, in as many rounds as show how even the machine is."""
    for number in range(options.rounds):
        progress(f"testpmd, round {number + 1}")
        yield {"what": f"round {number + 1}", "mpps": dpdk.testpmd_pps(options.core) / 1e6}


def _no_testpmd(_: argparse.Namespace) -> str | None:
    missing = shutil.which("dpdk-testpmd") is None
    return "there is no `dpdk-testpmd`: install dpdk-dev" if missing else None


def paper(ports: Sequence[str], options: argparse.Namespace) -> Iterator[Result]:
    """The paper's table, line by line, until a core does no more."""
    for multiplier in QUICK_MULTIPLIERS if options.quick else MULTIPLIERS:
        progress(f"paper's profile at {multiplier:,}")
        with Generator(ports, cpus=[options.core], binary=options.server) as generator:
            generator.start(str(PROFILES / "http.py"), multiplier)
            window = generator.measure(options.seconds, WARM_S)
        yield _row(f"{multiplier:,}", window)
        if is_full(window):
            return


def beside_yardstick(rows: Sequence[Result], mpps: float | None) -> None:
    """Write into rows what a core does of flows for each million packets that testpmd does."""
    for row in rows if mpps else ():
        if mpps and row.get("cps_running"):
            row["per_mpps"] = row["cps_running"] / mpps


def is_full(window: Window) -> bool:
    """Tell whether fewer flows came to be than were offered, and not because others had the CPU."""
    is_carried = window.opened >= CARRIED_MIN * window.offered
    return not is_carried and max(window.waited, window.steal) < DENIED_MAX


def _row(what: str, window: Window) -> Result:
    return {"what": what, **window.to_json()}


def _dpdk_ports(options: argparse.Namespace) -> list[str]:
    # Commas separate ports and what belongs to a device; a port begins with its kind.
    parts: list[str] = []
    for part in options.dpdk.split(","):
        if part.startswith(("vdev:", "ring:", "pci:")) or not parts:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    return parts


def _paper_on_dpdk(options: argparse.Namespace) -> Iterator[Result]:
    yield from paper(_dpdk_ports(options), options)


def _no_dpdk(options: argparse.Namespace) -> str | None:
    """Open the ports and try a few flows: a port that gets its own frames back joins no two ends."""
    if not has_dpdk(options.server):
        return "the server was built without DPDK: install libdpdk-dev and run `make install`"
    try:
        with Generator(_dpdk_ports(options), cpus=[options.core], binary=options.server) as generator:
            generator.start(str(PROFILES / "http.py"), 100)
            closed = generator.measure(1.0, 0.5).closed
    except (STLError, RuntimeError) as error:
        return " ".join(str(error).split())
    if closed:
        return None
    return f"no flow came through {options.dpdk}: name two ports that are joined by --dpdk"


def sizes(options: argparse.Namespace) -> Iterator[Result]:
    """Responses of all sizes, and questions by UDP, at more than a core can do; over both kinds of ports."""
    pairs: dict[str, Sequence[str]] = {"memory": MEMORY_PAIR}
    if _no_dpdk(options) is None:
        pairs["DPDK"] = _dpdk_ports(options)
    for what, start in _loads().items():
        windows: dict[str, list[Window]] = {name: [] for name in pairs}
        for _ in range(options.rounds):
            for name, ports in pairs.items():
                progress(f"{what} over {name}")
                with Generator(ports, cpus=[options.core], binary=options.server) as generator:
                    start(generator)
                    windows[name].append(generator.measure(options.seconds, WARM_S))
        yield from _beside(what, windows)


def _loads() -> dict[str, Callable[[Generator], None]]:
    """Give what starts each load of `sizes`, by its name."""
    http, udp = (str(PROFILES / name) for name in ("http.py", "udp_exchange.py"))
    starts: dict[str, Callable[[Generator], None]] = {
        f"TCP, {name}": functools.partial(Generator.start, profile=http, multiplier=multiplier, response=size)
        for name, (size, multiplier) in RESPONSES.items()
    }
    long = loads.responses(LONG_BYTES, LONG_AT_ONCE)
    starts[f"TCP, 1 MB, {LONG_AT_ONCE} at a time"] = functools.partial(Generator.start, profile=long)
    starts["UDP, request and answer"] = functools.partial(
        Generator.start, profile=udp, multiplier=UDP_FLOWS, rounds=1, size=64
    )
    return starts


def _beside(what: str, windows: dict[str, list[Window]]) -> Iterator[Result]:
    """Give a row for each kind of ports: its median round, and the median ratio to the first kind's."""
    first = next(iter(windows.values()))
    for name, of_ports in windows.items():
        ratio = _median_ratio([one.cps_running for one in of_ports], [base.cps_running for base in first])
        of_memory = ratio if name != "memory" else None
        yield {**_row(f"{what}, {name}", _median(of_ports)), "of_memory": of_memory}


def overload(options: argparse.Namespace) -> Iterator[Result]:
    """What is delivered of more than a core can do, beside the best of all rows; by turns."""
    progress("what fits")
    most = RESPONSES["1 KB"][1]
    fits = statistics.median(_overloaded(most, options).cps_running for _ in range(options.rounds))
    windows: dict[float, list[Window]] = {share: [] for share in OFFERED}
    for number in range(options.rounds):
        for share, of_share in windows.items():
            progress(f"round {number + 1} of {options.rounds}: {share:g} times what fits")
            of_share.append(_overloaded(share * fits, options))
    medians = {share: _median(of_share) for share, of_share in windows.items()}
    # A thread that has time to spare does more of them in a second that it runs: it is not compared.
    best = max(window.cps_running for share, window in medians.items() if share > 1)
    for share, window in medians.items():
        row = _row(f"{share:g} times what fits", window)
        of_best = window.cps_running / best if share > 1 else None
        yield {**row, "offered_cps": window.offered / window.seconds, "of_best": of_best}


def _median(windows: Sequence[Window]) -> Window:
    return sorted(windows, key=lambda window: window.cps_running)[len(windows) // 2]


def _median_ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """Of what was measured by turns, the median of the ratios of each round."""
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


def _overloaded(multiplier: float, options: argparse.Namespace) -> Window:
    with Generator(cpus=[options.core], binary=options.server) as generator:
        generator.start(str(PROFILES / "http.py"), multiplier, response=OVERLOAD_BYTES)
        return generator.measure(options.seconds, WARM_S)


def held_open(options: argparse.Namespace) -> Iterator[Result]:
    """Flows that do nothing, and then the same while others come and go."""
    for flows in options.open:
        ends_max = 2 * (flows + COMING_ROOM_S * COMING_CPS)
        with Generator(cpus=[options.core], flows_max=ends_max, binary=options.server) as generator:
            # The table is there as soon as any profile runs.
            generator.start(loads.silent(1, OPENING_CPS))
            _wait_for(generator, 1)
            empty = generator.memory_bytes
            generator.stop()
            progress(f"opening {flows:,} flows")
            generator.start(loads.silent(flows, OPENING_CPS))
            _wait_for(generator, flows)
            progress(f"{flows:,} flows that do nothing")
            yield _open_row(flows, "nothing else", generator.measure(options.seconds, WARM_S), empty, options)
            progress(f"{flows:,} flows, and {COMING_CPS:,} a second beside them")
            generator.start_beside(str(PROFILES / "http.py"), COMING_CPS, response=100)
            window = generator.measure(options.seconds, WARM_S)
            if not window.closed:
                raise RuntimeError("none of those that come went: their server does not answer them")
            yield _open_row(flows, f"{COMING_CPS:,} a second come and go", window, empty, options)


def _wait_for(generator: Generator, flows: int) -> None:
    """Wait until so many flows are open, at both ends."""
    until_s = time.monotonic() + OPENING_S_MAX
    while (found := generator.established()) < flows:
        if time.monotonic() > until_s:
            raise RuntimeError(f"only {found:,} of {flows:,} flows were open after {OPENING_S_MAX} s")
        time.sleep(0.2)


def _open_row(flows: int, beside: str, window: Window, empty: int, options: argparse.Namespace) -> Result:
    ends = 2 * flows
    row = _row(f"{flows:,} flows, {beside}", window)
    return {
        **row,
        "ends": ends,
        "bytes_per_end": (window.memory_bytes - empty) / ends,
        "bytes_per_end_by_server": _bench_bytes_per_end(min(ends, BENCH_ENDS_MAX), options.server),
    }


@functools.cache
def _bench_bytes_per_end(ends: int, binary: Path) -> float:
    """What the server's own benchmark says of as many ends."""
    command = [str(binary), "bench", "--flows", str(ends), "--seconds", "0.5"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(output)["bytes_per_end"])


KINDS = {"AF_PACKET": "af_packet", "AF_XDP": "af_xdp"}


def clients(options: argparse.Namespace) -> Iterator[Result]:
    """Who asks nginx, one after the other."""
    for name, kind in KINDS.items():
        progress(f"our client on {name} in front of nginx")
        yield {"what": f"allosaur, {name}", **web.client_against_nginx(kind, options.seconds, options.server)}
    for tool in ("wrk", "ab"):
        if problem := web.why_not(tool):
            yield {"what": tool, "not_run": problem}
            continue
        progress(f"{tool} in front of nginx")
        yield {"what": tool, **web.tool_against_nginx(tool, options.seconds)}


def servers(options: argparse.Namespace) -> Iterator[Result]:
    """Who answers wrk, one after the other."""
    for name, kind in KINDS.items():
        progress(f"our server on {name} behind wrk")
        yield {"what": f"allosaur, {name}", **web.server_against_wrk(kind, options.seconds, options.server)}
    if problem := web.why_not("nginx"):
        yield {"what": "nginx", "not_run": problem}
        return
    progress("nginx behind wrk")
    yield {"what": "nginx", **web.nginx_against_wrk(options.seconds)}


def cores(options: argparse.Namespace) -> Iterator[Result]:
    """One server on n cores, beside n servers on a core each; by turns."""
    cpus = separate_cpus()
    counts = [count for count in sorted({1, *options.cores}) if count <= len(cpus)]
    windows: dict[int, list[Window]] = {count: [] for count in counts}
    apart: dict[int, list[float]] = {count: [] for count in counts}
    for number in range(options.rounds):
        for count in counts:
            progress(f"round {number + 1} of {options.rounds}: {count} cores together, then apart")
            windows[count].append(_together(cpus[:count], options))
            apart[count].append(_apart_cps(cpus[:count], options))
    together = {count: [count * window.cps_running for window in windows[count]] for count in counts}
    for count in counts:
        row = {
            "cores": count,
            "together_cps": statistics.median(together[count]),
            "together_ratio": _median_ratio(together[count], together[1]),
            "apart_cps": statistics.median(apart[count]),
            "apart_ratio": _median_ratio(apart[count], apart[1]),
        }
        yield {**_row(f"{count}", _median(windows[count])), **row}


def _together(cpus: Sequence[int], options: argparse.Namespace) -> Window:
    """Let one server run on these CPUs."""
    with Generator(cpus=cpus, binary=options.server) as generator:
        generator.start(str(PROFILES / "http.py"), CORES_MULTIPLIER * len(cpus))
        return generator.measure(options.seconds, WARM_S)


def _apart_cps(cpus: Sequence[int], options: argparse.Namespace) -> float:
    """Let as many servers run at the same time; give their flows per second that they ran, together."""
    with contextlib.ExitStack() as stack:
        every = [stack.enter_context(Generator(cpus=[cpu], binary=options.server)) for cpu in cpus]
        for generator in every:
            generator.start(str(PROFILES / "http.py"), CORES_MULTIPLIER)
        time.sleep(WARM_S)
        first = [generator.sample() for generator in every]
        time.sleep(options.seconds)
        last = [generator.sample() for generator in every]
    ran = zip(first, last, strict=True)
    return sum(
        (new.counters.server.closed_flows - old.counters.server.closed_flows) / (new.ran_s - old.ran_s)
        for old, new in ran
    )


CASES = (
    Case("yardstick", "dpdk-testpmd, txonly, 64 bytes, one core", YARDSTICK, yardstick, _no_testpmd),
    Case(
        "paper, memory link",
        "the paper's profile on one core, client and server, over the memory link",
        PAPER,
        functools.partial(paper, MEMORY_PAIR),
    ),
    Case("paper, DPDK", "the same over ports of DPDK", PAPER, _paper_on_dpdk, _no_dpdk),
    Case("sizes", "more than one core can do, over the memory link and over ports of DPDK", SIZES, sizes),
    Case("overload", "responses of 1 KB, more and more than one core can do", OVERLOAD, overload),
    Case("open", "open flows on one core, both ends of each", OPEN, held_open),
    Case(
        "client",
        f"clients in front of nginx over veth, {web.AT_ONCE} connections at a time, {web.BODY_BYTES} B",
        WEB,
        clients,
        lambda _: web.why_not("nginx"),
    ),
    Case(
        "server",
        f"servers behind wrk over veth, {web.AT_ONCE} connections at a time, {web.BODY_BYTES} B",
        WEB,
        servers,
        lambda _: web.why_not("wrk"),
    ),
    Case("cores", "the paper's profile over cores", CORES, cores),
)


if __name__ == "__main__":
    sys.exit(main())
