"""Loads for a build by profile: `python bench/training.py --server BINARY`, with an instrumented server.

The compiler lays out and inlines what these run often, and takes what they never run for rare. So they run
what users run: each shipped profile, packets of all kinds, flows of all sizes, open flows, latency, emulated
clients and, as root, ports on interfaces; where the server has DPDK, ports of it. What is to be fast runs
longest. Nothing is measured: an instrumented server is slow. The exit code is 1 when a load could not be run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import loads
from allosaur.cli.flows._measured import Generator
from common import has_dpdk, progress
from run import CASES
from veth import WAYS, joined, send

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ROOT / "profiles"
COMMAND = [sys.executable, str(ROOT / "scripts" / "wheel-data" / "scripts" / "allosaur")]
#: Ended for other reasons than the server's: packets without a receiver, flows that are meant to fail.
RAN = (0, 1)
#: Bytes of responses, and connections a second: less than an instrumented server does, and more.
RESPONSES = {1: (150_000, 600_000), 1024: (120_000, 500_000), 32 * 1024: (20_000, 300_000)}
OPEN_ENDS = 200_000
LOAD_S = 2.0
MEMORY_PAIR = ("memory", "memory")
RING_PAIR = ("ring:training", "ring:training")


def main() -> int:
    """Run all loads; 1 when one of them failed."""
    options = _options()
    os.environ["ALLOSAUR_SERVER"] = str(options.server)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "bench")])
    with_dpdk = has_dpdk(options.server)
    failed = [*_benchmarks(options.server, with_dpdk), *_profiles(), *_emulated_clients(options.server)]
    for ports in [MEMORY_PAIR, RING_PAIR] if with_dpdk else [MEMORY_PAIR]:
        _flows(options.server, ports)
    if os.geteuid() == 0:
        _interfaces(options.server)
    progress("")
    for what in failed:
        print(f"error: {what}", file=sys.stderr)
    return int(bool(failed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="the instrumented binary")
    return parser.parse_args()


def _benchmarks(server: Path, with_dpdk: bool) -> Iterator[str]:
    """Give the server's own benchmarks that failed."""
    for case in CASES:
        for receive in ("off", "on"):
            yield from _run([str(server), "bench", "--case", case, "--receive", receive, "--seconds", "0.5"])
    yield from _run([str(server), "bench", "--flows", str(OPEN_ENDS), "--keepalive", "--seconds", "6"])
    for case in CASES if with_dpdk else ():
        words = ["--case", case, "--ports", "vdev:net_null", "--seconds", "0.5"]
        yield from _run([str(server), "bench", *words])


def _profiles() -> Iterator[str]:
    """Give the shipped profiles that could not be run."""
    for path in sorted([*PROFILES.glob("*.py"), *(PROFILES / "stateful").glob("*.py")]):
        yield from _run([*COMMAND, "run", "--local", "--duration", "700ms", str(path)])


def _emulated_clients(server: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["--quick", "--only", "clients", "answers", "leases", "--json", f"{folder}/results.json"]
        script = str(ROOT / "bench" / "emulation.py")
        yield from _run([sys.executable, script, "--server", str(server), *words])


def _flows(server: Path, ports: Sequence[str]) -> None:
    """Flows of all sizes between two ports, as many as there is time for, and more."""
    for size, rates in RESPONSES.items():
        for rate in rates:
            progress(f"{rate:,} responses of {size:,} B a second by {ports[0]}")
            with Generator(ports, binary=server) as generator:
                generator.start(str(PROFILES / "stateful" / "http.py"), rate, response=size)
                generator.measure(LOAD_S)
    progress(f"long responses by {ports[0]}")
    with Generator(ports, binary=server) as generator:
        generator.start(loads.responses(1_000_000, 20))
        generator.measure(LOAD_S)
    progress(f"UDP exchanges by {ports[0]}")
    with Generator(ports, binary=server) as generator:
        generator.start(str(PROFILES / "stateful" / "udp_exchange.py"), 1_000_000, rounds=1, size=64)
        generator.measure(LOAD_S)


def _interfaces(server: Path) -> None:
    """Ports on interfaces: each way to send."""
    with joined():
        for name, (port, _) in WAYS.items():
            progress(f"packets by {name}")
            send([port], 60, 1.0, server)


def _run(words: Sequence[str]) -> Iterator[str]:
    """Run a command; give what went wrong."""
    text = " ".join(Path(word).name if "/" in word else word for word in words[1:])
    progress(text)
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode not in RAN:
        yield f"{text}: exit code {ended.returncode}: {ended.stderr[-500:]}"


if __name__ == "__main__":
    sys.exit(main())
