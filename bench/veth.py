"""Measures ports on veth: `sudo .venv/bin/python bench/veth.py`.

First how many packets per second one data thread sends into a pair of veth whose other end lies in a
network namespace of its own, beside the same on ports in memory; the kernel's count at the other
end must be what we say we sent. testpmd (`dpdk-testpmd`) sends on the same pair through its
`net_af_packet` where it is installed. Rounds alternate, so all see the same noise.

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
from allosaur.server import LocalServer, find_binary
from common import FRAME, Result, machine, progress, spread, wide_console
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
TESTPMD_BEGINS_S = 20.0
ETH_P_ALL = 3
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33


def main() -> int:
    """Measure, print the tables, and keep the numbers if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--server", type=Path, default=find_binary(), help="the binary")
    parser.add_argument("--listen-for", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.listen_for:
        print(json.dumps(_arrivals_ns(options.listen_for)))
        return 0
    if os.geteuid() != 0:
        print("error: network namespaces need root: run this with sudo", file=sys.stderr)
        return 2
    results: Result = {"machine": machine()}
    with _veth():
        results["rates"] = rates(options, wide_console())
        results["pacing"] = pacing(options, wide_console())
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def rates(options: argparse.Namespace, console: Console) -> list[Result]:
    """How fast one data thread sends."""
    rounds, duration_s = (1, 1.0) if options.quick else (5, 2.0)
    ways = {"memory": ["memory", "memory"], "AF_PACKET": [NEAR]}
    measured: dict[tuple[str, int], list[Result]] = {}
    for number in range(rounds):
        for size in SIZES:
            for name, ports in ways.items():
                progress(f"round {number + 1} of {rounds}: {name}, {size + 4} bytes")
                measured.setdefault((name, size), []).append(_send(ports, size, duration_s, options.server))
            if shutil.which("dpdk-testpmd"):
                progress(f"round {number + 1} of {rounds}: testpmd, {size + 4} bytes")
                measured.setdefault(("testpmd", size), []).append(_testpmd(size, duration_s))
    progress("")
    table = Table("port", "frame", "Mpps", "not counted by the kernel", title="sending on one data thread")
    results = []
    for (name, size), rows in measured.items():
        rate_mpps = spread([row["rate_pps"] / 1e6 for row in rows], 2)
        missing = [row["sent"] - row["counted"] for row in rows if "sent" in row]
        table.add_row(name, str(size + 4), rate_mpps, str(sum(missing)) if missing else "")
        results.append({"port": name, "frame_bytes": size + 4, "rounds": rows})
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
def _veth() -> Iterator[None]:
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


def _send(ports: list[str], size: int, duration_s: float, binary: Path) -> Result:
    """Send one constant stream, more than can be sent."""
    packet = STLPktBuilder(pkt_buffer=FRAME.ljust(size, b"\0"))
    before = _counted()
    with LocalServer(ports=ports, binary=binary) as server, server.client() as client:
        client.reset(ports=[0])
        client.add_streams(STLStream(packet=packet, mode=STLTXCont(pps=TOO_MUCH_PPS)), ports=[0])
        client.start(ports=[0], mult="25", duration=duration_s, force=True)
        client.wait_on_traffic(ports=[0])
        time.sleep(0.1)
        sent = int(client.get_stats()[0]["opackets"])
    result = {"rate_pps": sent / duration_s}
    return result if NEAR not in ports else {**result, "sent": sent, "counted": _counted() - before}


def _testpmd(size: int, duration_s: float) -> Result:
    """Let testpmd send on the same interface, and count in the kernel: it takes a while to begin."""
    command = ["dpdk-testpmd", "-l", "0,1", "--no-huge", "-m", "256", "--no-pci", "--file-prefix", SPACE]
    command += ["--vdev", f"net_af_packet0,iface={NEAR},qdisc_bypass=1", "--", "--forward-mode=txonly"]
    command += [f"--txpkts={size}", "--auto-start", "--total-num-mbufs=16384", "--stats-period=60"]
    first = _counted()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + TESTPMD_BEGINS_S
        while _counted() == first and time.monotonic() < until:
            time.sleep(0.05)
        before, start = _counted(), time.monotonic()
        time.sleep(duration_s)
        after, end = _counted(), time.monotonic()
    finally:
        process.terminate()
        process.wait()
    return {"rate_pps": (after - before) / (end - start)}


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
