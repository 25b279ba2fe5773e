"""Measures ports on veth: `sudo .venv/bin/python bench/veth.py`.

First how many packets per second one data thread sends into a pair of veth whose other end lies in a
network namespace of its own, by AF_PACKET and by AF_XDP, beside the same on ports in memory; the
kernel's count at the other end must be what we say we sent. testpmd (`dpdk-testpmd`) sends on the same
pair through its `net_af_packet` and `net_af_xdp` where it is installed, on the same CPU. Rounds
alternate, so all see the same noise; the processor time that a packet takes, the kernel's share
included, sees least of it.

Then how even packets leave: the gaps between them as the receiving kernel's clock saw them.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from allosaur import STLPktBuilder, STLStream, STLTXCont
from allosaur.server import LocalServer
from common import FRAME, Result, machine, progress, server_binary, spread, wide_console
from rich.console import Console
from rich.table import Table

SPACE = "allosaur-bench"
NEAR, FAR = "alobench0", "alobench1"
SIZES = (60, 1514)
RATES = {"1 kpps": 1_000, "10 kpps": 10_000, "100 kpps": 100_000}
POLLS = ("adaptive", "busy")
#: How far the 1 and the 99 percentile may be from what was asked, on a core that nobody else wants.
PACING_RATE, PACING_POLL, PACING_US = "10 kpps", "busy", 20.0
TOO_MUCH_PPS = 20_000_000
NAMED_S = 5.0
TESTPMD_BEGINS_S = 20.0
#: The CPU of the thread that sends, ours and testpmd's.
SENDING_CPU = 1
#: Ports on the interface, and testpmd's device that each is beside.
WAYS = {
    "AF_PACKET": (NEAR, f"net_af_packet0,iface={NEAR},qdisc_bypass=1"),
    "AF_XDP": (f"af_xdp:{NEAR}", f"net_af_xdp0,iface={NEAR}"),
}
MUST_REACH = 1.2
ETH_P_ALL = 3
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33


def main() -> int:
    """Measure, print the tables, and keep the numbers if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=server_binary, default="", help="the binary")
    parser.add_argument("--listen-for", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.listen_for:
        print(json.dumps(_arrivals_ns(options.listen_for)))
        return 0
    if os.geteuid() != 0:
        print("error: network namespaces need root: run this with sudo", file=sys.stderr)
        return 2
    results: Result = {"machine": machine()}
    with joined():
        results["rates"] = rates(options, wide_console())
        results["pacing"] = pacing(options, wide_console())
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def rates(options: argparse.Namespace, console: Console) -> list[Result]:
    """How fast one data thread sends."""
    rounds, duration_s = (1, 1.0) if options.quick else (5, 2.0)
    has_testpmd = shutil.which("dpdk-testpmd") is not None
    measured: dict[tuple[str, int], list[Result]] = {}

    def measure(name: str, size: int, row: Result) -> None:
        measured.setdefault((name, size), []).append(row)

    for number in range(rounds):
        for size in SIZES:
            progress(f"round {number + 1} of {rounds}, {size + 4} bytes")
            measure("memory", size, send(["memory", "memory"], size, duration_s, options.server))
            for name, (port, device) in WAYS.items():
                if has_testpmd:
                    measure(f"testpmd {name}", size, _testpmd(device, size, duration_s))
                measure(name, size, send([port], size, duration_s, options.server))
    progress("")
    columns = [
        "port",
        "frame",
        "Mpps",
        "ns of processor a packet",
        "not counted by the kernel",
        "of testpmd's rate",
        "by processor time",
    ]
    table = Table(*columns, title="sending on one data thread")
    results = []
    for (name, size), rows in measured.items():
        missing = [row["sent"] - row["counted"] for row in rows if "sent" in row]
        beside = measured.get((f"testpmd {name}", size), [])
        ratios = [
            row["rate_pps"] / other["rate_pps"] for row, other in zip(rows, beside, strict=bool(beside))
        ]
        ratio = statistics.median(ratios) if ratios else None
        verdict = "" if ratio is None else f"{ratio:.2f} (must be {MUST_REACH})"
        savings = [other["cpu_ns"] / row["cpu_ns"] for row, other in zip(rows, beside, strict=bool(beside))]
        saving = statistics.median(savings) if savings else None
        table.add_row(
            name,
            str(size + 4),
            spread([row["rate_pps"] / 1e6 for row in rows], 2),
            spread([row["cpu_ns"] for row in rows], 0),
            str(sum(missing)) if missing else "",
            verdict,
            "" if saving is None else f"{saving:.2f}",
        )
        results.append(
            {"port": name, "frame_bytes": size + 4, "ratio": ratio, "cpu_ratio": saving, "rounds": rows}
        )
    console.print(table)
    return results


def pacing(options: argparse.Namespace, console: Console) -> list[Result]:
    """How even packets leave."""
    duration_s = 1.0 if options.quick else 3.0
    table = Table("polling", "rate", "asked µs", "1 %", "50 %", "99 %", "highest", "packets", "")
    table.title = "gaps between packets on veth in µs, as the receiving kernel saw them"
    results = []
    for poll in POLLS:
        for name, rate_pps in RATES.items():
            progress(f"pacing at {name}, {poll}")
            gaps_us = _gaps_us(rate_pps, duration_s, poll, options.server)
            cuts = statistics.quantiles(gaps_us, n=100)
            row = {"p1": cuts[0], "p50": cuts[49], "p99": cuts[98], "highest": max(gaps_us)}
            cells = [f"{value:,.1f}" for value in row.values()]
            asked_us = 1e6 / rate_pps
            off_us = max(asked_us - row["p1"], row["p99"] - asked_us)
            verdict = "reached" if off_us <= PACING_US else "missed"
            goal = f"±{PACING_US:g} µs: {verdict}" if (name, poll) == (PACING_RATE, PACING_POLL) else ""
            table.add_row(poll, name, f"{asked_us:,.0f}", *cells, str(len(gaps_us) + 1), goal)
            results.append({"poll": poll, "rate_pps": rate_pps, "packets": len(gaps_us) + 1, **row})
    progress("")
    console.print(table)
    return results


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Join two silent interfaces, one of them in a namespace."""
    subprocess.run(["ip", "netns", "del", SPACE], check=False, capture_output=True)
    _ip("netns", "add", SPACE)
    try:
        _ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", SPACE)
        for inside, link in [([], NEAR), (["netns", "exec", SPACE, "ip"], FAR)]:
            _ip(*inside, "link", "set", link, "addrgenmode", "none")
            _ip(*inside, "link", "set", link, "up")
        yield
    finally:
        _ip("netns", "del", SPACE)


def _counted() -> int:
    """What the kernel received at the other end."""
    facts = json.loads(_ip("-n", SPACE, "-j", "-s", "link", "show", "dev", FAR))
    return int(facts[0]["stats64"]["rx"]["packets"])


def send(ports: list[str], size: int, duration_s: float, binary: Path) -> Result:
    """Send one constant stream, more than can be sent."""
    packet = STLPktBuilder(pkt_buffer=FRAME.ljust(size, b"\0"))
    before = _counted()
    with LocalServer(ports=ports, binary=binary) as server, server.client() as client:
        assert server.pid is not None
        thread = _data_thread(server.pid)
        os.sched_setaffinity(thread, {SENDING_CPU})
        client.reset(ports=[0])
        client.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=TOO_MUCH_PPS)), ports=[0])
        used_ns = _used_ns(server.pid, thread)
        client.start(ports=[0], mult="25", duration=duration_s, force=True)
        client.wait_on_traffic(ports=[0])
        used_ns = _used_ns(server.pid, thread) - used_ns
        time.sleep(0.1)
        sent = int(client.get_stats()[0]["opackets"])
    result: Result = {"rate_pps": sent / duration_s, "cpu_ns": used_ns / sent}
    return result if "memory" in ports else {**result, "sent": sent, "counted": _counted() - before}


def _testpmd(device: str, size: int, duration_s: float) -> Result:
    """Let testpmd send on the same interface, and count in the kernel: it takes a while to begin."""
    command = ["dpdk-testpmd", "-l", f"0,{SENDING_CPU}", "--no-huge", "-m", "512", "--no-pci"]
    command += ["--file-prefix", SPACE, "--vdev", device, "--", "--forward-mode=txonly"]
    command += [f"--txpkts={size}", "--auto-start", "--total-num-mbufs=16384", "--stats-period=60"]
    first = _counted()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + TESTPMD_BEGINS_S
        while _counted() == first and time.monotonic() < until:
            time.sleep(0.05)
        threads = _threads(process.pid)
        begin_ns = {tid: _used_ns(process.pid, tid) for tid in threads}
        before, start = _counted(), time.monotonic()
        time.sleep(duration_s)
        after, end = _counted(), time.monotonic()
        used_ns = max(_used_ns(process.pid, tid) - begin_ns[tid] for tid in threads)
    finally:
        process.terminate()
        process.wait()
    return {"rate_pps": (after - before) / (end - start), "cpu_ns": used_ns / (after - before)}


def _data_thread(pid: int) -> int:
    """The first data thread, which may not have its name yet."""
    until = time.monotonic() + NAMED_S
    while time.monotonic() < until:
        for thread, name in _threads(pid).items():
            if name == "data-0":
                return thread
        time.sleep(0.001)
    raise RuntimeError(f"server {pid} has no data thread after {NAMED_S:g} s")


def _threads(pid: int) -> dict[int, str]:
    """The threads of a process, by their numbers."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(task.name): (task / "comm").read_text(encoding="utf-8").strip() for task in tasks}


def _used_ns(pid: int, thread: int) -> int:
    """Processor time that a thread has used, the kernel's work for it included."""
    return int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text(encoding="utf-8").split()[0])


def _gaps_us(rate_pps: int, duration_s: float, poll: str, binary: Path) -> list[float]:
    """Gaps between packets that arrived in the namespace."""
    packets = int(rate_pps * duration_s)
    command = ["ip", "netns", "exec", SPACE, sys.executable, __file__, "--listen-for", str(packets)]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert listener.stderr is not None
    listener.stderr.readline()
    packet = STLPktBuilder(pkt_buffer=FRAME)
    server = LocalServer(ports=[NEAR], binary=binary, options=["--poll", poll])
    with server, server.client() as client:
        client.reset(ports=[0])
        client.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=rate_pps)), ports=[0])
        client.start(ports=[0], duration=duration_s)
        time.sleep(duration_s)
        client.wait_on_traffic(ports=[0])
    output, _ = listener.communicate(timeout=60)
    times_ns: list[int] = json.loads(output)
    return [(after - before) / 1e3 for before, after in itertools.pairwise(times_ns)]


def _arrivals_ns(packets: int) -> list[int]:
    """When packets arrived by the kernel's clock. All wait in the socket's buffer until the last is there."""
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    listener.bind((FAR, ETH_P_ALL))
    print("ready", file=sys.stderr, flush=True)
    times_ns = []
    listener.settimeout(20)
    with contextlib.suppress(TimeoutError):
        for number in range(packets):
            if number == 1:
                # The machine is left alone meanwhile.
                time.sleep(3.5)
                listener.settimeout(0.5)
            _, messages, _, _ = listener.recvmsg(0, 64)
            seconds, nanoseconds = struct.unpack("qq", messages[0][2])
            times_ns.append(seconds * 10**9 + nanoseconds)
    return times_ns


if __name__ == "__main__":
    sys.exit(main())
